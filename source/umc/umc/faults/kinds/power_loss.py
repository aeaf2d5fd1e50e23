# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Power loss: the motor is off and the joint swings freely."""

from __future__ import annotations

from dataclasses import replace

import torch

from umc.faults.kinds import register_kind
from umc.faults.kinds.base import JointKind, Onset
from umc.faults.limits import JointLimits


@register_kind
class PowerLoss(JointKind):
    """The motor gives no torque at all; armature and passive friction remain."""

    name = "power_loss"

    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: Onset) -> JointLimits:
        """See the base class."""
        return replace(limits, effort=limits.effort.masked_fill(on, 0.0))
