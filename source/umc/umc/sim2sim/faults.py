# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Lets the faults of umc.faults come true for robots outside of Isaac Lab: the same plans, kinds and moments.

A step goes as in our tasks: targets of the policy, lost and delayed by faults that the last observation showed;
physics; then faults are switched, limits follow, and sensors report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from umc.faults import FaultState, JointLimits
from umc.faults.kinds import ACTION, LONGEST_DELAY, POSITION, VELOCITY, CommandKind, Delivery, Reading, SensorKind
from umc.faults.state import PlanSource
from umc.sim2sim.robot import JointBounds
from umc.utils.errors import UmcError

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Senses:
    """What the robots' joint sensors report, and what the policy is told of faults."""

    position: Vector
    """Joint angles [rad]. Shape is (R, J)."""
    velocity: Vector
    """Joint speeds [rad/s]. Shape is (R, J)."""
    dead: NDArray[np.bool_]
    """Joints whose sensors are dead. Shape is (R, J)."""
    detected: NDArray[np.bool_]
    """Robots that have been told of a fault. Shape is (R,)."""


class Faults:
    """The faults of R robots.

    Args:
        source: Plans the faults.
        envs: Env, of those that the plans are for, that each robot stands for. Shape is (R,).
        num_envs: Number of those envs: random numbers of a fault depend on an env's number.
        pose: Default joint positions [rad]. Shape is (J,).
        healthy: What healthy joints can do.
        step_dt: Length of an env step [s].
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
        self._state = FaultState(source, num_envs)
        self._envs = torch.as_tensor(envs)
        self._pose, self._bounds, self._step_dt = pose, healthy, step_dt
        self._healthy = joint_limits(healthy)
        self._held: dict[tuple[str, str], torch.Tensor] = {}
        self._commands = [kind for kind in source.kinds if isinstance(kind, CommandKind)]
        # what was sent in each of the last env steps; targets are (position, velocity, effort) x robots x joints
        self._sent = torch.zeros(LONGEST_DELAY + 1, 3, len(envs), len(pose))
        self._num_sent = 0
        self._arrived = self._sent[0]

    def begin(self, episode: int) -> None:
        """Plans an episode, and refuses a fault that an exported policy cannot be told of.

        Args:
            episode: Which episode of each env it is, counted from 0.

        Raises:
            UmcError: If dead sensors report something, or last actions are reported wrong.
        """
        state = self._state
        state.episode[self._envs] = episode - 1
        state.begin_episode(self._envs)
        plan = state.plan
        for number, kind in enumerate(state.kinds):
            if not isinstance(kind, SensorKind):
                continue
            hit = (plan.kinds[:, :, number, None] & plan.joints)[self._envs]
            if kind.blinds and bool(((plan.severity[:, :, number] != 0.0)[self._envs] & hit).any()):
                raise UmcError(f"sensors that are '{kind.name}' must report 0: the exported policy feeds nothing else")
            if not kind.blinds and ACTION in kind.concerns and bool(hit.any()):
                raise UmcError(f"'{kind.name}' changes last actions, which the exported policy keeps to itself")
        self._held.clear()
        self._num_sent = 0

    def advance(self, step: int, position: Vector) -> bool:
        """Switches faults on and off.

        Args:
            step: Env steps since the episode began.
            position: Joint angles [rad]. Shape is (R, J).

        Returns:
            Whether any robot's faults have changed.
        """
        state = self._state
        everywhere = torch.zeros(state.num_envs, position.shape[1])
        everywhere[self._envs] = torch.as_tensor(position, dtype=torch.float32)
        return bool(state.advance(torch.full((state.num_envs,), step), everywhere).any())

    def bounds(self) -> list[JointBounds]:
        """What the joints can do now.

        Returns:
            One per robot; figures that no fault lowers are those of the healthy joints, to the bit.
        """
        limits = self._state.limits(self._healthy)
        columns: dict[str, Vector] = {}
        for name, value in vars(limits).items():
            healthy = getattr(self._healthy, name)
            changed = (value != healthy).expand(self._state.num_envs, -1)[self._envs].numpy()
            values = value.expand(self._state.num_envs, -1)[self._envs].double().numpy()
            columns[name] = np.where(changed, values, getattr(self._bounds, name))
        return [
            JointBounds(**{name: column[row] for name, column in columns.items()}) for row in range(len(self._envs))
        ]

    def sense(self, position: Vector, velocity: Vector) -> Senses:
        """Measures.

        Args:
            position: True joint angles [rad]. Shape is (R, J).
            velocity: True joint speeds [rad/s]. Shape is (R, J).

        Returns:
            What is reported.
        """
        state = self._state
        return Senses(
            self._read(POSITION, position - self._pose) + self._pose,
            self._read(VELOCITY, velocity),
            state.joint_mask[self._envs].numpy(),
            (state.fault_flag[self._envs, 0] > 0.0).numpy(),
        )

    def deliver(self, targets: Vector) -> Vector:
        """Loses and delays commands; see umc.mdp.CommandFaults.

        Args:
            targets: Joint targets of the policy [rad]. Shape is (R, J).

        Returns:
            Joint targets that arrive [rad]. Shape is (R, J).
        """
        if not self._commands:
            return targets
        sent = torch.zeros_like(self._arrived)
        sent[0] = torch.as_tensor(targets, dtype=torch.float32)
        last = sent if self._num_sent == 0 else self._arrived
        self._sent[self._num_sent % len(self._sent)] = sent
        arriving = sent
        for kind in self._commands:
            live = self._state.of(kind.name)
            assert live is not None  # a kind of this state
            delivery = Delivery(
                on=live.on[self._envs],
                severity=live.severity[self._envs],
                age=live.age[self._envs],
                sent=self._sent_before,
                last=last,
                uniform=self._mine(self._state.uniform),
            )
            arriving = kind.deliver(arriving, delivery)
        self._arrived = arriving
        self._num_sent += 1
        lost = (arriving[0] != sent[0]).numpy()
        return np.where(lost, arriving[0].double().numpy(), targets)

    def _sent_before(self, steps: torch.Tensor) -> torch.Tensor:
        """The targets sent a number of env steps ago, or the episode's first if there were fewer."""
        slot = (self._num_sent - steps.clamp(max=self._num_sent)) % len(self._sent)
        return self._sent.gather(0, slot.expand(1, *self._arrived.shape)).squeeze(0)

    def _read(self, quantity: str, signal: Vector) -> Vector:
        """What the sensors report of a quantity; see umc.mdp.joint_sensor."""
        state, reported = self._state, torch.as_tensor(signal)
        for kind in state.kinds:
            live = state.of(kind.name)
            if live is None or not isinstance(kind, SensorKind) or quantity not in kind.concerns:
                continue
            on = live.on[self._envs]
            held = self._held.get((kind.name, quantity), reported)
            if kind.remembers:
                self._held[kind.name, quantity] = torch.where(on, held, reported)
            reading = Reading(
                quantity=quantity,
                on=on,
                severity=live.severity[self._envs].double(),
                age=live.age[self._envs] * self._step_dt,
                held=held,
                normal=self._mine(state.normal),
            )
            reported = kind.read(reported, reading)
        return reported.numpy()

    def _mine(self, numbers: Callable[[str], torch.Tensor]) -> Callable[[str], torch.Tensor]:
        """Random numbers of these robots, of those of all envs."""
        return lambda stream: numbers(stream)[self._envs]


def joint_limits(bounds: JointBounds) -> JointLimits:
    """The same in the words of umc.faults.

    Args:
        bounds: What the joints of a robot can do.

    Returns:
        Limits, every shape (1, J), for any number of envs.
    """
    rows = (bounds.lower, bounds.upper, bounds.effort, bounds.velocity)
    return JointLimits(*(torch.as_tensor(row, dtype=torch.float32)[None] for row in rows))
