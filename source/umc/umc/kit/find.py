# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Finds the environment that runs in this process, for a panel that nobody hands one to."""

from __future__ import annotations

import sys
from typing import Any

LAST_MADE = "curriculum_manager"
"""What Isaac Lab gives an environment last and takes from it on ``close``: with it, it can be looked at."""


def find_env() -> Any | None:
    """The environment with UMC's fault terms that was made last.

    Whoever makes one has imported ``umc.mdp``. Importing it here instead would load Isaac Lab into every Kit that has
    the extension switched on.

    Returns:
        The environment; None if there is none, or it is not ready yet, or closed.
    """
    mdp: Any = sys.modules.get("umc.mdp.events")
    env = None if mdp is None else mdp.newest_env()
    return env if hasattr(env, LAST_MADE) else None


def task_name(env: Any) -> str:
    """What the task of an environment is called.

    Args:
        env: The environment.

    Returns:
        Its Gymnasium id, or the name of its config where it was made without ``gym.make``.
    """
    spec = getattr(env, "spec", None)
    return type(env.cfg).__name__ if spec is None else spec.id
