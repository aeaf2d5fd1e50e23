# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Dropped commands: a bad bus loses messages."""

from __future__ import annotations

import torch

from umc.faults.kinds import register_kind
from umc.faults.kinds.base import CommandKind, Delivery


@register_kind
class Dropped(CommandKind):
    """Each env step's target is lost with a probability, the severity; the motor keeps the last one that arrived."""

    name = "dropped"
    unit = "[-]"
    default = 1.0
    smallest, largest = 0.0, 1.0
    rank = 1  # what is late can be lost, too

    def healthy(self, nominal: object) -> float:
        """See the base class."""
        return 0.0

    def deliver(self, target: torch.Tensor, delivery: Delivery) -> torch.Tensor:
        """See the base class."""
        lost = delivery.on & (delivery.uniform("dropped") < delivery.severity)
        return torch.where(lost, delivery.last, target)
