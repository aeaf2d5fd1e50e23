# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The faults that a seed draws, and what a ledger says of them, stay the same from version to version."""

import hashlib
import json
import math
from pathlib import Path

import pytest
import torch
from umc.faults import FaultSchedule, FaultState, JointLimits, LedgerWriter

GOLDEN = json.loads(Path(__file__).with_name("ledgers.json").read_text())
JOINTS = [f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")]
ENVS, EPISODES, LENGTH = 16, 3, 30
HEALTHY = JointLimits(*(torch.full((ENVS, 12), value) for value in (-1.0, 1.0, 20.0, math.inf)))
NOMINAL = JointLimits(*(torch.full((12,), value) for value in (-math.inf, 1.0, 20.0, 10.0)))
SEVERITY = {
    "bias": {"uniform": [-0.1, 0.1]},
    "dead": None,
    "delayed": {"choice": [1, 3]},
    "drift": 0.2,
    "dropped": {"uniform": [0.1, 0.9]},
    "effort": {"uniform": [1.0, 9.0]},
    "frozen": None,
    "locked": None,
    "noise": {"log_uniform": [0.01, 0.1]},
    "power_loss": None,
    "rom": {".*_hip_.*": {"log_uniform": [0.01, 0.7]}, ".*": 0.3},
    "velocity": {"fraction": {"uniform": [0.1, 0.9]}},
}
MIXED = {
    "ratios": {"normal": 1, "dead+locked": 1, "bias+noise": 2, "mine": 1, "detectable": 2, "undetectable": 2},
    "scenarios": {"mine": {"kinds": ["delayed", "rom"], "detected": True}},
    "severity": {name: SEVERITY[name] for name in ("bias", "delayed", "effort", "noise", "rom", "velocity")},
    "num_faults": (1, 3),
    "onset_range": (1, 20),
    "duration": (5, 50),
    "period": (10, 20),
    "seed": 7,
}


def settings_of(case: str) -> dict:
    """Arguments of the schedule of one case: a kind alone, the paper's training, or everything at once."""
    if case == "mixed":
        return {**MIXED, "nominal": NOMINAL}
    if case == "training":
        return {"severity": {"rom": 0.3, "effort": 5.0, "velocity": 3.0}, "onset_range": (1, 20), "seed": 42}
    severity = {} if SEVERITY[case] is None else {case: SEVERITY[case]}
    return {"severity": severity, "scenario": case, "onset_range": (1, 20), "seed": 3, "nominal": NOMINAL}


def ledger(path: Path, case: str) -> str:
    """The ledger of a few episodes without its header's version of UMC."""
    schedule = FaultSchedule(JOINTS, **settings_of(case))
    state = FaultState(schedule, ENVS)
    writer = LedgerWriter(path, state, schedule, robot="a1", step_dt=0.02)
    all_envs = torch.arange(ENVS)
    for _ in range(EPISODES):
        state.reset(all_envs)
        writer.record_plans(all_envs, all_envs + LENGTH)
        for step in range(1, LENGTH):
            changed = state.advance(torch.full((ENVS,), step), torch.full((ENVS, 12), 0.01 * step))
            writer.record_switches(changed, state.limits(HEALTHY))
    writer.close()
    header, *lines = path.read_text().splitlines()
    return "\n".join([json.dumps({**json.loads(header), "umc": None}), *lines])


def digest(text: str) -> dict[str, object]:
    return {"lines": text.count("\n") + 1, "sha256": hashlib.sha256(text.encode()).hexdigest()}


@pytest.mark.parametrize("case", [*SEVERITY, "training", "mixed"])
def test_a_seed_draws_the_same_ledger(tmp_path, case):
    assert digest(ledger(tmp_path / "ledger.jsonl", case)) == GOLDEN[case]
