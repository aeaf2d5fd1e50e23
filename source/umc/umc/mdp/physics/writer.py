# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Writes all joint faults of some envs into physics, and takes them back to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .limiters import EffortLimiter, PositionLimiter, VelocityLimiter

if TYPE_CHECKING:
    from isaaclab.assets import Articulation

    from umc.faults import FaultState


class JointFaultWriter:
    """The joint faults of one robot, whatever engine it lives in.

    Limiters read what they overwrite at onset, not once at the start: limits that other events randomise come back as
    they were.

    Args:
        asset: The robot.
    """

    def __init__(self, asset: Articulation) -> None:
        governor = None
        if asset.__backend_name__ == "newton":
            from .newton_governor import NewtonGovernor  # only where that engine is installed

            governor = NewtonGovernor(asset)
        self._limiters = (EffortLimiter(asset), VelocityLimiter(asset, governor), PositionLimiter(asset, governor))

    def limit(self, env_ids: torch.Tensor, state: FaultState) -> None:
        """Writes the live faults of some healthy envs.

        Args:
            env_ids: The envs, their faults active in ``state``, dtype int64. Shape is (N,).
            state: The fault state.
        """
        for limiter in self._limiters:
            faulty = limiter.faulty(state)[env_ids]
            touched = faulty.any(dim=1)
            limiter.limit(env_ids[touched], faulty[touched], state)

    def restore(self, env_ids: torch.Tensor) -> None:
        """Takes the faults of some envs back.

        Args:
            env_ids: The envs, dtype int64. Shape is (N,).
        """
        for limiter in self._limiters:
            limiter.restore(env_ids[limiter.limited[env_ids]])
