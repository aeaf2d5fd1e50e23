# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The joint graph is the robot's own."""

from __future__ import annotations

from itertools import pairwise

import pytest
from umc.robots import A1_CFG, A1_JOINTS, G1_CFG, G1_JOINTS
from umc.robots.graph import joint_neighbours
from umc.robots.names import robot_names
from umc.utils.errors import UmcError

BODY = 'def Xform "{}" (\n prepend apiSchemas = ["PhysicsRigidBodyAPI"]\n)\n{{\n}}\n'
JOINT = 'def PhysicsRevoluteJoint "{}"\n{{\n rel physics:body0 = </r/{}>\n rel physics:body1 = </r/{}>\n}}\n'


def names(graph, joints):
    """The graph's edges by name."""
    tokens = [*joints, "base"]
    return {frozenset((tokens[token], tokens[other])) for token, near in enumerate(graph) for other in near}


A1_LEGS = [[f"{leg}_{part}_joint" for part in ("hip", "thigh", "calf")] for leg in ("FL", "FR", "RL", "RR")]
G1_PARTS = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
G1_LEGS = [[f"{side}_{part}_joint" for part in G1_PARTS] for side in ("left", "right")]


@pytest.mark.parametrize(
    ("cfg", "joints", "legs"),
    [(A1_CFG, A1_JOINTS, A1_LEGS), (A1_CFG, A1_JOINTS[::-1], A1_LEGS), (G1_CFG, G1_JOINTS, G1_LEGS)],
)
def test_legs_are_chains_on_the_base_for_any_order_of_names(cfg, joints, legs):
    edges = names(joint_neighbours(cfg, joints), joints)
    assert edges == {frozenset(pair) for leg in legs for pair in pairwise(["base", *leg])}


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
    for other in (("b", "other", "x"), ("b", "other", "y")):
        with pytest.raises(UmcError, match="are no tree"):
            joint_neighbours(robot(tmp_path, [("a", "base", "x"), other]), ["a", "b"])
    for source, joint, message in (
        (A1_CFG, "FL_hip", "no joint FL_hip"),
        (tmp_path / "missing.usda", "a", "cannot read"),
        (A1_CFG.replace(spawn=None), "a", "spawns no USD file"),
        ("https://host/robot.usd", "a", "needs a local file, not https://host/robot.usd"),
    ):
        with pytest.raises(UmcError, match=message):
            joint_neighbours(source, [joint])


def test_a_joint_that_closes_a_loop_is_none_of_the_robots_joints(tmp_path):
    path = robot(tmp_path, [("a", "base", "x"), ("b", "base", "y"), ("loop", "x", "y")])
    loop = 'def PhysicsRevoluteJoint "loop"\n{'
    path.write_text(path.read_text().replace(loop, f"{loop}\n bool physics:excludeFromArticulation = 1"))
    cfg = A1_CFG.replace(spawn=A1_CFG.spawn.replace(usd_path=str(path)), body_ordering=None, joint_ordering=None)
    assert robot_names(cfg).joints == ("a", "b")
    assert joint_neighbours(path, ["a", "b"]) == [[2], [2], [0, 1]]
