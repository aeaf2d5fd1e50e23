# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The figures of the healthy gait on motions whose answer is known."""

import pytest
import torch
from umc.evaluation.gait import GaitRecorder, LoadRecorder
from umc.evaluation.metrics import Step
from umc.evaluation.report import load_table

DT = 0.02
CAPS = {"rom": 0.3, "effort": 5.0, "velocity": 3.0}


def march(recorder, steps, fell_at=None, broke_at=None, speed=0.5, standing=False):
    """Env 0 walks along x with foot a on the ground half of the time; env 1 does too unless told otherwise."""
    for step in range(1, steps + 1):
        x = speed * DT * step
        contact = torch.tensor([[step % 4 in (1, 2), True], [step % 4 in (1, 2), True]])
        other = 0.0 if standing else 1.0
        state = Step(
            torch.tensor([[x, 0.0], [x * other, 0.0]]),
            torch.tensor([speed, speed * other]),
            torch.tensor([0.3, 0.3]),
            fell=torch.tensor([False, step == fell_at]),
            non_finite=torch.tensor([False, step == broke_at]),
            timed_out=torch.zeros(2, dtype=torch.bool),
        )
        recorder.record(state, contact)
    return recorder.report(command=0.5, step_dt=DT, steps=steps)


def test_speed_height_and_contacts_of_a_steady_march():
    report = march(GaitRecorder(2, ("a", "b")), 100)
    assert report.forward_speed == pytest.approx(0.5)
    assert report.net_speed == pytest.approx(0.5, rel=1e-4)
    assert report.trunk_height == pytest.approx(0.3)
    assert report.duty_factor == {"a": pytest.approx(0.5), "b": pytest.approx(1.0)}
    # foot a leaves the ground once in four steps of 0.02 s
    assert report.swings_per_second == {"a": pytest.approx(12.5), "b": 0.0}
    assert report.mean_feet_in_contact == pytest.approx(1.5)
    assert (report.falls, report.standing, report.seconds) == (0, 0, pytest.approx(2.0))


def test_a_robot_that_stands_still_is_named():
    report = march(GaitRecorder(2, ("a", "b")), 100, standing=True)
    assert report.standing == 1
    assert report.forward_speed == pytest.approx(0.25)


def test_a_fall_ends_the_record_of_that_robot_only():
    report = march(GaitRecorder(2, ("a", "b")), 100, fell_at=50)
    assert report.falls == 1
    assert report.forward_speed == pytest.approx(0.5)


def test_walking_in_a_circle_shows_in_the_straight_line_speed():
    recorder = GaitRecorder(1, ("a",))
    no = torch.tensor([False])
    angle = torch.linspace(0, 2 * torch.pi, 101)
    for one in angle:
        state = Step(torch.tensor([[one.cos(), one.sin()]]), torch.tensor([0.5]), torch.ones(1), no, no, no)
        recorder.record(state, no[None])
    report = recorder.report(0.5, DT, 101)
    assert report.forward_speed == pytest.approx(0.5)
    assert report.net_speed == pytest.approx(0.0, abs=1e-4)


def test_broken_physics_is_in_no_mean():
    recorder = GaitRecorder(2, ("a", "b"))
    report = march(recorder, 100, broke_at=60, standing=True)
    assert (report.falls, report.non_finite) == (0, 1)
    assert report.forward_speed == pytest.approx(0.5)


def test_what_a_robot_does_after_its_fall_is_in_no_figure():
    recorder, no = GaitRecorder(1, ("a",)), torch.tensor([False])
    for step in range(1, 21):
        down = step > 10
        place, speed, height = (9.0, 9.0, 9.0) if down else (0.01 * step, 0.5, 0.3)
        contact = torch.tensor([[down and step % 2 == 0]])
        position, fell = torch.tensor([[place, 0.0]]), torch.tensor([step == 10])
        recorder.record(Step(position, torch.tensor([speed]), torch.tensor([height]), fell, no, no), contact)
    report = recorder.report(0.5, DT, 20)
    figures = (report.forward_speed, report.net_speed, report.trunk_height)
    assert figures == pytest.approx((0.5, 0.5, 0.3))
    assert (report.duty_factor["a"], report.swings_per_second["a"], report.falls) == (0.0, 0.0, 1)


def record_loads(steps=100, fallen_from=None):
    """The knee's torque climbs from 0.2 to 20 N*m, the ankle gives -4; robot 1 is given 100 times as much."""
    recorder = LoadRecorder(("knee", "ankle"))
    for step in range(1, steps + 1):
        one = torch.tensor([0.2 * step, -4.0])
        speed = torch.tensor([1.0, -0.05 * step])
        up = torch.tensor([True, fallen_from is not None and step < fallen_from])
        recorder.record(torch.stack([one, 100 * one]), torch.stack([speed, speed]), up)
    return recorder


def test_mean_high_and_share_beyond_a_fault_of_known_torques():
    knee, ankle = record_loads().report(CAPS)
    assert (knee.joint, ankle.joint) == ("knee", "ankle")
    assert knee.mean_effort == pytest.approx(10.1)
    assert knee.high_effort == pytest.approx(19.0)  # 95 of the 100 samples reach up to it
    assert knee.beyond_effort == pytest.approx(0.75)  # 5.0 itself is not beyond
    assert ankle.mean_effort == pytest.approx(4.0)  # whichever way it pushes
    assert ankle.beyond_effort == 0.0
    assert (knee.high_velocity, knee.beyond_velocity) == (pytest.approx(1.0), 0.0)
    assert (ankle.high_velocity, ankle.beyond_velocity) == (pytest.approx(4.75), pytest.approx(0.4))


def test_robots_that_fell_no_longer_count():
    _, ankle = record_loads(fallen_from=51).report(CAPS)
    assert ankle.mean_effort == pytest.approx((100 * 4.0 + 50 * 400.0) / 150)


def test_a_severity_that_is_no_number_has_no_share():
    (knee, _) = record_loads().report({"effort": {"uniform": [2.0, 4.0]}, "velocity": 3.0})
    assert (knee.beyond_effort, knee.beyond_velocity) == (None, 0.0)
    assert "N*m" not in load_table([knee], {"velocity": 3.0}).split("below [N*m]")[1]


def test_the_table_names_the_caps_it_counts_against():
    head, _, knee, ankle = load_table(record_loads().report(CAPS), CAPS).splitlines()
    assert "above 5 N*m" in head
    assert "above 3 rad/s" in head
    assert knee.split() == ["knee", "10.1", "19.0", "75%", "1.0", "0%"]
    assert ankle.split() == ["ankle", "4.0", "4.0", "0%", "4.8", "40%"]


def test_nobody_up_is_said_in_words():
    assert "no robot was up" in load_table(LoadRecorder(("knee",)).report(CAPS), CAPS)
