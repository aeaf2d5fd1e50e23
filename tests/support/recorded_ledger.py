# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Ledgers of made-up episodes, without a simulator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import torch
from umc.faults import FaultPlan, FaultSchedule, FaultState, JointLimits, LedgerWriter

JOINTS = [f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")]
NOMINAL = JointLimits(*(torch.full((12,), value) for value in (-1.0, 1.0, 20.0, 10.0)))
MIXED = {
    "ratios": {"normal": 1, "dead+locked": 1, "bias+noise": 2, "mine": 1, "detectable": 2, "undetectable": 2},
    "scenarios": {"mine": {"kinds": ["delayed", "rom"], "detected": True}},
    "severity": {
        "bias": {"uniform": [-0.1, 0.1]},
        "delayed": {"choice": [1, 3]},
        "effort": {"uniform": [1.0, 9.0]},
        "noise": {"log_uniform": [0.01, 0.1]},
        "rom": {".*_hip_.*": {"log_uniform": [0.01, 0.7]}, ".*": 0.3},
        "velocity": {"fraction": {"uniform": [0.1, 0.9]}},
    },
    "num_faults": (1, 3),
    "onset_range": (1, 20),
    "duration": (5, 50),
    "period": (10, 20),
    "nominal": NOMINAL,
    "seed": 7,
}
"""Settings of a schedule that draws faults of every sort; their order is part of the ledger."""

ENVS, EPISODES, LENGTH = 16, 3, 30
HEALTHY = JointLimits(*(torch.full((ENVS, 12), value) for value in (-1.0, 1.0, 20.0, math.inf)))


def record(
    path: Path, schedule: FaultSchedule, change: Callable[[FaultSchedule], object] | None = None
) -> list[FaultPlan]:
    """Record a few episodes and return their plans; the last ones are not over. `change` comes between episodes."""
    state = FaultState(schedule, ENVS)
    writer = LedgerWriter(path, state, schedule, robot="a1", step_dt=0.02)
    all_envs, plans = torch.arange(ENVS), []
    for episode in range(EPISODES):
        if change and episode:
            change(schedule)
        state.reset(all_envs)
        writer.record_plans(all_envs, all_envs + LENGTH)
        plans.append(state.plan.map(torch.clone))
        for step in range(1, LENGTH):
            changed = state.advance(torch.full((ENVS,), step), torch.full((ENVS, 12), 0.01 * step))
            writer.record_switches(changed, state.limits(HEALTHY))
    writer.close()
    return plans


def differing(a: FaultPlan, b: FaultPlan) -> list[str]:
    """Names of the columns in which two plans differ."""
    names = [field.name for field in fields(FaultPlan)]
    return [name for name in names if not torch.equal(getattr(a, name), getattr(b, name))]
