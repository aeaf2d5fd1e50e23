# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Measures of the healthy gait on motions with known results."""

import pytest
import torch
from umc.evaluation.gait import GaitRecorder, LoadRecorder
from umc.evaluation.metrics import Step
from umc.evaluation.report import gait_table, load_table

DT = 0.02
LIMITS = {"rom": 0.3, "effort": 5.0, "velocity": 3.0}
NO = torch.tensor([False])


def walk(steps=100, fell_at=None, non_finite_at=None, standing=False, command=(0.5, 0.0, 0.0)):
    """Two robots walk along x, with foot a on the ground half of the time; the arguments are about the second one."""
    recorder = GaitRecorder(2, ("a", "b"))
    speed = torch.tensor([0.5, 0.0 if standing else 0.5])
    for step in range(1, steps + 1):
        state = Step(
            torch.stack([speed * DT * step, torch.zeros(2)], dim=1),
            speed,
            torch.tensor([0.3, 0.3]),
            fell=torch.tensor([False, step == fell_at]),
            non_finite=torch.tensor([False, step == non_finite_at]),
            timed_out=torch.zeros(2, dtype=torch.bool),
        )
        recorder.record(state, torch.tensor([[step % 4 in (1, 2), True]] * 2))
    return recorder.report(command=command, step_dt=DT, steps=steps)


def test_speed_height_and_contacts_of_a_steady_walk():
    report = walk()
    assert report.forward_speed == pytest.approx(0.5)
    assert report.net_speed == pytest.approx(0.5, rel=1e-4)
    assert report.trunk_height == pytest.approx(0.3)
    assert report.duty_factor == {"a": pytest.approx(0.5), "b": pytest.approx(1.0)}
    # foot a leaves the ground once in four steps of 0.02 s
    assert report.swings_per_second == {"a": pytest.approx(12.5), "b": 0.0}
    assert report.mean_feet_in_contact == pytest.approx(1.5)
    assert (report.falls, report.standing, report.seconds) == (0, 0, pytest.approx(2.0))


@pytest.mark.parametrize(
    ("what", "counts", "speed"),
    [
        ({"standing": True}, (0, 0, 1), 0.25),
        ({"standing": True, "command": (0.0, 0.0, 0.5)}, (0, 0, 0), 0.25),  # it may turn
        ({"fell_at": 50}, (1, 0, 0), 0.5),
        ({"non_finite_at": 60, "standing": True}, (0, 1, 0), 0.5),
    ],
)
def test_falls_non_finite_physics_and_standing_robots_are_counted(what, counts, speed):
    report = walk(**what)
    assert (report.falls, report.non_finite, report.standing) == counts
    assert report.forward_speed == pytest.approx(speed)


def test_a_circle_has_no_net_speed_and_steps_after_a_fall_do_not_count():
    recorder = GaitRecorder(1, ("a",))
    for angle in torch.linspace(0, 2 * torch.pi, 101):
        position = torch.tensor([[angle.cos(), angle.sin()]])
        recorder.record(Step(position, torch.tensor([0.5]), torch.ones(1), NO, NO, NO), NO[None])
    report = recorder.report((0.5, 0.0, 0.0), DT, 101)
    assert (report.forward_speed, report.net_speed) == (pytest.approx(0.5), pytest.approx(0.0, abs=1e-4))
    recorder = GaitRecorder(1, ("a",))
    for step in range(1, 21):
        down = step > 10
        x, speed, height = torch.tensor([9.0, 9.0, 9.0] if down else [0.01 * step, 0.5, 0.3])[:, None]
        position, fell = torch.stack([x, 0.0 * x], dim=1), torch.tensor([step == 10])
        recorder.record(Step(position, speed, height, fell, NO, NO), torch.tensor([[down and step % 2 == 0]]))
    report = recorder.report((0.5, 0.0, 0.0), DT, 20)
    assert (report.forward_speed, report.net_speed, report.trunk_height) == pytest.approx((0.5, 0.5, 0.3))
    assert (report.duty_factor["a"], report.swings_per_second["a"], report.falls) == (0.0, 0.0, 1)


def test_speed_to_the_left_and_turning_are_averaged_and_no_robot_that_walks_sideways_stands():
    recorder = GaitRecorder(1, ("a",))
    for step in range(10):
        state = Step(
            torch.zeros(1, 2), torch.zeros(1), torch.ones(1), NO, NO, NO, sideward_velocity=torch.tensor([0.3]),
            turning_rate=torch.tensor([0.1 * step]),
        )  # fmt: skip
        recorder.record(state, NO[None])
    report = recorder.report((0.0, 0.4, 0.5), DT, 10)
    assert (report.sideward_speed, report.turning_rate, report.standing) == (pytest.approx(0.3), pytest.approx(0.45), 0)
    shown = gait_table(report)
    assert "speed to the left / command [m/s]" in shown
    assert "0.300 / 0.40" in shown


def record_loads(fallen_from=1):
    """The knee's torque rises from 0.2 to 20 N*m, the ankle's is -4; a second robot, 100 times as strong, falls."""
    recorder = LoadRecorder(("knee", "ankle"))
    for step in range(1, 101):
        effort = torch.tensor([0.2 * step, -4.0])
        velocity = torch.tensor([1.0, -0.05 * step])
        up = torch.tensor([True, step < fallen_from])
        recorder.record(torch.stack([effort, 100 * effort]), torch.stack([velocity, velocity]), up)
    return recorder


def test_joint_loads_of_known_torques_and_their_table():
    loads = knee, ankle = record_loads().report(LIMITS)
    assert knee.mean_effort == pytest.approx(10.1)
    assert knee.high_effort == pytest.approx(19.0)  # 95 of the 100 samples are at most that
    assert knee.beyond_effort == pytest.approx(0.75)  # 5.0 itself is not above 5.0
    assert (ankle.mean_effort, ankle.beyond_effort) == (pytest.approx(4.0), 0.0)
    assert (knee.high_velocity, knee.beyond_velocity) == (pytest.approx(1.0), 0.0)
    assert (ankle.high_velocity, ankle.beyond_velocity) == (pytest.approx(4.75), pytest.approx(0.4))
    head, _, *rows = load_table(loads, LIMITS).splitlines()
    assert "above 5 N*m" in head
    assert "above 3 rad/s" in head
    assert [row.split() for row in rows] == [
        ["knee", "10.1", "19.0", "75%", "1.0", "0%"],
        ["ankle", "4.0", "4.0", "0%", "4.8", "40%"],
    ]
    # robots that fell, and severities that are no number
    assert record_loads(51).report(LIMITS)[1].mean_effort == pytest.approx((100 * 4.0 + 50 * 400.0) / 150)
    knee, _ = record_loads().report({"effort": {"uniform": [2.0, 4.0]}, "velocity": 3.0})
    assert (knee.beyond_effort, knee.beyond_velocity) == (None, 0.0)
    assert "N*m" not in load_table([knee], {"velocity": 3.0}).split("below [N*m]")[1]
    assert "no robot was up" in load_table(LoadRecorder(("knee",)).report(LIMITS), LIMITS)
