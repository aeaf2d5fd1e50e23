# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a detector in the loop reports during an evaluation."""

import json
from dataclasses import replace

import pytest
import torch
from made_up_results import changed
from made_up_study import made_up_study
from umc.evaluation.detections import NOT_FOUND, DetectionRecorder, Detections, detection_score
from umc.evaluation.metrics import Outcome
from umc.evaluation.report import write_study_report
from umc.evaluation.study import Study, load_study, save_study
from umc.utils.errors import UmcError

DT = 0.02
ONSET = 5


def recorded(reports, joints, open_until=None, steps=20, faulty=None):
    """Record one env per entry; ``reports`` are (env, joint, first step, last step)."""
    joints = torch.tensor(joints, dtype=torch.bool)
    faulty = joints.any(dim=1) if faulty is None else torch.tensor(faulty)
    recorder = DetectionRecorder(torch.full((len(joints),), ONSET), joints, faulty)
    for number in range(1, steps + 1):
        reported = torch.zeros_like(joints)
        for env, joint, first, last in reports:
            reported[env, joint] |= first <= number <= last
        going = torch.tensor([number < end for end in open_until or [steps + 1] * len(joints)])
        recorder.record(number, reported, going)
    return recorder.detections()


def test_the_first_report_of_a_faulty_joint_finds_it():
    found = recorded([(0, 1, 8, 20), (0, 0, 6, 20), (0, 2, 12, 20)], [[False, True, True]])
    assert (found.delay.tolist(), found.found_joints.tolist()) == ([3], [2])
    assert found.false_alarms.tolist() == [0]  # joint 0 is healthy, but the robot has a fault
    assert found.healthy_steps.tolist() == [ONSET - 1]


def test_after_a_fault_of_the_imu_no_joint_is_found_and_no_report_is_a_false_alarm():
    found = recorded([(0, 0, 9, 20)], [[False, False]], faulty=[True])
    assert (found.delay.tolist(), found.found_joints.tolist()) == ([NOT_FOUND], [0])
    assert (found.false_alarms.tolist(), found.healthy_steps.tolist()) == ([0], [ONSET - 1])


def test_reports_of_robots_without_a_fault_are_false_alarms():
    faulty, healthy = [True, False], [False, False]
    found = recorded([(0, 0, 2, 4), (1, 0, 2, 4), (1, 0, 9, 9), (1, 1, 15, 20)], [faulty, healthy])
    assert found.false_alarms.tolist() == [1, 3]
    assert found.healthy_steps.tolist() == [ONSET - 1, 20]
    assert found.delay.tolist() == [NOT_FOUND, NOT_FOUND]


def test_a_robot_that_has_ended_reports_nothing():
    found = recorded([(0, 0, 12, 20), (1, 0, 12, 20)], [[True], [False]], open_until=[10, 10])
    assert found.delay.tolist() == [NOT_FOUND, NOT_FOUND]
    assert found.false_alarms.tolist() == [0, 0]
    assert found.healthy_steps.tolist() == [ONSET - 1, 9]


def with_detections(study: Study, delay: int = 10) -> Study:
    """Give the second policy a detector that finds a faulty joint of every second robot, and one alarm in each."""
    first, second, *rest = study.policies
    run = second.run
    count = len(run.cell)
    even = run.member % 2 == 0
    faulty = run.joints.any(dim=1)
    found = Detections(
        torch.where(even & faulty, delay, NOT_FOUND),
        (even & faulty).long(),
        torch.ones(count, dtype=torch.long),
        torch.full((count,), 75),
    )
    return replace(study, policies=(first, replace(second, run=replace(run, detections=found)), *rest))


def test_figures_are_those_of_evaluated_robots_that_lasted():
    study = made_up_study(members=20)
    result = with_detections(study).policies[1]
    run, rows = result.run, study.scenario_rows(result, 2)
    found = detection_score(run.detections, run.episodes, run.joints, DT, rows)
    faulty = rows & run.episodes.evaluated & run.joints.any(dim=1)
    lasted = run.episodes.steps_after_onset + (run.episodes.outcome == Outcome.FAILED)
    known = run.detections.delay[faulty] != NOT_FOUND
    assert found.robots == int(faulty.sum())
    assert found.within[0.25].value == pytest.approx(
        float(known.sum() / (known | (lasted[faulty] > round(0.25 / DT))).sum())
    )
    assert found.ever.value == pytest.approx(float(known.float().mean()))
    assert found.joints == pytest.approx(float(known.sum() / run.joints[faulty].sum()))
    assert found.false_alarms.value == pytest.approx(1 / (75 * DT / 60))
    assert found.false_alarms.low < found.false_alarms.value < found.false_alarms.high
    late = detection_score(with_detections(study, 40).policies[1].run.detections, run.episodes, run.joints, DT, rows)
    assert late.within[0.25].value == 0.0
    healthy = detection_score(run.detections, run.episodes, run.joints, DT, study.scenario_rows(result, 8))
    assert (healthy.robots, healthy.ever, healthy.median_delay) == (0, None, None)
    assert healthy.false_alarms.value > 0.0


def test_a_robot_that_falls_before_a_time_does_not_count_for_it():
    study = made_up_study(members=20)
    result = with_detections(study).policies[1]
    unreported = result.run.member % 2 == 1
    steps = torch.where(unreported, 2, result.run.episodes.steps_after_onset)
    outcome = torch.where(unreported, int(Outcome.FAILED), int(Outcome.UP))
    run = changed(result, steps_after_onset=steps, outcome=outcome).run
    found = detection_score(run.detections, run.episodes, run.joints, DT, study.scenario_rows(result, 2))
    assert (found.within[0.25].value, found.ever.value) == (1.0, 0.5)


def test_the_report_has_a_table_of_the_detector_and_a_study_keeps_it(tmp_path):
    study = with_detections(made_up_study(members=4))
    save_study(tmp_path / "study.pt", study)
    again = load_study(tmp_path / "study.pt")
    assert again.policies[0].run.detections is None
    assert torch.equal(again.policies[1].run.detections.delay, study.policies[1].run.detections.delay)
    page = write_study_report(again, tmp_path, resamples=50)
    title = f"{study.policies[1].label}: what the detector reported, by scenario"
    assert page.read_text().count(title) == 1
    policies = json.loads((tmp_path / "report.json").read_text())["policies"]
    assert ["detector" in one for one in policies] == [False, True, False]
    assert policies[1]["detector"]["2"]["within_s"]["0.25"]["value"] > 0.0
    assert policies[1]["detector"]["8"]["median_delay"] is None


def test_a_study_with_a_part_of_the_reports_is_refused(tmp_path):
    study = with_detections(made_up_study(members=2))
    save_study(tmp_path / "study.pt", study)
    content = torch.load(tmp_path / "study.pt", weights_only=True)
    del content["policies"][1]["run"]["detections.delay"]
    torch.save(content, tmp_path / "part.pt")
    with pytest.raises(UmcError, match="lacks the tensors"):
        load_study(tmp_path / "part.pt")
