# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Names of a robot's bodies and joints, read from its USD file without a simulation."""

# pyright does not resolve attributes of pxr, which is compiled:
# pyright: reportAttributeAccessIssue=none

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from isaaclab.assets import ArticulationCfg
from pxr import Tf, Usd, UsdPhysics

from umc.utils.errors import UmcError

JOINT_TYPES = (UsdPhysics.RevoluteJoint, UsdPhysics.PrismaticJoint, UsdPhysics.SphericalJoint)
"""Joints that move; a fixed joint has no name in an articulation."""


@dataclass(frozen=True)
class RobotNames:
    """Bodies and joints, in the order of the robot's cfg where that lists them."""

    bodies: tuple[str, ...]
    joints: tuple[str, ...]


def is_remote(path: object) -> bool:
    """Return whether a path is a server's address, such as Isaac Lab's cloud assets."""
    return isinstance(path, str) and "://" in path


def robot_names(robot: ArticulationCfg) -> RobotNames | None:
    """Return the names of a robot; None where its cfg spawns no local USD file.

    Raises:
        UmcError: If the file does not exist, cannot be read, or an order in the cfg is not one of its names.
    """
    path = getattr(robot.spawn, "usd_path", None)
    if not isinstance(path, str) or is_remote(path):
        return None
    if not Path(path).is_file():
        raise UmcError(f"no robot USD at {path}; correct usd_path in the robot's cfg")
    found = _read(path)
    return RobotNames(
        _ordered(found.bodies, robot.body_ordering, "body_ordering", path),
        _ordered(found.joints, robot.joint_ordering, "joint_ordering", path),
    )


@lru_cache(maxsize=8)
def _read(path: str) -> RobotNames:
    try:
        stage = Usd.Stage.Open(path)
    except Tf.ErrorException as error:
        raise UmcError(f"cannot read {path} as USD; correct usd_path in the robot's cfg") from error
    bodies, joints = [], []
    for prim in Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies()):
        if prim.HasAPI(UsdPhysics.RigidBodyAPI):
            bodies.append(prim.GetName())
        elif any(prim.IsA(kind) for kind in JOINT_TYPES):
            joints.append(prim.GetName())
    if not bodies:
        raise UmcError(f"{path} has no rigid body; correct usd_path in the robot's cfg")
    return RobotNames(tuple(bodies), tuple(joints))


def _ordered(names: Sequence[str], order: object, field: str, path: str) -> tuple[str, ...]:
    """Return names in the order of a cfg's field; UmcError if the field lists others."""
    if not isinstance(order, Sequence) or isinstance(order, str):
        return tuple(names)
    unknown = [name for name in order if name not in names]
    missing = [name for name in names if name not in order]
    if unknown or missing:
        wrong = f"the file has no {', '.join(unknown)}" if unknown else f"the cfg lacks {', '.join(missing)}"
        raise UmcError(f"{field} of the robot's cfg: {wrong}; {Path(path).name} has {', '.join(names)}")
    return tuple(order)
