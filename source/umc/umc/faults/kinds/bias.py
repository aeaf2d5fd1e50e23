# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A biased encoder: it has slipped."""

from __future__ import annotations

import torch

from umc.faults.kinds import register_kind
from umc.faults.kinds.base import POSITION, Reading, SensorKind


@register_kind
class Bias(SensorKind):
    """The position reads too much by the severity; the velocity, its derivative, stays right."""

    name = "bias"
    unit = "[rad]"
    default = None
    concerns = (POSITION,)

    def healthy(self, nominal: object) -> float:
        """See the base class."""
        return 0.0

    def read(self, signal: torch.Tensor, reading: Reading) -> torch.Tensor:
        """See the base class."""
        return torch.where(reading.on, signal + reading.severity, signal)
