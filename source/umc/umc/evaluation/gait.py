# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How a healthy robot walks: speed, falls, height, and which feet stand when; pure torch, no simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

STANDING_SPEED = 0.1
"""A robot whose mean forward speed is below this is counted as standing still [m/s]."""


@dataclass(frozen=True)
class GaitReport:
    """Figures over all envs; means are taken over the time each robot was up."""

    envs: int
    seconds: float
    command: float
    """Commanded forward speed [m/s]."""
    falls: int
    """Robots that fell at least once."""
    non_finite: int
    """Robots whose physics became non-finite; in no other figure."""
    standing: int
    """Robots that stood still."""
    forward_speed: float
    """Mean velocity along the robot's own forward axis [m/s]."""
    net_speed: float
    """Mean of straight-line distance from start to end over time [m/s]: below ``forward_speed`` when paths bend."""
    trunk_height: float
    """Mean height of the trunk [m]."""
    duty_factor: dict[str, float]
    """Part of the time that each foot stands [-]."""
    swings_per_second: dict[str, float]
    """How often each foot leaves the ground [1/s]."""
    mean_feet_in_contact: float
    """Mean number of feet on the ground."""


class GaitRecorder:
    """Follows every env until its first fall."""

    def __init__(self, num_envs: int, feet: Sequence[str], device: torch.device | str = "cpu") -> None:
        """Starts before the first step.

        Args:
            num_envs: Number of envs.
            feet: Names of the feet.
            device: Where the tensors live.
        """
        self._feet = tuple(feet)
        self._up = torch.ones(num_envs, dtype=torch.bool, device=device)
        self._fell, self._broken = torch.zeros_like(self._up), torch.zeros_like(self._up)
        self._steps = torch.zeros(num_envs, device=device)
        self._speed, self._height = torch.zeros_like(self._steps), torch.zeros_like(self._steps)
        self._start = torch.zeros(num_envs, 2, device=device)
        self._end = torch.zeros_like(self._start)
        self._stance = torch.zeros(num_envs, len(feet), device=device)
        self._swings = torch.zeros_like(self._stance)
        self._contact = torch.zeros_like(self._stance, dtype=torch.bool)

    @property
    def up(self) -> torch.Tensor:
        """Robots that have not fallen or broken so far. Shape is (num_envs,)."""
        return self._up

    def record(
        self,
        position: torch.Tensor,
        forward_velocity: torch.Tensor,
        height: torch.Tensor,
        contact: torch.Tensor,
        fell: torch.Tensor,
        non_finite: torch.Tensor,
    ) -> None:
        """Takes the state after one more step; an env that ends in this step is not looked at any more.

        Args:
            position: Horizontal position of the trunk [m]. Shape is (num_envs, 2).
            forward_velocity: Velocity along the robot's own forward axis [m/s]. Shape is (num_envs,).
            height: Height of the trunk [m]. Shape is (num_envs,).
            contact: Which feet stand. Shape is (num_envs, num_feet).
            fell: Envs that fell in this step. Shape is (num_envs,).
            non_finite: Envs whose physics broke in this step; wins over ``fell``. Shape is (num_envs,).
        """
        self._broken |= self._up & non_finite
        self._fell |= self._up & fell & ~non_finite
        self._up &= ~(fell | non_finite)
        up = self._up
        first = up & (self._steps == 0)
        self._start = torch.where(first[:, None], position, self._start)
        self._end = torch.where(up[:, None], position, self._end)
        self._steps += up
        self._speed += torch.where(up, forward_velocity, 0.0)
        self._height += torch.where(up, height, 0.0)
        self._stance += up[:, None] & contact
        self._swings += up[:, None] & self._contact & ~contact
        self._contact = contact.clone()

    def report(self, command: float, step_dt: float, steps: int) -> GaitReport:
        """The figures of everything recorded.

        Args:
            command: Commanded forward speed [m/s].
            step_dt: Duration of an env step [s].
            steps: Number of steps of the measurement.

        Returns:
            The figures.
        """
        seen = ~self._broken & (self._steps > 0)
        taken = self._steps[seen]
        total = float(taken.sum().clamp(min=1))
        speed = self._speed[seen] / taken
        # from the first to the last recorded position there is one step less than positions
        net = (self._end - self._start)[seen].norm(dim=1) / ((taken - 1).clamp(min=1) * step_dt)
        stance, swings = self._stance[seen].sum(0) / total, self._swings[seen].sum(0) / (total * step_dt)
        return GaitReport(
            envs=len(self._up),
            seconds=steps * step_dt,
            command=command,
            falls=int(self._fell.sum()),
            non_finite=int(self._broken.sum()),
            standing=int((speed < STANDING_SPEED).sum()),
            forward_speed=float(self._speed[seen].sum()) / total,
            net_speed=float(net.mean()) if len(net) else 0.0,
            trunk_height=float(self._height[seen].sum()) / total,
            duty_factor={foot: float(stance[k]) for k, foot in enumerate(self._feet)},
            swings_per_second={foot: float(swings[k]) for k, foot in enumerate(self._feet)},
            mean_feet_in_contact=float(self._stance[seen].sum()) / total,
        )
