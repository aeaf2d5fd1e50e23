# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The joint graph of a robot, read from its USD file."""

# pxr's stubs declare None where the calls return objects:
# pyright: reportAttributeAccessIssue=none, reportArgumentType=none, reportOptionalIterable=none, reportGeneralTypeIssues=none
# pyright: reportOptionalMemberAccess=none

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from isaaclab.assets import ArticulationCfg
from pxr import Usd, UsdPhysics

from umc.robots.names import is_loop_closure, is_remote, usd_prims
from umc.utils.errors import UmcError


def joint_neighbours(robot: str | Path | ArticulationCfg, joint_names: Sequence[str]) -> list[list[int]]:
    """Return the neighbours of each of the J joints, and last those of the base (index J), as ascending indices.

    A joint represents the body that it moves. Two are neighbours where a joint connects their bodies (BodyTransformer's
    graph: distance 1): a calf and its thigh, a hip and the base, but not two hips. Unnamed joints count as welded.

    Raises:
        UmcError: When the file cannot be read, a joint is missing, or the joints are no tree.
    """
    source = getattr(robot.spawn, "usd_path", None) if isinstance(robot, ArticulationCfg) else robot
    if not isinstance(source, str | Path):
        raise UmcError("the robot's cfg spawns no USD file: give the path of one")
    if is_remote(source):
        raise UmcError(f"the joint graph needs a local file, not {source}; download it and set usd_path")
    path = Path(source)
    joints = _joints(path)
    missing = [name for name in joint_names if name not in joints]
    if missing:
        raise UmcError(f"{path.name} has no joint {', '.join(missing)}: give the joint names of this robot")
    welded: dict[str, str] = {}
    for name, (parent, child) in joints.items():
        kept, merged = _link(parent, welded), _link(child, welded)
        if name not in joint_names and parent and child and kept != merged:
            welded[merged] = kept
    ends = [[_link(body, welded) for body in joints[name]] for name in joint_names]
    moved = {child: joint for joint, (_, child) in enumerate(ends)}
    bases = {parent for parent, _ in ends if parent not in moved}
    if len(moved) != len(ends) or len(bases) != 1:
        raise UmcError(
            f"the joints of {path.name} are no tree: {len(ends)} joints move {len(moved)} bodies on {len(bases)} bases;"
            " name every joint between the base and the last one"
        )
    base = len(ends)
    neighbours: list[set[int]] = [set() for _ in range(base + 1)]
    for joint, (parent, _) in enumerate(ends):
        other = moved.get(parent, base)
        neighbours[joint].add(other)
        neighbours[other].add(joint)
    return [sorted(near) for near in neighbours]


def _joints(path: Path) -> dict[str, tuple[str, str]]:
    """Parent and child body of every joint of a USD file by the joint's name; "" is the world."""
    found = {}
    for prim in usd_prims(str(path)):
        joint = UsdPhysics.Joint(prim)
        if joint and not is_loop_closure(prim):
            found[prim.GetName()] = (_body(joint.GetBody0Rel()), _body(joint.GetBody1Rel()))
    return found


def _body(relationship: Usd.Relationship) -> str:
    """Return the path of the rigid body at a joint's end; "" for the world."""
    stage, targets = relationship.GetStage(), relationship.GetTargets()
    prim = stage.GetPrimAtPath(targets[0]) if targets else stage.GetPseudoRoot()
    while not prim.IsPseudoRoot() and not prim.HasAPI(UsdPhysics.RigidBodyAPI):
        prim = prim.GetParent()
    return "" if prim.IsPseudoRoot() else str(prim.GetPath())


def _link(body: str, welded: dict[str, str]) -> str:
    """Return the body that represents all that are welded to it."""
    while body in welded:
        body = welded[body]
    return body
