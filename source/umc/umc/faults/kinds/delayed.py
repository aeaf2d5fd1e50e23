# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Delayed commands: a slow bus."""

from __future__ import annotations

import torch

from umc.faults.kinds import register_kind
from umc.faults.kinds.base import CommandKind, Delivery

LONGEST_DELAY = 10
"""Longest delay [env steps]; 0.2 s at 50 Hz, beyond which no legged robot is steered."""


@register_kind
class Delayed(CommandKind):
    """Targets arrive a number of env steps late; severity is this number, rounded.

    From onset on the motor keeps the last target that arrived in time, until the first late one is there.
    """

    name = "delayed"
    unit = "[env steps]"
    default = None
    smallest, largest = 0.0, float(LONGEST_DELAY)

    def healthy(self, nominal: object) -> float:
        """See the base class."""
        return 0.0

    def deliver(self, target: torch.Tensor, delivery: Delivery) -> torch.Tensor:
        """See the base class."""
        delay = delivery.severity.round().long().clamp(0, LONGEST_DELAY)
        # the one before the onset was in time: there is no way back behind it
        return torch.where(delivery.on, delivery.sent(torch.minimum(delay, delivery.age + 1)), target)
