# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A frozen sensor: the last message is reported for ever."""

from __future__ import annotations

import torch

from umc.faults.kinds import register_kind
from umc.faults.kinds.base import POSITION, VELOCITY, Reading, SensorKind


@register_kind
class Frozen(SensorKind):
    """Position and velocity keep what they read before the onset, noise included."""

    name = "frozen"
    rank = 1  # what is frozen carries no fresh noise
    concerns = (POSITION, VELOCITY)
    remembers = True

    def read(self, signal: torch.Tensor, reading: Reading) -> torch.Tensor:
        """See the base class."""
        return torch.where(reading.on, reading.held, signal)
