# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of joint sensors."""

from __future__ import annotations

from typing import override

import torch

from umc.faults.kinds.base import POSITION, VELOCITY, JointLimits, Reading, SensorKind, register_kind

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
    smallest, largest = -LARGEST_ERROR, LARGEST_ERROR
    rank = 2  # overwrites all others
    masks_joint = True

    @override
    def read(self, signal: torch.Tensor, reading: Reading) -> torch.Tensor:
        return torch.where(reading.on, reading.severity, signal)


@register_kind
class Frozen(SensorKind):
    """The last message is repeated: position and velocity keep what they read before the onset, noise included."""

    name = "frozen"
    rank = 1  # after noise: what is frozen carries no new noise
    quantities = (POSITION, VELOCITY)
    remembers = True

    @override
    def read(self, signal: torch.Tensor, reading: Reading) -> torch.Tensor:
        return torch.where(reading.on, reading.held, signal)


class SensorError(SensorKind):
    """A sensor whose reading is wrong by an error that is added to the true value; none without severity."""

    default = None
    smallest, largest = -LARGEST_ERROR, LARGEST_ERROR
    quantities = (POSITION, VELOCITY)

    @override
    def healthy(self, nominal: JointLimits | None) -> float:
        return 0.0


@register_kind
class Bias(SensorError):
    """The encoder has slipped: the position reads too much by the severity, the velocity stays right."""

    name = "bias"
    unit = "[rad]"
    quantities = (POSITION,)

    @override
    def read(self, signal: torch.Tensor, reading: Reading) -> torch.Tensor:
        return torch.where(reading.on, signal + reading.severity, signal)


@register_kind
class Drift(SensorError):
    """The encoder keeps slipping at a rate, the severity: the position error grows, the velocity is off by it."""

    name = "drift"
    unit = "[rad/s]"

    @override
    def read(self, signal: torch.Tensor, reading: Reading) -> torch.Tensor:
        error = reading.severity * reading.age if reading.quantity == POSITION else reading.severity
        return torch.where(reading.on, signal + error, signal)


@register_kind
class Noise(SensorError):
    """A loose plug or a worn code disc: normal noise whose standard deviation of the position is the severity."""

    name = "noise"
    unit = "[rad]"
    smallest = 0.0

    @override
    def read(self, signal: torch.Tensor, reading: Reading) -> torch.Tensor:
        rate = NOISE_RATE if reading.quantity == VELOCITY else 1.0
        noise = reading.normal(f"noise of {reading.quantity}")
        return torch.where(reading.on, signal + rate * reading.severity * noise, signal)
