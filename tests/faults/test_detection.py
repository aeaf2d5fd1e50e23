# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Mask and flag of an oracle that is late, misses faults and raises false alarms."""

import pytest
import torch
from umc.faults import FaultSchedule, FaultState, find_kind, inject_fault
from umc.faults.detection import CorruptedOracle, NoDetection

JOINTS = tuple("abcdef")
STEP_DT = 0.02
ONSET = 10


def make(num_envs=64, scenario="dead+rom", **errors):
    """Robots whose faults set in at once."""
    schedule = FaultSchedule(JOINTS, scenario=scenario, severity={"rom": 0.3}, num_joints=(2, 3), onset=ONSET, seed=3)
    state = FaultState(schedule, num_envs)
    state.reset(torch.arange(num_envs))
    return state, CorruptedOracle(state, STEP_DT, **errors)


def at(state, detection, step):
    """Mask and flag at an env step."""
    state.advance(torch.full((state.num_envs,), step), torch.zeros(state.num_envs, len(JOINTS)))
    detection.update()
    return detection.joint_mask.clone(), detection.fault_flag.clone()


def test_without_errors_it_is_the_oracle():
    state, detection = make()
    for step in (1, ONSET - 1, ONSET, ONSET + 1, ONSET + 500):
        mask, flag = at(state, detection, step)
        assert torch.equal(mask, state.joint_mask)
        assert torch.equal(flag, state.fault_flag)
    assert mask.any()
    assert (flag == 1.0).all()


def test_a_fault_is_found_late():
    state, detection = make(delay=5)
    at(state, detection, ONSET)
    mask, flag = at(state, detection, ONSET + 4)
    assert state.joint_mask.any()
    assert not mask.any()
    assert (flag == -1.0).all()
    mask, flag = at(state, detection, ONSET + 5)
    assert torch.equal(mask, state.joint_mask)
    assert (flag == 1.0).all()


def test_a_further_fault_of_a_joint_found_earlier_is_reported_at_once_and_one_after_a_pause_late():
    state, detection = make(num_envs=1, scenario="normal", delay=20)
    for episode in range(2):
        reported = []
        for step in range(1, 100):
            for kind, onset, end in (("locked", 5, 35), ("effort", 30, 50), ("locked", 60, None)):
                if step == onset:
                    number = inject_fault(state, 0, 2, find_kind(kind), 5.0 if kind == "effort" else 0.0)[-1]
                    state.plan.end[0, number] = end or state.plan.end[0, number]
            at(state, detection, step)
            reported.append(bool(detection.has_joint_fault[0, 2]))
        assert reported == [25 <= step < 50 or step >= 80 for step in range(1, 100)], episode
        state.reset(torch.arange(1))


def test_a_missed_fault_is_missed_for_the_episode_and_others_in_the_next():
    state, detection = make(num_envs=2000, missed=0.3)
    first, flag = at(state, detection, ONSET)
    true = state.joint_mask
    assert not (first & ~true).any()
    assert (true & ~first).sum() / true.sum() == pytest.approx(0.3, abs=0.03)
    assert torch.equal(flag[:, 0] == 1.0, (state.detected & first).any(dim=1))
    assert torch.equal(at(state, detection, ONSET + 70)[0], first)
    state.reset(torch.arange(2000))
    second, _ = at(state, detection, ONSET)
    both = true & state.joint_mask
    assert (first != second)[both].any()


def test_false_alarms_come_at_their_rate_and_last_as_long_as_they_should(monkeypatch):
    """A healthy robot, 30 s long: 6 alarms in a minute are 3."""
    state, detection = make(num_envs=400, scenario="normal", false_alarms=6.0, alarm_steps=20)
    before = torch.zeros(400, len(JOINTS), dtype=torch.bool)
    begun, on = 0, 0
    for step in range(1, 1501):
        mask, flag = at(state, detection, step)
        again, _ = at(state, detection, step)  # every observation term asks
        assert torch.equal(mask, again)
        assert torch.equal(flag[:, 0] == 1.0, mask.any(dim=1))
        begun += int((mask & ~before).sum())
        on += int(mask.sum())
        before = mask
    assert begun / 400 == pytest.approx(3.0, rel=0.1)
    assert on / begun == pytest.approx(20.0, rel=0.05)
    monkeypatch.setattr(state, "uniform", None)  # they are drawn once in an env step
    detection.update()
    monkeypatch.undo()
    # a new episode begins without
    state.reset(torch.arange(400))
    assert at(state, detection, 0)[0].float().mean() < 0.001


def test_errors_are_the_same_for_another_policy():
    masks = [at(*make(missed=0.5, false_alarms=600.0), ONSET)[0] for _ in range(2)]
    assert masks[0].any()
    assert torch.equal(*masks)


def test_nobody_reports_anything():
    state, _ = make()
    mask, flag = at(state, NoDetection(state), ONSET)
    assert not mask.any()
    assert (flag == -1.0).all()
