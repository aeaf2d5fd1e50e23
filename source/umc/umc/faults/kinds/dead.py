# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A dead sensor: the paper's sensor fault."""

from __future__ import annotations

import torch

from umc.faults.kinds import register_kind
from umc.faults.kinds.base import Reading, SensorKind


@register_kind
class Dead(SensorKind):
    """Position, velocity and last action all read the severity, 0 unless given; the policy masks the joint."""

    name = "dead"
    unit = "[as read]"
    default = 0.0
    rank = 2  # nothing shines through
    blinds = True

    def read(self, signal: torch.Tensor, reading: Reading) -> torch.Tensor:
        """See the base class."""
        return torch.where(reading.on, reading.severity, signal)
