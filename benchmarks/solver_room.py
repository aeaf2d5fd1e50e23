# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Measure how full Newton's solver gets."""

from __future__ import annotations

from typing import Any

import numpy as np
from soak_checks import Findings

HARMLESS = {"ITERATIONS", "LS_ITERATIONS"}
"""Flags of a solver that stopped at its limit of iterations: no memory was short, and it prints nothing."""


class SolverRoom:
    """How many rows and contacts Newton's solver needs, and whether there ever was too little room for them.

    The solver raises a flag wherever it prints an overflow message; the flag cannot get lost in a pipe.
    """

    def __init__(self, num_envs: int) -> None:
        from isaaclab_newton.physics import NewtonManager

        manager: Any = NewtonManager
        self._data, self._num_envs = manager._solver.mjw_data, num_envs  # no public way to the solver
        self._rows = self._contacts = self._flags = 0

    def measure(self) -> None:
        """Measure after a physics step."""
        data = self._data
        self._rows = max(self._rows, int(data.nefc.numpy().max()))
        self._contacts = max(self._contacts, int(data.nacon.numpy().max()))
        self._flags |= int(np.bitwise_or.reduce(data.overflow.numpy()))

    def report(self, findings: Findings) -> None:
        """Add what was measured to the findings."""
        from mujoco_warp._src.types import OverflowType  # not public

        findings.worst["rows in the fullest env"] = self._rows
        findings.worst["rows that fit (njmax)"] = int(self._data.njmax)
        findings.worst["contacts per env, all envs together"] = self._contacts / self._num_envs
        findings.worst["contacts that fit (nconmax)"] = int(self._data.naconmax) / self._num_envs
        flags = {str(flag.name) for flag in OverflowType if flag & self._flags}
        findings.violations.extend(f"all envs: Newton's solver overflowed: {flag}" for flag in sorted(flags - HARMLESS))
