# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Which joint faults change the motion of their joint."""

from __future__ import annotations

import torch
from torch import Tensor

from umc.faults import JointLimits

NEAR = 0.01
"""How close to the end of its range a joint is held by it [rad]."""

NEARLY = 0.95
"""Part of its largest speed at which a joint is held by it [-]."""

LEAST_PUSH = 0.02
"""Torque, as part of the healthy limit, below which a motor hardly pushes [-]."""


def limits_act(limits: JointLimits, healthy: JointLimits, position: Tensor, speed: Tensor, demanded: Tensor) -> Tensor:
    """Return joints that would go beyond a limit which is lower than the healthy one, or that move heavily.

    Takes joint positions [rad], speeds [rad/s] and the torques that the motors would give if they could [N*m]; every
    shape is (E, J).
    """
    pushes = demanded.abs() > LEAST_PUSH * healthy.effort
    upper = (limits.upper < healthy.upper) & (position >= limits.upper - NEAR) & (demanded > 0.0)
    lower = (limits.lower > healthy.lower) & (position <= limits.lower + NEAR) & (demanded < 0.0)
    weak = (limits.effort < healthy.effort) & (demanded.abs() > limits.effort)
    slow = (limits.velocity < healthy.velocity) & (speed.abs() >= NEARLY * limits.velocity)
    stiff = (limits.friction > healthy.friction) | (limits.damping > healthy.damping)
    return ((upper | lower | weak | stiff) & pushes) | slow


class Effects:
    """Remembers which joint faults have changed their joint's motion.

    Args:
        envs: Number E of envs.
        joints: Number J of joints.
        device: Where it is kept.
    """

    def __init__(self, envs: int, joints: int, device: torch.device | str = "cpu") -> None:
        self._shown = torch.zeros(envs, joints, dtype=torch.bool, device=device)
        self._label = torch.zeros(envs, joints, dtype=torch.long, device=device)

    def before(self, label: Tensor, starts: Tensor) -> Tensor:
        """Return whose fault has done so before an env step, bool (E, J).

        Another label (E, J), and another episode (E,), is another fault.
        """
        self._shown = self._shown & (label == self._label) & ~starts[:, None]
        self._label = label
        return self._shown

    def after(self, hinders: Tensor) -> None:
        """Take the joints, bool (E, J), whose fault did so in the env step."""
        self._shown = self._shown | hinders
