# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What tasks register for skrl: every rsl_rl agent has a skrl twin. Importing this module loads nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def skrl_entry(rsl_rl_entry: str) -> Callable[[], Any]:
    """Entry point of an agent's skrl twin.

    Args:
        rsl_rl_entry: ``package.module:name`` of the agent's rsl_rl cfg, class or instance.

    Returns:
        What makes the twin's cfg; Isaac Lab calls it when the agent is asked for, nothing is imported before.
    """

    def make() -> Any:
        from umc.rl.skrl.cfg import skrl_cfg

        module, name = rsl_rl_entry.split(":")
        cfg: Any = getattr(importlib.import_module(module), name)
        agent: Any = cfg() if callable(cfg) else cfg
        return skrl_cfg(agent)

    return make
