# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of the commands to the motors."""

from __future__ import annotations

from typing import override

import torch

from umc.faults.kinds.base import CommandKind, Delivery, JointLimits, register_kind

LONGEST_DELAY = 10
"""Longest delay [env steps]: 0.2 s at 50 Hz."""


@register_kind
class Delayed(CommandKind):
    """Targets arrive a number of env steps late, the severity, rounded.

    From onset on the motor keeps the last target that arrived in time, until the first late one arrives.
    """

    name = "delayed"
    unit = "[env steps]"
    default = None
    smallest, largest = 0.0, float(LONGEST_DELAY)

    @override
    def healthy(self, nominal: JointLimits | None) -> float:
        return 0.0

    @override
    def deliver(self, target: torch.Tensor, delivery: Delivery) -> torch.Tensor:
        delay = delivery.severity.round().long().clamp(0, LONGEST_DELAY)
        # nothing older than the target before the onset, which arrived in time
        return torch.where(delivery.on, delivery.sent(torch.minimum(delay, delivery.age + 1)), target)


@register_kind
class Dropped(CommandKind):
    """Each env step's target is lost with a probability, the severity; the motor keeps the last that arrived."""

    name = "dropped"
    unit = "[-]"
    default = 1.0
    smallest, largest = 0.0, 1.0
    rank = 1  # a late target can be lost, too

    @override
    def healthy(self, nominal: JointLimits | None) -> float:
        return 0.0

    @override
    def deliver(self, target: torch.Tensor, delivery: Delivery) -> torch.Tensor:
        lost = delivery.on & (delivery.uniform("dropped") < delivery.severity)
        return torch.where(lost, delivery.last, target)
