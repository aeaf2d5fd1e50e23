# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What motors give during a healthy walk, on torques whose answer is known."""

import pytest
import torch
from umc.evaluation.joint_load import LoadRecorder
from umc.evaluation.report import load_table

CAPS = {"rom": 0.3, "effort": 5.0, "velocity": 3.0}


def record(steps=100, fallen_from=None):
    """The knee's torque climbs from 0.2 to 20 N*m, the ankle gives -4; robot 1 is given 100 times as much."""
    recorder = LoadRecorder(("knee", "ankle"))
    for step in range(1, steps + 1):
        one = torch.tensor([0.2 * step, -4.0])
        speed = torch.tensor([1.0, -0.05 * step])
        up = torch.tensor([True, fallen_from is not None and step < fallen_from])
        recorder.record(torch.stack([one, 100 * one]), torch.stack([speed, speed]), up)
    return recorder


def test_mean_high_and_share_beyond_a_fault_of_known_torques():
    knee, ankle = record().report(CAPS)
    assert (knee.joint, ankle.joint) == ("knee", "ankle")
    assert knee.mean_effort == pytest.approx(10.1)
    assert knee.high_effort == pytest.approx(19.0)  # 95 of the 100 samples reach up to it
    assert knee.beyond_effort == pytest.approx(0.75)  # 5.0 itself is not beyond
    assert ankle.mean_effort == pytest.approx(4.0)  # whichever way it pushes
    assert ankle.beyond_effort == 0.0
    assert (knee.high_velocity, knee.beyond_velocity) == (pytest.approx(1.0), 0.0)
    assert (ankle.high_velocity, ankle.beyond_velocity) == (pytest.approx(4.75), pytest.approx(0.4))


def test_robots_that_fell_no_longer_count():
    _, ankle = record(fallen_from=51).report(CAPS)
    assert ankle.mean_effort == pytest.approx((100 * 4.0 + 50 * 400.0) / 150)


def test_a_severity_that_is_no_number_has_no_share():
    (knee, _) = record().report({"effort": {"uniform": [2.0, 4.0]}, "velocity": 3.0})
    assert (knee.beyond_effort, knee.beyond_velocity) == (None, 0.0)
    assert "N*m" not in load_table([knee], {"velocity": 3.0}).split("below [N*m]")[1]


def test_the_table_names_the_caps_it_counts_against():
    head, _, knee, ankle = load_table(record().report(CAPS), CAPS).splitlines()
    assert "above 5 N*m" in head
    assert "above 3 rad/s" in head
    assert knee.split() == ["knee", "10.1", "19.0", "75%", "1.0", "0%"]
    assert ankle.split() == ["ankle", "4.0", "4.0", "0%", "4.8", "40%"]


def test_nobody_up_is_said_in_words():
    assert "no robot was up" in load_table(LoadRecorder(("knee",)).report(CAPS), CAPS)
