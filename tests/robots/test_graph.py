# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The joint graph is the robot's own."""

from __future__ import annotations

from itertools import pairwise

import pytest
from umc.robots import A1_CFG, A1_JOINTS, G1_CFG, G1_JOINTS
from umc.robots.graph import joint_neighbours
from umc.utils.errors import UmcError

BODY = 'def Xform "{}" (\n prepend apiSchemas = ["PhysicsRigidBodyAPI"]\n)\n{{\n}}\n'
JOINT = 'def PhysicsRevoluteJoint "{}"\n{{\n rel physics:body0 = </r/{}>\n rel physics:body1 = </r/{}>\n}}\n'


def names(graph, joints):
    """The graph's edges by name."""
    tokens = [*joints, "base"]
    return {frozenset((tokens[token], tokens[other])) for token, near in enumerate(graph) for other in near}


def test_a1_is_four_chains_on_the_base():
    edges = names(joint_neighbours(A1_CFG, A1_JOINTS), A1_JOINTS)
    expected = set()
    for leg in ("FL", "FR", "RL", "RR"):
        chain = ["base", f"{leg}_hip_joint", f"{leg}_thigh_joint", f"{leg}_calf_joint"]
        expected |= {frozenset(pair) for pair in pairwise(chain)}
    assert edges == expected


def test_g1_is_two_chains_on_the_base():
    edges = names(joint_neighbours(G1_CFG, G1_JOINTS), G1_JOINTS)
    parts = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
    expected = set()
    for side in ("left", "right"):
        chain = ["base", *(f"{side}_{part}_joint" for part in parts)]
        expected |= {frozenset(pair) for pair in pairwise(chain)}
    assert edges == expected


def test_the_order_of_names_is_the_order_of_indices():
    backwards = A1_JOINTS[::-1]
    assert joint_neighbours(A1_CFG, backwards)[0] == [1]  # RR calf is next to RR thigh
    assert names(joint_neighbours(A1_CFG, backwards), backwards) == names(
        joint_neighbours(A1_CFG, A1_JOINTS), A1_JOINTS
    )


def robot(tmp_path, joints):
    """A USD file with bodies and revolute joints (name, parent, child)."""
    bodies = {body for _, *ends in joints for body in ends}
    prims = [BODY.format(body) for body in sorted(bodies)] + [JOINT.format(*joint) for joint in joints]
    path = tmp_path / "robot.usda"
    path.write_text(f'#usda 1.0\ndef Xform "r"\n{{\n{"".join(prims)}}}\n', encoding="utf-8")
    return path


def test_joints_that_are_not_named_are_welded(tmp_path):
    path = robot(tmp_path, [("a", "base", "x"), ("weld", "x", "y"), ("b", "y", "z"), ("c", "y", "w")])
    assert joint_neighbours(path, ["a", "b", "c"]) == [[1, 2, 3], [0], [0], [0]]


def test_no_tree_and_no_robot_are_one_line_errors(tmp_path):
    with pytest.raises(UmcError, match="no joint FL_hip"):
        joint_neighbours(A1_CFG, ["FL_hip"])
    with pytest.raises(UmcError, match="are no tree"):
        joint_neighbours(robot(tmp_path, [("a", "base", "x"), ("b", "other", "x")]), ["a", "b"])
    with pytest.raises(UmcError, match="are no tree"):
        joint_neighbours(robot(tmp_path, [("a", "base", "x"), ("b", "other", "y")]), ["a", "b"])
    with pytest.raises(UmcError, match="cannot read"):
        joint_neighbours(tmp_path / "missing.usda", ["a"])
    with pytest.raises(UmcError, match="spawns no USD file"):
        joint_neighbours(A1_CFG.replace(spawn=None), ["a"])
