# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The one place where the faults of all envs stand; everybody reads it, nobody keeps a copy."""

from __future__ import annotations

from dataclasses import fields

import torch

from .schedule import NEVER, FaultPlan, FaultSchedule

FAULT_FLAG_WIDTH = 3
"""Paper: the flag is three wide, so that no single input decides."""


class FaultState:
    """Plan and live faults of E envs with J joints.

    A plan is drawn when an episode begins and changes only then; live tensors follow it from the onset step on.

    Args:
        schedule: Draws the plans.
        num_envs: Number of envs.
    """

    def __init__(self, schedule: FaultSchedule, num_envs: int) -> None:
        self.schedule = schedule
        self.num_envs = num_envs
        self.joint_names = schedule.joint_names
        self.device = schedule.device
        shape = (num_envs, len(self.joint_names))

        self.episode = self._full((num_envs,), -1)
        """Episode of each env, counted from 0; -1 before the first reset. Shape is (E,)."""
        self.active = self._full((num_envs,), False)
        """Whether the env's faults are on. Shape is (E,)."""

        self.subcategory = self._full((num_envs,), 0)
        self.scenario = self._full((num_envs,), 0)
        self.onset = self._full((num_envs,), NEVER)
        self.end = self._full((num_envs,), NEVER)
        self.joints, self.sensor, self.rom, self.effort, self.velocity = (self._full(shape, False) for _ in range(5))
        self.placement, self.rom_fraction, self.effort_limit, self.velocity_limit = (
            self._full(shape, value) for value in (0.0, 1.0, torch.inf, torch.inf)
        )

        self.sensor_dead, self.rom_limited, self.effort_limited, self.velocity_limited, self.detected = (
            self._full(shape, False) for _ in range(5)
        )

    subcategory: torch.Tensor
    """Plan: see :class:`FaultPlan`, as for the others up to ``velocity_limit``. Shape is (E,)."""
    scenario: torch.Tensor
    onset: torch.Tensor
    end: torch.Tensor
    joints: torch.Tensor
    """Plan: faulty joints. Shape is (E, J), as for the following."""
    sensor: torch.Tensor
    rom: torch.Tensor
    effort: torch.Tensor
    velocity: torch.Tensor
    placement: torch.Tensor
    rom_fraction: torch.Tensor
    effort_limit: torch.Tensor
    velocity_limit: torch.Tensor
    sensor_dead: torch.Tensor
    """Live: sensors that read 0. Shape is (E, J), as for the following."""
    rom_limited: torch.Tensor
    """Live: joints with a smaller range of motion."""
    effort_limited: torch.Tensor
    """Live: joints with less torque."""
    velocity_limited: torch.Tensor
    """Live: joints with less speed."""
    detected: torch.Tensor
    """Live: joint faults that the policy is told of."""

    @property
    def joint_mask(self) -> torch.Tensor:
        """Joints that the policy must not listen to (True = masked). Shape is (E, J)."""
        return self.sensor_dead

    @property
    def fault_flag(self) -> torch.Tensor:
        """+1 in envs where a joint fault is detected, else -1. Shape is (E, 3)."""
        flag = self.detected.any(dim=1, keepdim=True).float() * 2.0 - 1.0
        return flag.expand(-1, FAULT_FLAG_WIDTH)

    def begin_episode(self, env_ids: torch.Tensor) -> None:
        """Ends all faults of some envs and draws their next episode.

        Args:
            env_ids: The envs, dtype int64, each once. Shape is (N,).
        """
        self._clear(env_ids)
        self.episode[env_ids] += 1
        plan = self.schedule.draw(env_ids, self.episode[env_ids])
        for field in fields(FaultPlan):
            getattr(self, field.name)[env_ids] = getattr(plan, field.name)

    def due(self, step: torch.Tensor) -> torch.Tensor:
        """Envs whose faults have to be switched on.

        An env that has passed its onset unseen (rsl_rl starts training in the middle of episodes) is due at once.

        Args:
            step: Env steps since the episode began. Shape is (E,).

        Returns:
            True where due. Shape is (E,).
        """
        return (step >= self.onset) & (step < self.end) & ~self.active

    def over(self, step: torch.Tensor) -> torch.Tensor:
        """Envs whose faults have to be switched off, because they end before the episode does.

        Args:
            step: Env steps since the episode began. Shape is (E,).

        Returns:
            True where over. Shape is (E,).
        """
        return (step >= self.end) & self.active

    def activate(self, env_ids: torch.Tensor) -> None:
        """Switches the planned faults of some envs on.

        Args:
            env_ids: The envs, dtype int64. Shape is (N,).
        """
        self.active[env_ids] = True
        self.sensor_dead[env_ids] = sensor = self.sensor[env_ids]
        self.rom_limited[env_ids] = rom = self.rom[env_ids]
        self.effort_limited[env_ids] = effort = self.effort[env_ids]
        self.velocity_limited[env_ids] = velocity = self.velocity[env_ids]
        self.detected[env_ids] = sensor & (rom | effort | velocity)

    def recover(self, env_ids: torch.Tensor) -> None:
        """Switches the faults of some envs off for the rest of the episode.

        Args:
            env_ids: The envs, dtype int64. Shape is (N,).
        """
        self._clear(env_ids)

    def _clear(self, env_ids: torch.Tensor) -> None:
        self.active[env_ids] = False
        for live in (self.sensor_dead, self.rom_limited, self.effort_limited, self.velocity_limited, self.detected):
            live[env_ids] = False

    def _full(self, shape: tuple[int, ...], value: float) -> torch.Tensor:
        return torch.full(shape, value, device=self.device)
