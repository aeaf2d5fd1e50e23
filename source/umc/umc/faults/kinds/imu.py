# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of the base's inertial sensor: angular velocity, and the direction of gravity that is estimated with it."""

from __future__ import annotations

from typing import override

import torch

from umc.faults.kinds.base import ANGULAR_VELOCITY, ImuContext, ImuKind, register_kind

LARGEST_RATE = 100.0
"""Errors of the angular velocity are at most this large [rad/s]."""


class ImuError(ImuKind):
    """An error of the angular velocity [rad/s], the severity, about an axis that is drawn for each episode."""

    unit = "[rad/s]"
    default = None
    min_severity, max_severity = 0.0, LARGEST_RATE
    healthy = 0.0


@register_kind
class ImuBias(ImuError):
    """A constant bias of the gyroscope; the direction of gravity stays right."""

    name = "imu_bias"
    quantities = (ANGULAR_VELOCITY,)

    @override
    def read(self, signal: torch.Tensor, context: ImuContext) -> torch.Tensor:
        return torch.where(context.on, signal + context.severity * context.direction("imu_bias"), signal)


@register_kind
class ImuDrift(ImuError):
    """A bias of the roll or pitch rate that is integrated, too: the direction of gravity tilts."""

    name = "imu_drift"

    @override
    def read(self, signal: torch.Tensor, context: ImuContext) -> torch.Tensor:
        axis = context.direction("imu_drift").clone()
        axis[:, 2] = 0.0
        axis = torch.nn.functional.normalize(axis, dim=1)
        if context.quantity == ANGULAR_VELOCITY:
            return torch.where(context.on, signal + context.severity * axis, signal)
        # a base that turns about an axis sees gravity turn the other way
        angle = -context.severity * context.age
        turned = signal * angle.cos() + torch.linalg.cross(axis, signal) * angle.sin()
        turned = turned + axis * (axis * signal).sum(dim=1, keepdim=True) * (1.0 - angle.cos())
        return torch.where(context.on, turned, signal)


@register_kind
class ImuFrozen(ImuKind):
    """The last message is repeated: both keep what they read before the onset, noise included."""

    name = "imu_frozen"
    rank = 1
    remembers = True

    @override
    def read(self, signal: torch.Tensor, context: ImuContext) -> torch.Tensor:
        return torch.where(context.on, context.held, signal)


@register_kind
class ImuDead(ImuKind):
    """No message arrives: both read 0, also the direction of gravity."""

    name = "imu_dead"
    rank = 2

    @override
    def read(self, signal: torch.Tensor, context: ImuContext) -> torch.Tensor:
        return signal.masked_fill(context.on, 0.0)
