# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A drifting encoder: it slips on and on."""

from __future__ import annotations

import torch

from umc.faults.kinds import register_kind
from umc.faults.kinds.base import POSITION, VELOCITY, Reading, SensorKind


@register_kind
class Drift(SensorKind):
    """The position's error grows at a rate, the severity, from 0 at onset; the velocity reads too much by this rate."""

    name = "drift"
    unit = "[rad/s]"
    default = None
    concerns = (POSITION, VELOCITY)

    def healthy(self, nominal: object) -> float:
        """See the base class."""
        return 0.0

    def read(self, signal: torch.Tensor, reading: Reading) -> torch.Tensor:
        """See the base class."""
        error = reading.severity * reading.age if reading.quantity == POSITION else reading.severity
        return torch.where(reading.on, signal + error, signal)
