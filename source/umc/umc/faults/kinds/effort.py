# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Less force: the motor is weak."""

from __future__ import annotations

from dataclasses import replace

import torch

from umc.faults.kinds import register_kind
from umc.faults.kinds.base import JointKind, Onset
from umc.faults.limits import JointLimits


@register_kind
class Effort(JointKind):
    """The motor gives no more than a torque; severity is this torque, or a fraction of the healthy one."""

    name = "effort"
    unit = "[N*m]"
    default = None
    smallest = 0.0

    def healthy(self, nominal: JointLimits | None) -> torch.Tensor | None:
        """See the base class."""
        return None if nominal is None else nominal.effort

    def whole(self, nominal: JointLimits | None) -> torch.Tensor | None:
        """See the base class."""
        return self.healthy(nominal)

    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: Onset) -> JointLimits:
        """See the base class."""
        return replace(limits, effort=torch.where(on, torch.minimum(limits.effort, severity), limits.effort))
