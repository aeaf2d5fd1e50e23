# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a detector should say, and what a policy reads of its reports."""

import torch
from umc.detection import JOINT_KINDS, SENSOR_KINDS, mask_and_flag
from umc.detection.labels import Labeller, severity_of
from umc.faults import FaultSchedule, FaultState, JointLimits

JOINTS = ("a", "b")
LIMITS = JointLimits(*(torch.tensor(pair) for pair in ([-1.0, -1.0], [1.0, 1.0], [20.0, 40.0], [10.0, 10.0])))


def labels(scenario, **severity):
    schedule = FaultSchedule(
        JOINTS, scenario=scenario, severity=severity, num_joints=(2, 2), onset=5, nominal=LIMITS, seed=1
    )
    state = FaultState(schedule, 1)
    state.reset(torch.tensor([0]))
    labeller = Labeller(state, LIMITS)
    state.advance(torch.tensor([4]), torch.zeros(1, 2))
    before = labeller()
    assert not before.sensor.any()
    assert not before.joint.any()
    state.advance(torch.tensor([5]), torch.zeros(1, 2))
    return labeller()


def test_kinds_have_numbers():
    found = labels("dead+locked")
    assert found.sensor.tolist() == [[1 + SENSOR_KINDS.index("dead")] * 2]
    assert found.joint.tolist() == [[1 + JOINT_KINDS.index("locked")] * 2]


def test_kinds_that_no_detector_knows_have_labels_of_their_own():
    found = labels("braking+bias", braking=2.0, bias=0.1)
    assert found.sensor.tolist() == [[1 + SENSOR_KINDS.index("bias")] * 2]
    assert found.joint.tolist() == [[1 + len(JOINT_KINDS)] * 2]
    torch.testing.assert_close(found.severity, torch.tensor([[[0.1, 2.0], [0.1, 2.0]]]))
    assert labels("friction+locked", friction=0.5).joint.tolist() == [[1 + JOINT_KINDS.index("locked")] * 2]
    schedule = FaultSchedule(
        JOINTS, scenario="delayed+friction", severity={"delayed": 2.0, "friction": 1.0}, num_joints=(1, 1)
    )
    labeller = Labeller(FaultState(schedule, 1), LIMITS)
    assert labeller.kinds == (SENSOR_KINDS, (*JOINT_KINDS, "friction", "delayed"))
    assert labeller.kinds[1][: labeller.limiting][-1] == "friction"  # the command lowers no limit


def test_of_several_joint_faults_the_first_is_the_label():
    found = labels("effort+rom+power_loss", effort=5.0, rom=0.3)
    assert found.sensor.tolist() == [[0, 0]]
    assert found.joint.tolist() == [[1 + JOINT_KINDS.index("power_loss")] * 2]


def test_a_severity_is_a_part_of_what_the_healthy_joint_has():
    found = labels("effort+bias", effort=5.0, bias=-0.2)
    torch.testing.assert_close(found.severity, torch.tensor([[[-0.2, 0.25], [-0.2, 0.125]]]))
    assert labels("dead").severity.abs().max() == 0.0


def test_the_severity_of_the_labelled_kind_is_read():
    severity = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    assert severity_of(severity, torch.tensor([3, 0])).tolist() == [3.0, 0.0]


def test_sensors_are_masked_and_the_flag_is_the_papers():
    reported = torch.zeros(4, 3, 2, dtype=torch.bool)
    reported[1, 0, 0] = True  # a sensor
    reported[2, 1, 1] = True  # a joint whose sensor works
    reported[3, 2] = True  # both
    mask, flag = mask_and_flag(reported)
    assert mask.tolist() == [[False] * 3, [True, False, False], [False] * 3, [False, False, True]]
    assert flag[:, 0].tolist() == [-1.0, -1.0, -1.0, 1.0]
    assert flag.shape == (4, 3)
    assert mask_and_flag(reported, any_fault=True)[1][:, 0].tolist() == [-1.0, -1.0, 1.0, 1.0]
