# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What each motor of a healthy walk gives, and how often more than a fault would leave it; pure torch, no simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

SHARE = 0.95
"""Of a joint's time: what it gives in all but the rest is called its load."""


@dataclass(frozen=True)
class JointLoad:
    """Torque and speed of one joint over all robots, while they were up."""

    joint: str
    mean_effort: float
    """Mean absolute torque [N*m]."""
    high_effort: float
    """Absolute torque that it stays below in :data:`SHARE` of the time [N*m]."""
    high_velocity: float
    """Speed that it stays below in :data:`SHARE` of the time [rad/s]."""
    beyond_effort: float | None
    """Part of the time that it gives more than the fault leaves [-]; None where the fault's severity is no number."""
    beyond_velocity: float | None
    """Part of the time that it turns faster than the fault allows [-]; None likewise."""


class LoadRecorder:
    """Collects torques and speeds of the robots that are up, one sample an env step."""

    def __init__(self, joints: Sequence[str]) -> None:
        """Starts before the first step.

        Args:
            joints: Names of the joints.
        """
        self._joints = tuple(joints)
        self._effort: list[torch.Tensor] = []
        self._velocity: list[torch.Tensor] = []

    def record(self, effort: torch.Tensor, velocity: torch.Tensor, up: torch.Tensor) -> None:
        """Takes one more step.

        Args:
            effort: Torques that were applied [N*m]. Shape is (num_envs, num_joints).
            velocity: Joint velocities [rad/s]. Shape is (num_envs, num_joints).
            up: Robots that have not fallen or ended so far. Shape is (num_envs,).
        """
        self._effort.append(effort[up].abs().cpu())
        self._velocity.append(velocity[up].abs().cpu())

    def report(self, severity: Mapping[str, Any]) -> tuple[JointLoad, ...]:
        """The figures of everything recorded.

        Args:
            severity: Severities by kind of fault, as a protocol has them.

        Returns:
            One row a joint, in the robot's order; none where no robot was ever up.
        """
        efforts, velocities = (torch.cat(samples or [torch.empty(0, 0)]) for samples in (self._effort, self._velocity))
        if not len(efforts):
            return ()
        caps = {kind: severity.get(kind) for kind in ("effort", "velocity")}

        def beyond(samples: torch.Tensor, kind: str) -> float | None:
            cap = caps[kind]
            return float((samples > cap).float().mean()) if isinstance(cap, int | float) else None

        def high(samples: torch.Tensor) -> float:
            # kthvalue, since torch.quantile refuses more than 16 million samples
            return float(samples.kthvalue(max(1, round(SHARE * len(samples)))).values)

        return tuple(
            JointLoad(
                joint=name,
                mean_effort=float(effort.mean()),
                high_effort=high(effort),
                high_velocity=high(velocity),
                beyond_effort=beyond(effort, "effort"),
                beyond_velocity=beyond(velocity, "velocity"),
            )
            for name, effort, velocity in zip(self._joints, efforts.T, velocities.T, strict=True)
        )
