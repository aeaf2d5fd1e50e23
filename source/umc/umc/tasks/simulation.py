# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The simulation of a command: Isaac Lab's launcher, what its start shows, and how errors end it."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from umc.utils.console import FIRST_START, filter_physx_messages, ignore_known_warnings, waiting
from umc.utils.distributed import RankLostError
from umc.utils.errors import UmcError
from umc.utils.outputs import ends_in_a_line

LAST_PHASE = "policy"
"""Phase of the start after which the command itself shows its progress."""


@contextlib.contextmanager
def simulation(
    env_cfg: Any, options: argparse.Namespace, device: str
) -> Iterator[tuple[Callable[[str], None], contextlib.ExitStack]]:
    """Launch Isaac Lab's simulation for an env cfg.

    Yields a function that shows how long a phase of the start took, to be called up to :data:`LAST_PHASE`, and a stack
    of what is to be closed before the simulation, such as the environment.
    """
    from isaaclab.app import launch_simulation

    ignore_known_warnings()
    filter_physx_messages(env_cfg, device)
    failure: Exception | None = None
    with contextlib.ExitStack() as cleanup, contextlib.ExitStack() as start:
        show = start.enter_context(waiting("starting the simulation", FIRST_START))
        cleanup.enter_context(launch_simulation(env_cfg, options))

        def finish_phase(name: str) -> None:
            show(name)
            if name == LAST_PHASE:
                start.close()

        finish_phase("engine")
        try:
            yield finish_phase, cleanup
        except (UmcError, RankLostError, OSError) as error:
            if not ends_in_a_line(error):
                raise
            failure = error  # raised outside of Isaac Lab's launcher, which would print a traceback
    if failure is not None:
        raise failure
