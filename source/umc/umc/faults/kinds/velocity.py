# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Less speed: the joint is sluggish, whoever moves it."""

from __future__ import annotations

from dataclasses import replace

import torch

from umc.faults.kinds import register_kind
from umc.faults.kinds.base import JointKind, Onset
from umc.faults.limits import JointLimits


@register_kind
class Velocity(JointKind):
    """The joint turns no faster than a speed; severity is this speed, or a fraction of the healthy one."""

    name = "velocity"
    unit = "[rad/s]"
    default = None
    smallest = 0.0

    def healthy(self, nominal: JointLimits | None) -> torch.Tensor | None:
        """See the base class."""
        return None if nominal is None else nominal.velocity

    def whole(self, nominal: JointLimits | None) -> torch.Tensor | None:
        """See the base class."""
        return self.healthy(nominal)

    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: Onset) -> JointLimits:
        """See the base class."""
        return replace(limits, velocity=torch.where(on, torch.minimum(limits.velocity, severity), limits.velocity))
