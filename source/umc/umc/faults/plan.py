# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Planned faults: one plan for each env and episode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch

NEVER = 2**62
"""A step that no episode reaches."""

NO_SCENARIO = -1
"""Index of the scenario of a manual fault."""


@dataclass(frozen=True)
class FaultPlan:
    """Up to M faults in one episode of each of N envs with J joints; K kinds are in use.

    Fault ``m`` is on in env steps from its onset to before its end, in the first ``on`` steps of every ``period``.
    """

    scenario: torch.Tensor
    """Index into the schedule's scenarios, dtype int64. Shape is (N, M)."""
    joints: torch.Tensor
    """Faulty joints, dtype bool. Shape is (N, M, J)."""
    kinds: torch.Tensor
    """Kinds that each faulty joint gets, dtype bool. Shape is (N, M, K)."""
    detected: torch.Tensor
    """Whether the fault is detected, dtype bool. Shape is (N, M)."""
    onset: torch.Tensor
    """First env step whose observation shows the fault, dtype int64; :data:`NEVER` if none. Shape is (N, M)."""
    end: torch.Tensor
    """First env step that is healthy again, dtype int64; :data:`NEVER` if the fault stays. Shape is (N, M)."""
    period: torch.Tensor
    """Env steps from one return of an intermittent fault to the next, dtype int64; :data:`NEVER`. Shape is (N, M)."""
    on: torch.Tensor
    """How many of these steps it is on, dtype int64. Shape is (N, M)."""
    severity: torch.Tensor
    """Severity, in the kind's unit. Shape is (N, M, K, J)."""
    placement: torch.Tensor
    """Where a range-of-motion window lies between its two extreme positions, in [0, 1). Shape is (N, M, J)."""

    def is_on(self, step: torch.Tensor) -> torch.Tensor:
        """Return which faults are on, shape (N, M), at an env step of the episode, int64 of shape (N,)."""
        since = step.unsqueeze(1) - self.onset
        return (since >= 0) & (step.unsqueeze(1) < self.end) & (since % self.period < self.on)

    def map(self, change: Callable[[torch.Tensor], torch.Tensor]) -> FaultPlan:
        """Apply a function, such as a choice of rows, to every column."""
        return FaultPlan(**{column.name: change(getattr(self, column.name)) for column in fields(self)})


def empty_plan(rows: int, faults: int, kinds: int, joints: int, device: torch.device) -> FaultPlan:
    """Make plans without faults: N rows, M faults, K kinds and J joints."""

    def full(value: float, *shape: int) -> torch.Tensor:
        return torch.full((rows, faults, *shape), value, device=device)

    times = {name: full(NEVER) for name in ("onset", "end", "period", "on")}
    return FaultPlan(
        scenario=full(0),
        joints=full(False, joints),
        kinds=full(False, kinds),
        detected=full(False),
        severity=full(0.0, kinds, joints),
        placement=full(0.0, joints),
        **times,
    )


def widen_plan(plan: FaultPlan, faults: int, kinds: int, places: Sequence[int]) -> FaultPlan:
    """Add faults that never set in, and kinds; ``places`` are the new indices of the plan's kinds."""
    rows, old, joints = plan.joints.shape
    wide = empty_plan(rows, faults, kinds, joints, plan.joints.device)
    for field in fields(FaultPlan):
        target, value = getattr(wide, field.name)[:, :old], getattr(plan, field.name)
        if field.name in ("kinds", "severity"):
            target[:, :, list(places)] = value
        else:
            target.copy_(value)
    return wide
