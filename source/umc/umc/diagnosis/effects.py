# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Which joint faults change the motion of their joint."""

from __future__ import annotations

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


def still_shown(shown: Tensor, before: Tensor, label: Tensor, starts: Tensor) -> Tensor:
    """Return where ``shown``, bool (E, J), still holds: another label (E, J), or episode (E,), is another fault."""
    return shown & (label == before) & ~starts[:, None]
