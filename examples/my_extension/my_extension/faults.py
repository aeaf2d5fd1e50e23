# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Two kinds of faults that UMC does not have: a sensor that lost resolution, and a jammed joint."""

from __future__ import annotations

from dataclasses import replace
from typing import override

import torch
from umc.faults import JointLimits
from umc.faults.kinds import POSITION, JointKind, OnsetState, SensorContext, SensorKind, register_kind


@register_kind
class Coarse(SensorKind):
    """The encoder has lost resolution: the position reads in steps as large as the severity."""

    name = "coarse"
    unit = "[rad]"
    default = None  # a severity has to be given
    min_severity = 0.0  # excluded
    quantities = (POSITION,)  # speed and last action stay right

    @override
    def read(self, signal: torch.Tensor, context: SensorContext) -> torch.Tensor:
        step = torch.where(context.on, context.severity, 1.0)  # healthy joints have no severity to divide by
        return torch.where(context.on, (signal / step).round() * step, signal)


@register_kind
class Ratchet(JointKind):
    """A tooth has jammed the gearbox: the joint turns no lower than its position at onset."""

    name = "ratchet"
    reduces_range = True

    @override
    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: OnsetState) -> JointLimits:
        lowest = torch.minimum(torch.maximum(onset.position, limits.lower), limits.upper)
        return replace(limits, lower=torch.where(on, lowest, limits.lower))
