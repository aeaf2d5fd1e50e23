# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What ``--resume`` refuses, said before anything of the run is touched."""

from __future__ import annotations

from umc.errors import UmcError


def require_left(done: int, max_iterations: int) -> None:
    """Refuse a run that has nothing left to train.

    Args:
        done: Iterations behind it.
        max_iterations: Iterations of the whole run.

    Raises:
        UmcError: If there are none left.
    """
    if done >= max_iterations:
        raise UmcError(f"the run has {done} iterations already; give a higher --max_iterations to go on")
