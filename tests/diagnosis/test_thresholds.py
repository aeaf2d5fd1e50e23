# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Thresholds by the false alarms that are accepted."""

import pytest
import torch
from umc.detection import Detector
from umc.diagnosis.thresholds import CANDIDATES, ON_STEPS, RELEASE, choose, decide, false_alarms
from umc.models import JointLayout

DT = 0.02


def test_decisions_are_those_of_the_detector():
    torch.manual_seed(0)
    predicted, starts = torch.rand(40, 2, 3), torch.zeros(40, 2, dtype=torch.bool)
    starts[20, 1] = True
    reports = decide(predicted, starts, torch.tensor([0.6]))[:, 0]
    detector = Detector(JointLayout.term_major(("a", "b", "c"), 9, 0)).eval()
    detector.thresholds[:] = torch.tensor([0.6, 0.6 * RELEASE, ON_STEPS])
    state = detector.start(2)
    for step, value in enumerate(predicted):
        logits = torch.full((2, 3, 6), -1e9)
        logits[..., 0], logits[..., 1] = (1.0 - value).log(), value.log()
        detector.step = lambda obs, state, logits=logits: ((logits, logits), torch.zeros(2, 3, 10), state)
        state = state * (~starts[step])[:, None, None]
        found = detector(torch.zeros(2, 9), state)
        state = found.state
        assert torch.equal(found.reported[..., 0], reports[step]), step


def alarms(reports, faulty, starts=None):
    """Alarms a minute of one robot with one joint."""
    reports = torch.tensor(reports, dtype=torch.bool).view(-1, 1, 1, 1)
    faulty = torch.tensor(faulty, dtype=torch.bool).view(-1, 1)
    starts = torch.zeros_like(faulty) if starts is None else torch.tensor(starts, dtype=torch.bool).view(-1, 1)
    count, minutes = false_alarms(reports, faulty, starts, DT)
    return float(count) / minutes


def test_a_report_of_a_healthy_robot_is_one_alarm_however_long_it_lasts():
    minute = round(60 / DT)
    reports = [0] * minute
    reports[100:150] = [1] * 50
    reports[500] = 1
    assert alarms(reports, [0] * minute) == pytest.approx(2.0)


def test_a_report_during_and_just_after_a_fault_is_none():
    minute = round(60 / DT)
    faulty, reports = [0] * minute, [0] * minute
    faulty[100:200] = [1] * 100
    reports[110:120] = reports[210:220] = [1] * 10
    assert alarms(reports, faulty) == 0.0
    reports[260] = 1  # more than a second later
    assert alarms(reports, faulty) == pytest.approx(1.0, rel=0.1)


def test_another_episode_is_another_robot():
    minute = round(60 / DT)
    faulty, starts, reports = [0] * minute, [0] * minute, [0] * minute
    faulty[:100], starts[100], reports[110] = [1] * 100, 1, 1
    assert alarms(reports, faulty, starts) == pytest.approx(1.0, rel=0.1)


def test_the_lowest_threshold_with_few_alarms_is_chosen():
    torch.manual_seed(0)
    predicted = 0.85 * torch.rand(3000, 4, 2)
    nothing = torch.zeros(3000, 4, dtype=torch.bool)
    chosen = choose(predicted, nothing, nothing, DT, most=0.0)
    assert (chosen.on, chosen.off, chosen.false_alarms) == (0.85, 0.85 * RELEASE, 0.0)
    loose = choose(predicted, nothing, nothing, DT, most=1e6)
    assert loose.on == CANDIDATES[0]
    assert choose(torch.ones(100, 1, 1), nothing[:100, :1], nothing[:100, :1], DT, 0.0).on == CANDIDATES[-1]
