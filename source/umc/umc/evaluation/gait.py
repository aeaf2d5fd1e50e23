# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The healthy gait: speed, falls, trunk height, foot contacts, and the load of every joint; pure torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from umc.evaluation.metrics import Step

GAIT = "gait.json"
"""Report of a healthy gait."""

STANDING_SPEED = 0.1
"""Mean velocity below which a robot counts as standing still [m/s]."""

SHARE = 0.95
"""Share of the time in which a joint stays below its high torque and high speed [-]."""


@dataclass(frozen=True)
class GaitReport:
    """Figures over all envs; means are taken over the time each robot was up."""

    envs: int
    seconds: float
    command: tuple[float, float, float]
    """Commanded velocity x [m/s], y [m/s], yaw [rad/s]."""
    falls: int
    """Robots that fell at least once."""
    non_finite: int
    """Robots whose physics became non-finite; in no other figure."""
    standing: int
    """Robots that stood still although the command was to walk."""
    forward_speed: float
    """Mean velocity along the robot's own forward axis [m/s]."""
    sideward_speed: float
    """Mean velocity to its own left [m/s]."""
    turning_rate: float
    """Mean angular velocity about its own upward axis [rad/s]."""
    net_speed: float
    """Mean of straight-line distance from start to end over time [m/s]: below ``forward_speed`` when paths bend."""
    trunk_height: float
    """Mean height of the trunk [m]."""
    duty_factor: dict[str, float]
    """Share of the time that each foot is on the ground [-]."""
    swings_per_second: dict[str, float]
    """How often each foot leaves the ground [1/s]."""
    mean_feet_in_contact: float
    """Mean number of feet on the ground."""


class GaitRecorder:
    """Recorder of the gait in every env until its first fall."""

    def __init__(self, num_envs: int, feet: Sequence[str], device: torch.device | str = "cpu") -> None:
        self._feet = tuple(feet)
        self.up = torch.ones(num_envs, dtype=torch.bool, device=device)
        """Robots that have not fallen and whose physics is finite so far. Shape is (num_envs,)."""
        self._fell, self._broken = torch.zeros_like(self.up), torch.zeros_like(self.up)
        self._steps = torch.zeros(num_envs, device=device)
        self._velocity = torch.zeros(num_envs, 3, device=device)  # ahead, to the left, turning
        self._height = torch.zeros_like(self._steps)
        self._start = torch.zeros(num_envs, 2, device=device)
        self._end = torch.zeros_like(self._start)
        self._stance = torch.zeros(num_envs, len(feet), device=device)
        self._swings = torch.zeros_like(self._stance)
        self._contact = torch.zeros_like(self._stance, dtype=torch.bool)

    def record(self, step: Step, contact: torch.Tensor) -> None:
        """Add one more step; ``contact`` says which feet are on the ground, shape (num_envs, num_feet)."""
        self._broken |= self.up & step.non_finite
        self._fell |= self.up & step.fell & ~step.non_finite
        self.up &= ~(step.fell | step.non_finite)
        up = self.up
        first = up & (self._steps == 0)
        self._start = torch.where(first[:, None], step.position, self._start)
        self._end = torch.where(up[:, None], step.position, self._end)
        self._steps += up
        velocity = (step.forward_velocity, step.sideward_velocity, step.turning_rate)
        self._velocity += torch.stack([torch.where(up, one, 0.0) for one in velocity], dim=1)
        self._height += torch.where(up, step.height, 0.0)
        self._stance += up[:, None] & contact
        self._swings += up[:, None] & self._contact & ~contact
        self._contact = contact.clone()

    def report(self, command: tuple[float, float, float], step_dt: float, steps: int) -> GaitReport:
        """Summarise ``steps`` env steps of ``step_dt`` [s] under a ``command`` x [m/s], y [m/s], yaw [rad/s]."""
        seen = ~self._broken & (self._steps > 0)
        taken = self._steps[seen]
        total = float(taken.sum().clamp(min=1))
        speed = self._velocity[seen, :2].norm(dim=1) / taken
        ahead, left, turning = (self._velocity[seen].sum(0) / total).tolist()
        # from the first to the last recorded position there is one step less than positions
        net = (self._end - self._start)[seen].norm(dim=1) / ((taken - 1).clamp(min=1) * step_dt)
        stance, swings = self._stance[seen].sum(0) / total, self._swings[seen].sum(0) / (total * step_dt)
        return GaitReport(
            envs=len(self.up),
            seconds=steps * step_dt,
            command=command,
            falls=int(self._fell.sum()),
            non_finite=int(self._broken.sum()),
            standing=int((speed < STANDING_SPEED).sum()) if any(command[:2]) else 0,
            forward_speed=ahead,
            sideward_speed=left,
            turning_rate=turning,
            net_speed=float(net.mean()) if len(net) else 0.0,
            trunk_height=float(self._height[seen].sum()) / total,
            duty_factor={foot: float(stance[k]) for k, foot in enumerate(self._feet)},
            swings_per_second={foot: float(swings[k]) for k, foot in enumerate(self._feet)},
            mean_feet_in_contact=float(self._stance[seen].sum()) / total,
        )


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
    """Share of the time above the torque that a faulty motor has [-]; None where the fault's severity is no number."""
    beyond_velocity: float | None
    """Share of the time above the speed that a faulty motor reaches [-]; None likewise."""


class LoadRecorder:
    """Recorder of torques and speeds of the named joints while robots are up, one sample an env step."""

    def __init__(self, joints: Sequence[str]) -> None:
        self._joints = tuple(joints)
        self._samples: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []

    def record(self, effort: torch.Tensor, velocity: torch.Tensor, up: torch.Tensor) -> None:
        """Add one more step; ``effort`` [N*m] and ``velocity`` [rad/s] have the shape (num_envs, num_joints)."""
        # of all robots: how many are up, a GPU is asked once, at the end
        self._samples.append((effort.abs(), velocity.abs(), up.clone()))

    def report(self, severity: Mapping[str, Any]) -> tuple[JointLoad, ...]:
        """Summarise each joint against a protocol's severities by kind of fault; empty if no robot was ever up."""
        if not any(bool(up.any()) for *_, up in self._samples):
            return ()
        efforts = torch.cat([effort[up] for effort, _, up in self._samples]).cpu()
        velocities = torch.cat([velocity[up] for _, velocity, up in self._samples]).cpu()
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
