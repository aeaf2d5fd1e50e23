# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Controls of the page that steer and push the robots."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from isaaclab.envs import mdp as lab

from umc.tasks.parts import AXES, parts_of

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

LABELS = ("Forward [m/s]", "Left [m/s]", "Turn [rad/s]")
"""Sliders, in the order of a command."""

LARGEST, STEP = 1.0, 0.05
"""Ends of the sliders to both sides, and their step [m/s, rad/s]."""

PUSH = 1.0
"""Largest change of the trunk's velocity by a push, along x and y [m/s]."""


class Steering:
    """Sliders for the command of all robots, and a button that pushes the one that is shown.

    ``later`` queues what the simulation's thread shall do.
    """

    def __init__(self, gui: Any, env: ManagerBasedRLEnv, later: Callable[..., None], shown: Callable[[], int]) -> None:
        self._env, self._shown = env, shown
        self._command: Any = env.command_manager.get_term(parts_of(env.cfg).command)
        for axis, (label, name) in enumerate(zip(LABELS, AXES, strict=True)):
            (first, _) = getattr(self._command.cfg.ranges, name)
            slider = gui.add_slider(label, min(-LARGEST, first), max(LARGEST, first), STEP, first)
            slider.on_update(lambda event, axis=axis: later(self.steer, axis, event.target.value))
        push = gui.add_button(
            "Push", hint=f"Changes the trunk's velocity by up to {PUSH:g} m/s along the world's x and y"
        )
        push.on_click(lambda _: later(self.push))

    def steer(self, axis: int, value: float) -> None:
        """Command a velocity along one axis of :data:`LABELS`, in this episode and in later ones."""
        setattr(self._command.cfg.ranges, AXES[axis], (value, value))
        self._command.vel_command_b[:, axis] = value

    def push(self) -> None:
        """Push the robot that is shown."""
        env_ids = torch.tensor([self._shown()], device=self._env.device)
        lab.push_by_setting_velocity(self._env, env_ids, {"x": (-PUSH, PUSH), "y": (-PUSH, PUSH)})
