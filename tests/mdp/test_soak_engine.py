# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A short soak on both engines finds nothing, and the checks of the soak find what is wrong."""

import json
import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from umc.faults import KINDS, FaultSchedule, FaultState, JointLimits, JointRange, Ledger, LedgerWriter, read_ledger

from benchmarks import soak_checks as checks

SOAK = str(Path(__file__).parents[2] / "benchmarks" / "soak.py")
EPISODES, ENVS = 256, 64
OVERSHOOT = 0.01
"""How far joints of the made-up robot may get out of their windows [rad]."""


@pytest.mark.engine
@pytest.mark.parametrize("physics", ["newton_mjwarp", "ovphysx"])
@pytest.mark.parametrize("robot", ["A1", "G1"])
def test_a_short_soak_finds_nothing(robot, physics, tmp_path):
    out = tmp_path / "findings.json"
    sizes = [f"--episodes={EPISODES}", f"--num_envs={ENVS}"]
    flags = [f"--robot={robot}", f"--physics={physics}", *sizes, f"--json={out}"]
    child = subprocess.run([sys.executable, SOAK, *flags], capture_output=True, text=True, timeout=560, check=False)
    assert child.returncode == 0, child.stdout[-3000:] + child.stderr[-3000:]
    findings = json.loads(out.read_text())
    counts, worst = Counter(findings["counts"]), findings["worst"]
    assert counts["episodes"] >= EPISODES
    assert counts["falls"] > EPISODES / 2  # it is violent
    assert counts["time-outs"] > 0
    assert counts["joints held to limits"] > EPISODES
    assert counts["samples of capped speed"] > 500
    assert {kind for kind in KINDS if counts[f"faults that set in: {kind}"] >= 5} == set(KINDS)
    assert worst["speed over the cap [-]"] > 0.9  # it is limited, and not still


WHOLE = JointRange(-1.0, 1.0, 20.0, 10.0)
HEALTHY = JointLimits(*(torch.full((4, 3), value) for value in vars(WHOLE).values()))
ONSET = 3


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    """One episode of four envs, whose three joints have all joint faults from step 3 on."""
    severity = {"rom": 0.2, "effort": 5.0, "velocity": 3.0}
    schedule = FaultSchedule(
        ["a", "b", "c"], scenario="rom+effort+velocity", severity=severity, num_joints=(3, 3), onset=ONSET
    )
    state = FaultState(schedule, 4)
    writer = LedgerWriter(tmp_path / "ledger.jsonl", state)
    state.reset(torch.arange(4))
    writer.record_plans(torch.arange(4), torch.zeros(4))
    changed = state.advance(torch.full((4,), ONSET), torch.zeros(4, 3))
    writer.record_switches(changed, state.limits(HEALTHY))
    return read_ledger(writer.path)


def measured(ledger: Ledger) -> list:
    """What physics would show that keeps to the ledger, with each bound nearly reached."""
    segments = []
    for env in range(4):
        for step in (0, ONSET):
            limits = ledger.episodes[env, 0].limits_at(step)
            able = [limits.get(joint, WHOLE) for joint in "abc"]
            names = ("lower", "upper", "effort", "velocity")
            rows = {name: torch.tensor([getattr(one, name) for one in able]) for name in names}
            segments.append(
                checks.Segment(
                    env=env,
                    episode=0,
                    step=step,
                    samples=100,
                    torque=rows["effort"].clone(),
                    lowest=rows["lower"] - 0.9 * OVERSHOOT,
                    highest=rows["upper"] + 0.9 * OVERSHOOT,
                    fastest=1.05 * rows["velocity"],
                    too_fast=torch.zeros(3),
                    start=torch.zeros(3),
                    engine=rows,
                )
            )
    return segments


def found(ledger: Ledger, segments: list) -> list[str]:
    findings = checks.Findings(OVERSHOOT)
    checks.compare(ledger, segments, findings)
    return findings.violations


def test_the_checks_find_nothing_where_nothing_is_wrong(ledger):
    segments = measured(ledger)
    assert found(ledger, segments) == []
    segments[1].start[1] = segments[1].highest[1] = 1.3  # a joint that was pressed beyond its limits may start there
    assert found(ledger, segments) == []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda segments: segments[3].torque.mul_(1.002), r"env 1, .* from step 3 on, a: torque above the cap"),
        (lambda segments: segments[3].highest.__setitem__(2, 1.5), "env 1, .* c: joint outside its window"),
        (lambda segments: segments[3].lowest.sub_(OVERSHOOT), "share of windows left by 0.01 rad"),
        (lambda segments: segments[3].lowest.fill_(math.nan), "joint outside its window .* is nan"),
        (lambda segments: segments[3].too_fast.fill_(9.0), "share of speeds above 1.1 x the cap"),
        (lambda segments: segments[3].engine["effort"].fill_(20.0), "limit in the engine beside the ledger"),
        (lambda segments: segments[3].engine["velocity"].fill_(10.0), "limit in the engine beside the ledger"),
        (lambda segments: segments[2].engine["lower"].add_(1e-3), "from step 0 on, .*limit in the engine"),
        (lambda segments: setattr(segments[3], "episode", 1), "env 1, episode 1 is not in the ledger"),
        (lambda segments: setattr(segments[3], "step", 4), r"env 1, episode 0: switches \[3\], physics \[4\]"),
    ],
)
def test_the_checks_find_what_is_wrong(ledger, damage, message):
    segments = measured(ledger)
    damage(segments)
    violations = found(ledger, segments)
    assert any(re.search(message, line) for line in violations), violations
