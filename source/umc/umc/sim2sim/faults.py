# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of robots in plain MuJoCo: the same plans, kinds and moments as in Isaac Lab.

A step goes as in our tasks: targets of the policy, lost and delayed by faults that the last observation showed;
physics; then faults are switched, limits follow, and sensors report.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from umc.faults import FaultState, JointLimits, SensorKind
from umc.faults.apply import CommandChannel, ImuChannel, SensorChannel
from umc.faults.kinds import ACTION, ANGULAR_VELOCITY, GRAVITY, POSITION, VELOCITY
from umc.faults.state import PlanSource
from umc.sim2sim.robot import JointBounds, Transmission
from umc.utils.errors import UmcError

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class SensorReadings:
    """What the robots' joint sensors report, and what the policy knows of faults."""

    position: Vector
    """Joint angles [rad]. Shape is (R, J)."""
    velocity: Vector
    """Joint speeds [rad/s]. Shape is (R, J)."""
    dead: NDArray[np.bool_]
    """Joints whose sensors are dead. Shape is (R, J)."""
    detected: NDArray[np.bool_]
    """Robots with a detected fault. Shape is (R,)."""


class Faults:
    """The faults of R robots.

    Each robot stands for one of the ``num_envs`` envs that ``source`` plans faults for, shape (R,): random numbers
    depend on an env's number. ``pose`` are the default joint positions [rad], shape (J,), ``step_dt`` an env step [s].
    """

    def __init__(
        self,
        source: PlanSource,
        envs: NDArray[np.int64],
        num_envs: int,
        pose: Vector,
        healthy: JointBounds,
        step_dt: float,
    ) -> None:
        self.count = len(envs)
        """Number of robots."""
        self.state = FaultState(source, num_envs)
        """Faults of all envs."""
        self.envs = torch.as_tensor(envs)
        """Env of each robot, int64. Shape is (R,)."""
        self._pose, self._bounds, self._step_dt = pose, healthy, step_dt
        self._healthy = joint_limits(healthy)
        self._position = SensorChannel(POSITION, step_dt, self.envs)
        self._velocity = SensorChannel(VELOCITY, step_dt, self.envs)
        self._imu = [ImuChannel(name, step_dt, self.envs) for name in (ANGULAR_VELOCITY, GRAVITY)]
        self._commands = CommandChannel(self.state, self.envs)
        self._arrived = torch.zeros(3, len(envs), len(pose))

    def reset(self, episode: int) -> None:
        """Plan an episode of each env, counted from 0."""
        state = self.state
        state.episode[self.envs] = episode - 1
        state.reset(self.envs)
        plan = state.plan
        for number, kind in enumerate(state.kinds):
            if not isinstance(kind, SensorKind):
                continue
            hit = (plan.kinds[:, :, number, None] & plan.joints)[self.envs]
            if kind.masks_joint and bool(((plan.severity[:, :, number] != 0.0)[self.envs] & hit).any()):
                raise UmcError(f"sensors that are '{kind.name}' must report 0 here; leave such faults out")
            if not kind.masks_joint and ACTION in kind.quantities and bool(hit.any()):
                raise UmcError(
                    f"'{kind.name}' changes last actions, which the exported policy keeps to itself; leave it out"
                )
        for channel in (self._position, self._velocity, self._commands, *self._imu):
            channel.reset()

    def advance(self, step: int, position: Vector) -> bool:
        """Switch faults on and off at an env step, given joint angles [rad], shape (R, J); return whether any was."""
        state = self.state
        everywhere = torch.zeros(state.num_envs, position.shape[1])
        everywhere[self.envs] = torch.as_tensor(position, dtype=torch.float32)
        return bool(state.advance(torch.full((state.num_envs,), step), everywhere).any())

    def update_memory(self, effort: Vector) -> bool:
        """Take the motors' torques [N*m], shape (R, J), in every env step; return whether limits move with them."""
        state = self.state
        if not state.depends_on_torque:
            return False
        everywhere = torch.zeros(state.num_envs, effort.shape[1])
        everywhere[self.envs] = torch.as_tensor(effort, dtype=torch.float32)
        return bool(state.update_memory(everywhere, self._step_dt).any())

    def limits(self) -> JointLimits:
        """Limits of the robots' joints now; every shape is (R, J)."""
        limits = vars(self.state.limits(self._healthy))
        return JointLimits(**{name: value.expand(self.state.num_envs, -1)[self.envs] for name, value in limits.items()})

    def bounds(self) -> list[JointBounds]:
        """Limits of each robot's joints now; those that no fault lowers are the healthy ones, to the bit."""
        columns: dict[str, Vector] = {}
        for name, values in vars(self.limits()).items():
            changed = (values != getattr(self._healthy, name)).numpy()
            columns[name] = np.where(changed, values.double().numpy(), getattr(self._bounds, name))
        return [JointBounds(**{name: column[row] for name, column in columns.items()}) for row in range(self.count)]

    def sense(self, position: Vector, velocity: Vector) -> SensorReadings:
        """Measure true joint angles [rad] and speeds [rad/s]. Shapes are (R, J)."""
        state = self.state
        return SensorReadings(
            self._position.read(state, torch.as_tensor(position - self._pose)).numpy() + self._pose,
            self._velocity.read(state, torch.as_tensor(velocity)).numpy(),
            state.joint_mask[self.envs].numpy(),
            (state.fault_flag[self.envs, 0] > 0.0).numpy(),
        )

    def sense_base(self, angular_velocity: Vector, gravity: Vector) -> list[Vector]:
        """Measure angular velocity [rad/s] and direction of gravity of the bases in their frames. Shapes are (R, 3)."""
        signals = (angular_velocity, gravity)
        return [
            channel.read(self.state, torch.as_tensor(signal)).numpy()
            for channel, signal in zip(self._imu, signals, strict=True)
        ]

    def deliver(self, targets: Vector) -> Vector:
        """Return the joint targets [rad] that arrive of those that the policy sends. Shapes are (R, J)."""
        sent = torch.zeros_like(self._arrived)
        sent[0] = torch.as_tensor(targets, dtype=torch.float32)
        delivered = self._commands.send(sent, self._arrived)
        self._arrived = sent if delivered is None else delivered[1]
        lost = (self._arrived[0] != sent[0]).numpy()
        return np.where(lost, self._arrived[0].double().numpy(), targets)

    def transmission(self, robot: int) -> Transmission | None:
        """Return what a robot's joints make of the targets that arrive; None if these act as they are."""
        if not self._commands.depends_on_motion:
            return None
        rows = slice(robot, robot + 1)

        def transmit(target: Vector, position: Vector, velocity: Vector) -> tuple[Vector, Vector]:
            columns = np.stack((target, np.zeros_like(target), np.zeros_like(target)))[:, None]
            motion = (torch.as_tensor(values[None]) for values in (position, velocity))
            acting = self._commands.transmit(torch.as_tensor(columns), *motion, rows)
            sent = columns if acting is None else acting[1].numpy()
            return sent[0, 0], sent[1, 0]

        return transmit


def joint_limits(bounds: JointBounds) -> JointLimits:
    """Return a robot's bounds as limits for any number of envs; every shape is (J,)."""
    return JointLimits(**{name: torch.as_tensor(row, dtype=torch.float32) for name, row in vars(bounds).items()})
