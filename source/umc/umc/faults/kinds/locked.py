# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A locked joint: a gearbox or a brake holds it where it is."""

from __future__ import annotations

from dataclasses import replace

import torch

from umc.faults.kinds import register_kind
from umc.faults.kinds.base import JointKind, Onset
from umc.faults.limits import JointLimits


@register_kind
class Locked(JointKind):
    """The joint stays at its position at onset, whatever the motor and the ground do."""

    name = "locked"
    rank = 1  # what is left of a window is one position

    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: Onset) -> JointLimits:
        """See the base class."""
        return replace(
            limits,
            lower=torch.where(on, onset.position, limits.lower),
            upper=torch.where(on, onset.position, limits.upper),
        )
