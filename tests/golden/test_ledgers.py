# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The faults that a seed draws, and what a ledger says of them, stay the same from version to version."""

import hashlib
import json
from pathlib import Path

import pytest
from recorded_ledger import JOINTS, MIXED, NOMINAL, record
from umc.faults import FaultSchedule

GOLDEN = json.loads(Path(__file__).with_name("ledgers.json").read_text())
SEVERITY = {
    "backlash": {"uniform": [0.05, 0.5]},
    "bias": {"uniform": [-0.1, 0.1]},
    "braking": {"uniform": [0.5, 5.0]},
    "burst_loss": {"choice": [3, 10]},
    "dead": None,
    "derating": {"fraction": {"uniform": [0.1, 0.5]}},
    "delayed": {"choice": [1, 3]},
    "drift": 0.2,
    "dropped": {"uniform": [0.1, 0.9]},
    "effort": {"uniform": [1.0, 9.0]},
    "friction": {"fraction": 0.25},
    "frozen": None,
    "growing_delay": {"uniform": [0.01, 1.0]},
    "imu_bias": {"uniform": [0.1, 1.0]},
    "imu_dead": None,
    "imu_drift": 0.1,
    "imu_frozen": None,
    "locked": None,
    "noise": {"log_uniform": [0.01, 0.1]},
    "power_loss": None,
    "rom": {".*_hip_.*": {"log_uniform": [0.01, 0.7]}, ".*": 0.3},
    "velocity": {"fraction": {"uniform": [0.1, 0.9]}},
}


def settings_of(case: str) -> dict:
    """Arguments of the schedule of one case: a kind alone, the paper's training, or everything at once."""
    if case == "mixed":
        return MIXED
    if case == "training":
        return {"severity": {"rom": 0.3, "effort": 5.0, "velocity": 3.0}, "onset_range": (1, 20), "seed": 42}
    severity = {} if SEVERITY[case] is None else {case: SEVERITY[case]}
    return {"severity": severity, "scenario": case, "onset_range": (1, 20), "seed": 3, "nominal": NOMINAL}


def ledger(path: Path, case: str) -> str:
    """The ledger of a few episodes without its header's version of UMC."""
    record(path, FaultSchedule(JOINTS, **settings_of(case)))
    header, *lines = path.read_text().splitlines()
    return "\n".join([json.dumps({**json.loads(header), "umc": None}), *lines])


def digest(text: str) -> dict[str, object]:
    return {"lines": text.count("\n") + 1, "sha256": hashlib.sha256(text.encode()).hexdigest()}


@pytest.mark.parametrize("case", [*SEVERITY, "training", "mixed"])
def test_a_seed_draws_the_same_ledger(tmp_path, case):
    assert digest(ledger(tmp_path / "ledger.jsonl", case)) == GOLDEN[case]
