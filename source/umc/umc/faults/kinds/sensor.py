# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of joint sensors."""

from __future__ import annotations

from typing import override

import torch

from umc.faults.kinds.base import POSITION, VELOCITY, SensorContext, SensorKind, register_kind

NOISE_RATE = 150.0
"""Noise of the velocity over that of the position [1/s]: A1-Walk's healthy sensors, 1.5 rad/s over 0.01 rad."""

LARGEST_ERROR = 1000.0
"""Readings and errors are at most this large, in the unit of the reading."""


@register_kind
class Dead(SensorKind):
    """The paper's sensor fault: position, velocity and last action read the severity; the policy masks the joint."""

    name = "dead"
    unit = "[as read]"
    default = 0.0
    min_severity, max_severity = -LARGEST_ERROR, LARGEST_ERROR
    rank = 2  # overwrites all others
    masks_joint = True

    @override
    def read(self, signal: torch.Tensor, context: SensorContext) -> torch.Tensor:
        return torch.where(context.on, context.severity, signal)


@register_kind
class Frozen(SensorKind):
    """The last message is repeated: position and velocity keep what they read before the onset, noise included."""

    name = "frozen"
    rank = 1  # after noise: what is frozen carries no new noise
    quantities = (POSITION, VELOCITY)
    remembers = True

    @override
    def read(self, signal: torch.Tensor, context: SensorContext) -> torch.Tensor:
        return torch.where(context.on, context.held, signal)


class SensorError(SensorKind):
    """A sensor whose reading is wrong by an error that is added to the true value; none without severity."""

    default = None
    min_severity, max_severity = -LARGEST_ERROR, LARGEST_ERROR
    quantities = (POSITION, VELOCITY)
    healthy = 0.0


@register_kind
class Bias(SensorError):
    """The encoder has slipped: the position is offset by the severity, the velocity stays right."""

    name = "bias"
    unit = "[rad]"
    quantities = (POSITION,)

    @override
    def read(self, signal: torch.Tensor, context: SensorContext) -> torch.Tensor:
        return torch.where(context.on, signal + context.severity, signal)


@register_kind
class Drift(SensorError):
    """The encoder keeps slipping at a rate, the severity: the position error grows, the velocity is off by it."""

    name = "drift"
    unit = "[rad/s]"

    @override
    def read(self, signal: torch.Tensor, context: SensorContext) -> torch.Tensor:
        error = context.severity * context.age if context.quantity == POSITION else context.severity
        return torch.where(context.on, signal + error, signal)


@register_kind
class Noise(SensorError):
    """A loose plug or a worn code disc: normal noise whose standard deviation of the position is the severity."""

    name = "noise"
    unit = "[rad]"
    min_severity = 0.0

    @override
    def read(self, signal: torch.Tensor, context: SensorContext) -> torch.Tensor:
        rate = NOISE_RATE if context.quantity == VELOCITY else 1.0
        noise = context.normal(f"noise of {context.quantity}")
        return torch.where(context.on, signal + rate * context.severity * noise, signal)
