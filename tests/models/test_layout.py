# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The joint layout finds every joint's columns and refuses what cannot be right."""

from __future__ import annotations

import pytest
import torch
from umc.models import JointColumns, JointLayout
from umc.utils.errors import UmcError

A1 = [f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")]


def test_a1_split_gives_each_joint_its_position_velocity_and_last_action():
    layout = JointLayout.term_major(A1, obs_dim=48, joint_start=12)
    obs = torch.arange(96.0).view(2, 48)
    base, joints = JointColumns(layout).split(obs)
    assert torch.equal(base, obs[:, :12])
    assert joints.shape == (2, 12, 3)
    for joint in range(12):
        assert joints[0, joint].tolist() == [12 + joint, 24 + joint, 36 + joint]


def test_base_columns_may_lie_on_both_sides_of_the_joints():
    assert JointLayout.term_major(["a", "b"], obs_dim=10, joint_start=3).base_columns == (0, 1, 2, 9)


@pytest.mark.parametrize(
    ("names", "obs_dim", "start", "message"),
    [
        ([], 48, 12, "at least one joint"),
        (["a", "a"], 48, 12, "these repeat: a"),
        (A1, 47, 12, "reach column 47"),
        (A1, 48, -1, "reach column"),
    ],
)
def test_bad_layouts_are_one_line_errors(names, obs_dim, start, message):
    with pytest.raises(UmcError, match=message) as error:
        JointLayout.term_major(names, obs_dim, start)
    assert "\n" not in str(error.value)


def test_columns_must_be_three_for_each_joint_and_nobody_elses():
    with pytest.raises(UmcError, match="belongs to two joints"):
        JointLayout(("a", "b"), 9, ((0, 1, 2), (2, 3, 4)))
    with pytest.raises(UmcError, match="has 2 columns"):
        JointLayout(("a",), 9, ((0, 1),))
    with pytest.raises(UmcError, match="columns for 1 joints"):
        JointLayout(("a", "b"), 9, ((0, 1, 2),))
