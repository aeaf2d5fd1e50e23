# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a detector should say: the faults that joints have now."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from umc.detection.network import JOINT_KINDS, SENSOR_KINDS
from umc.faults import CommandKind, FaultKind, FaultState, JointKind, JointLimits, SensorKind, find_kind


@dataclass(frozen=True)
class Labels:
    """Faults of E envs with J joints."""

    sensor: Tensor
    """0 for a working sensor, else 1 + the index of its fault in the sensor kinds of Labeller.kinds, which begin with
    SENSOR_KINDS, int64. Shape is (E, J)."""
    joint: Tensor
    """The same of joint faults and JOINT_KINDS; a fault of a joint's command is one of the joint. Shape is (E, J)."""
    severity: Tensor
    """Severity of these two, as Detection.severity has it; 0 without fault. Shape is (E, J, 2)."""


class Labeller:
    """Reads labels off the faults of running envs.

    Kinds that a detector does not know have labels beyond its own.

    Args:
        state: The faults.
        nominal: Limits of the healthy joints, every shape (J,).
    """

    def __init__(self, state: FaultState, nominal: JointLimits) -> None:
        self._state = state
        count = len(state.joint_names)
        self.kinds = (
            (*SENSOR_KINDS, *_others(state, SensorKind)),
            (*JOINT_KINDS, *_others(state, JointKind), *_others(state, CommandKind)),
        )
        """Sensor kinds and joint kinds in the order of their labels."""
        self.limiting = len(JOINT_KINDS) + len(_others(state, JointKind))
        """Label of the last joint kind that lowers limits; those of commands follow."""
        references = [find_kind(kind).severity_reference(nominal) for kind in (*self.kinds[0], *self.kinds[1])]
        columns = [torch.as_tensor(1.0 if one is None else one, dtype=torch.float).expand(count) for one in references]
        self._reference = torch.stack([column.to(state.device) for column in columns], dim=-1)
        # a joint without a limit has no part of it
        self._reference = self._reference.masked_fill(~self._reference.isfinite(), 1.0)

    def __call__(self) -> Labels:
        """Return the labels of this env step."""
        found = [self._state.live_fault(kind) for kind in (*self.kinds[0], *self.kinds[1])]
        on = torch.stack([one.on for one in found], dim=-1)
        severity = torch.stack([one.severity for one in found], dim=-1) / self._reference
        sensors = len(self.kinds[0])
        sensor, joint = _first(on[..., :sensors]), _first(on[..., sensors:])
        known = torch.stack(
            (severity_of(severity[..., :sensors], sensor), severity_of(severity[..., sensors:], joint)), -1
        )
        return Labels(sensor, joint, known)


def severity_of(severity: Tensor, label: Tensor) -> Tensor:
    """Return the severity (..., J) of the labelled kinds, of those of all kinds (..., J, K); 0 without fault."""
    chosen = severity.gather(-1, (label - 1).clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return chosen * (label > 0)


def _others(state: FaultState, base: type[FaultKind]) -> list[str]:
    """Return the kinds of an env that no detector tells apart."""
    known = (*SENSOR_KINDS, *JOINT_KINDS)
    return [kind.name for kind in state.kinds if isinstance(kind, base) and kind.name not in known]


def _first(on: Tensor) -> Tensor:
    """Return 1 + the index of the first that is on, else 0."""
    return torch.where(on.any(dim=-1), on.int().argmax(dim=-1) + 1, 0)
