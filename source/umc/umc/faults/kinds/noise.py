# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A noisy sensor: a loose plug, a worn code disc."""

from __future__ import annotations

import torch

from umc.faults.kinds import register_kind
from umc.faults.kinds.base import POSITION, VELOCITY, Reading, SensorKind

NOISE_RATE = 150.0
"""Noise of the velocity over that of the position [1/s]: A1-Walk's healthy sensors, 1.5 rad/s over 0.01 rad."""


@register_kind
class Noise(SensorKind):
    """Normal noise on top of the healthy one; severity is the position's standard deviation."""

    name = "noise"
    unit = "[rad]"
    default = None
    concerns = (POSITION, VELOCITY)
    smallest = 0.0

    def healthy(self, nominal: object) -> float:
        """See the base class."""
        return 0.0

    def read(self, signal: torch.Tensor, reading: Reading) -> torch.Tensor:
        """See the base class."""
        rate = NOISE_RATE if reading.quantity == VELOCITY else 1.0
        noise = reading.normal(f"noise of {reading.quantity}")
        return torch.where(reading.on, signal + rate * reading.severity * noise, signal)
