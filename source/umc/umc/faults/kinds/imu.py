# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of the base's inertial sensor: angular velocity, and the direction of gravity that is estimated with it."""

from __future__ import annotations

from typing import override

import torch

from umc.faults.kinds.base import ANGULAR_VELOCITY, ImuKind, ImuReading, JointLimits, register_kind

LARGEST_RATE = 100.0
"""Errors of the angular velocity are at most this large [rad/s]."""


class ImuError(ImuKind):
    """An error of the angular velocity [rad/s], the severity, about an axis that is drawn for each episode."""

    unit = "[rad/s]"
    default = None
    smallest, largest = 0.0, LARGEST_RATE

    @override
    def healthy(self, nominal: JointLimits | None) -> float:
        return 0.0


@register_kind
class ImuBias(ImuError):
    """The gyroscope reads a turn that is none; the accelerometer keeps the direction of gravity right."""

    name = "imu_bias"
    quantities = (ANGULAR_VELOCITY,)

    @override
    def read(self, signal: torch.Tensor, reading: ImuReading) -> torch.Tensor:
        return torch.where(reading.on, signal + reading.severity * reading.direction("imu_bias"), signal)


@register_kind
class ImuDrift(ImuError):
    """The gyroscope reads a roll or pitch that is none, and nothing corrects its integral: gravity tilts, too."""

    name = "imu_drift"

    @override
    def read(self, signal: torch.Tensor, reading: ImuReading) -> torch.Tensor:
        axis = reading.direction("imu_drift").clone()
        axis[:, 2] = 0.0
        axis = torch.nn.functional.normalize(axis, dim=1)
        if reading.quantity == ANGULAR_VELOCITY:
            return torch.where(reading.on, signal + reading.severity * axis, signal)
        # a base that turns about an axis sees gravity turn the other way
        angle = -reading.severity * reading.age
        turned = signal * angle.cos() + torch.linalg.cross(axis, signal) * angle.sin()
        turned = turned + axis * (axis * signal).sum(dim=1, keepdim=True) * (1.0 - angle.cos())
        return torch.where(reading.on, turned, signal)


@register_kind
class ImuFrozen(ImuKind):
    """The last message is repeated: both keep what they read before the onset, noise included."""

    name = "imu_frozen"
    rank = 1
    remembers = True

    @override
    def read(self, signal: torch.Tensor, reading: ImuReading) -> torch.Tensor:
        return torch.where(reading.on, reading.held, signal)


@register_kind
class ImuDead(ImuKind):
    """No message arrives: both read 0, also the direction of gravity."""

    name = "imu_dead"
    rank = 2

    @override
    def read(self, signal: torch.Tensor, reading: ImuReading) -> torch.Tensor:
        return signal.masked_fill(reading.on, 0.0)
