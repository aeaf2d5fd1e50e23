# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of joints and their motors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar, override

import torch

from umc.faults.kinds.base import JointKind, JointLimits, OnsetState, register_kind


@register_kind
class Effort(JointKind):
    """The motor is weak: it gives at most a torque, the severity, which may be a fraction of the healthy one."""

    name = "effort"
    unit = "[N*m]"
    default = None
    min_severity = 0.0

    @override
    def healthy_severity(self, nominal: JointLimits | None) -> torch.Tensor | None:
        return None if nominal is None else nominal.effort

    severity_reference = healthy_severity

    @override
    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: OnsetState) -> JointLimits:
        return replace(limits, effort=torch.where(on, torch.minimum(limits.effort, severity), limits.effort))


@register_kind
class Derating(Effort):
    """The motor overheats: the driver lowers its torque as it warms up, down to the continuous torque.

    The severity is the continuous torque tau_c, which may be a fraction of the healthy limit. Copper losses go with
    the square of the torque: T dh/dt = (tau / tau_c)^2 - h, where h is the heat, 0 at onset and 1 when the motor is as
    hot as it may be. The limit is the healthy one up to a heat of :attr:`derating_start` and falls linearly to tau_c
    at 1, where losses and cooling balance. Under less load the motor cools, and the limit rises.
    """

    name = "derating"
    rank = 1  # acts after effort
    depends_on_torque = True
    time_constant: ClassVar[float] = 20.0
    """Thermal time constant T of the winding [s], an assumption; a subclass with a name of its own has another."""
    derating_start: ClassVar[float] = 0.5
    """Heat from which on the limit falls [-]."""
    required_limits = Effort.healthy_severity

    @override
    def remember(
        self, memory: torch.Tensor, effort: torch.Tensor, severity: torch.Tensor, step_dt: float
    ) -> torch.Tensor:
        kept = math.exp(-step_dt / self.time_constant)  # exact for a torque that is held
        return kept * memory + (1.0 - kept) * (effort / severity).square()

    @override
    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: OnsetState) -> JointLimits:
        hot = ((onset.memory - self.derating_start) / (1.0 - self.derating_start)).clamp(0.0, 1.0)
        falling = torch.lerp(limits.effort.expand_as(hot), torch.minimum(limits.effort, severity), hot)
        return replace(limits, effort=torch.where(on, falling, limits.effort))


@register_kind
class Velocity(JointKind):
    """The joint turns no faster than a speed, the severity, which may be a fraction of the healthy one."""

    name = "velocity"
    unit = "[rad/s]"
    default = None
    min_severity = 0.0

    @override
    def healthy_severity(self, nominal: JointLimits | None) -> torch.Tensor | None:
        return None if nominal is None else nominal.velocity

    severity_reference = healthy_severity

    @override
    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: OnsetState) -> JointLimits:
        return replace(limits, velocity=torch.where(on, torch.minimum(limits.velocity, severity), limits.velocity))


@register_kind
class PowerLoss(JointKind):
    """The motor is off: it gives no torque; armature and passive friction remain."""

    name = "power_loss"

    @override
    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: OnsetState) -> JointLimits:
        return replace(limits, effort=limits.effort.masked_fill(on, 0.0))


@register_kind
class Braking(JointKind):
    """The driver's protection shorts the windings: no torque but -k*qd, where k is the severity.

    A shorted motor is a generator on its own resistance: k = N^2 * Kt * Kb / R at the joint, with the gear ratio N, the
    torque constant Kt [N*m/A], the back-EMF constant Kb [V*s/rad] and the resistance R [Ohm] of the motor.
    """

    name = "braking"
    adds_passive = True
    unit = "[N*m*s/rad]"
    default = None
    min_severity, max_severity = 0.0, 1.0e4

    @override
    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: OnsetState) -> JointLimits:
        return replace(
            limits,
            effort=limits.effort.masked_fill(on, 0.0),
            damping=limits.damping + torch.where(on, severity, 0.0),
        )


@register_kind
class Friction(JointKind):
    """The gearbox or a bearing is worn: dry friction resists with a torque, the severity, which may be a fraction."""

    name = "friction"
    adds_passive = True
    unit = "[N*m]"
    default = None
    min_severity, max_severity = 0.0, 1.0e4
    healthy = 0.0

    @override
    def severity_reference(self, nominal: JointLimits | None) -> torch.Tensor | None:
        return None if nominal is None else nominal.effort

    @override
    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: OnsetState) -> JointLimits:
        return replace(limits, friction=limits.friction + torch.where(on, severity, 0.0))


@register_kind
class Locked(JointKind):
    """A gearbox or a brake holds the joint at its position at onset."""

    name = "locked"
    reduces_range = True
    rank = 1  # acts after rom: what is left of a window is one position

    @override
    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: OnsetState) -> JointLimits:
        return replace(
            limits,
            lower=torch.where(on, onset.position, limits.lower),
            upper=torch.where(on, onset.position, limits.upper),
        )


@register_kind
class RangeOfMotion(JointKind):
    """The joint moves in a window around its position at onset; severity is the part of its range that is left."""

    name = "rom"
    reduces_range = True
    unit = "[-]"
    default = None
    min_severity, max_severity = 0.0, 1.0
    healthy = 1.0
    severity_reference = JointKind.healthy_severity

    @override
    def required_limits(self, nominal: JointLimits | None) -> torch.Tensor | None:
        # a wheel has no limits; of one limit no share can be taken
        return None if nominal is None else torch.maximum(-nominal.lower, nominal.upper)

    @override
    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: OnsetState) -> JointLimits:
        lower, upper = rom_window(limits.lower, limits.upper, onset.position, severity, onset.placement)
        return replace(limits, lower=torch.where(on, lower, limits.lower), upper=torch.where(on, upper, limits.upper))


def rom_window(
    lower: torch.Tensor, upper: torch.Tensor, position: torch.Tensor, fraction: torch.Tensor, placement: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute a window inside the limits that holds the joint's position, so that switching it on gives no kick.

    A joint that is beyond a limit already gets the window that ends at this limit, and is pushed no harder than before.

    Args:
        lower: Lower limit [rad]. Shape is (...), as for all.
        upper: Upper limit [rad].
        position: Joint position [rad].
        fraction: Width of the window over that of the limits [-].
        placement: 0 for the lowest window that holds the position, towards 1 for the highest.

    Returns:
        Lower and upper end of the window [rad].
    """
    width = fraction * (upper - lower)
    held = torch.minimum(torch.maximum(position, lower), upper)
    lowest, highest = torch.maximum(held - width, lower), torch.minimum(held, upper - width)
    start = torch.maximum(lowest + placement * (highest - lowest), lower)
    return torch.minimum(start, held), torch.maximum(torch.minimum(start + width, upper), held)
