# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""JointLimitWriter on top of the limiters, until the engine writers speak in limits themselves."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from umc.faults.limits import JointLimits

from .limiters import EffortLimiter, PositionLimiter, VelocityLimiter

if TYPE_CHECKING:
    from isaaclab.assets import Articulation


class JointLimitWriter:
    """See the brief."""

    def __init__(self, asset: Articulation) -> None:
        governor = None
        if asset.__backend_name__ == "newton":
            from .newton_governor import NewtonGovernor

            governor = NewtonGovernor(asset)
        self.asset, self.governor = asset, governor
        self.effort, self.velocity = EffortLimiter(asset), VelocityLimiter(asset, governor)
        self.position = PositionLimiter(asset, governor)
        self.all = torch.arange(asset.num_instances, device=asset.device)

    @property
    def healthy(self) -> JointLimits:
        data = self.asset.data
        limited = self.position.limited[:, None, None]
        window = torch.where(limited, self.position._limits, data.joint_pos_limits.torch)
        effort = torch.where(self.effort.limited[:, None], self.effort._healthy, self.effort._read(self.all))
        speed = data.joint_vel_limits.torch
        if self.governor is None:
            speed = torch.where(self.velocity.limited[:, None], self.velocity._healthy, speed)
        lower, upper = window.unbind(-1)
        return JointLimits(lower.clone(), upper.clone(), effort, speed.clone())

    def write(self, limits: JointLimits, changed: torch.Tensor) -> None:
        healthy = self.healthy
        healthy = replace(healthy)
        self.restore(changed)
        ids = changed.nonzero().squeeze(1)
        state: Any = SimpleNamespace(effort_limit=limits.effort, velocity_limit=limits.velocity)
        for limiter, faulty in (
            (self.effort, limits.effort < healthy.effort),
            (self.velocity, limits.velocity < healthy.velocity),
        ):
            touched = faulty[ids].any(1)
            limiter.limit(ids[touched], faulty[ids][touched], state)
        faulty = ((limits.lower != healthy.lower) | (limits.upper != healthy.upper))[ids]
        touched = faulty.any(1)
        ids, faulty = ids[touched], faulty[touched]
        if len(ids):
            position, data = self.position, self.asset.data
            position.limited[ids] = True
            position._limits[ids] = data.joint_pos_limits.torch[ids]
            position._soft_limits[ids] = data.soft_joint_pos_limits.torch[ids]
            position._default_pos[ids] = data.default_joint_pos.torch[ids]
            position._write(ids, torch.stack((limits.lower[ids], limits.upper[ids]), -1))
            if self.governor is not None:
                self.governor.limit_position(
                    ids,
                    torch.where(faulty, limits.lower[ids], -torch.inf),
                    torch.where(faulty, limits.upper[ids], torch.inf),
                )

    def restore(self, envs: torch.Tensor) -> None:
        for limiter in (self.effort, self.velocity, self.position):
            limiter.restore((envs & limiter.limited).nonzero().squeeze(1))
