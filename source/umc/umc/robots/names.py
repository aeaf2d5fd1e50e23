# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Names of a robot's bodies and joints, read from its USD file without a simulation."""

# pyright does not resolve attributes of pxr, which is compiled:
# pyright: reportAttributeAccessIssue=none

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

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
    path = _local_usd(robot)
    if path is None:
        return None
    if not Path(path).is_file():
        raise UmcError(f"no robot USD at {path}; correct usd_path in the robot's cfg")
    found = _read(path)
    return RobotNames(
        _ordered(found.bodies, robot.body_ordering, "body_ordering", path),
        _ordered(found.joints, robot.joint_ordering, "joint_ordering", path),
    )


def joint_limits(robot: ArticulationCfg) -> dict[str, tuple[float | None, float | None]]:
    """Return the lower and upper limit [rad] of each hinge by its name, None on a side without one.

    It is empty where the cfg spawns no local USD file.
    """
    found = {}
    for prim in _hinges(robot):
        hinge = UsdPhysics.RevoluteJoint(prim)
        degrees = [attribute.Get() for attribute in (hinge.GetLowerLimitAttr(), hinge.GetUpperLimitAttr())]
        found[prim.GetName()] = tuple(math.radians(one) if math.isfinite(one) else None for one in degrees)
    return found


def drive_limits(robot: ArticulationCfg) -> dict[str, float]:
    """Return the largest torque [N*m] of the drive of each hinge by its name, without those that have no limit.

    It is empty where the cfg spawns no local USD file.
    """
    found = {
        prim.GetName(): float(UsdPhysics.DriveAPI(prim, "angular").GetMaxForceAttr().Get())
        for prim in _hinges(robot)
        if prim.HasAPI(UsdPhysics.DriveAPI, "angular")
    }
    return {name: effort for name, effort in found.items() if math.isfinite(effort)}


def _local_usd(robot: ArticulationCfg) -> str | None:
    path = getattr(robot.spawn, "usd_path", None)
    return path if isinstance(path, str) and not is_remote(path) else None


def _hinges(robot: ArticulationCfg) -> Iterator[Any]:
    path = _local_usd(robot)
    for prim in () if path is None else usd_prims(path):
        if prim.IsA(UsdPhysics.RevoluteJoint):
            yield prim


def usd_prims(path: str) -> Iterator[Any]:
    """Yield the prims of a USD file; UmcError if it cannot be read. They live as long as the iteration."""
    try:
        stage = Usd.Stage.Open(path)
    except Tf.ErrorException as error:
        raise UmcError(f"cannot read {path} as USD; give the robot's USD file (usd_path in its cfg)") from error
    yield from Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies())


def is_loop_closure(prim: Any) -> bool:
    """Return whether a joint is left out of its articulation: it has no place in observations and actions."""
    return bool(UsdPhysics.Joint(prim).GetExcludeFromArticulationAttr().Get())


@lru_cache(maxsize=8)
def _read(path: str) -> RobotNames:
    bodies, joints = [], []
    for prim in usd_prims(path):
        if prim.HasAPI(UsdPhysics.RigidBodyAPI):
            bodies.append(prim.GetName())
        elif any(prim.IsA(kind) for kind in JOINT_TYPES) and not is_loop_closure(prim):
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
