# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A robot's USD file as a model of plain MuJoCo, on flat ground; reads the file itself, without Isaac Lab or Newton."""

# pxr's stubs declare None where the calls return objects:
# pyright: reportAttributeAccessIssue=none, reportArgumentType=none, reportGeneralTypeIssues=none

from __future__ import annotations

import math
from importlib.resources import files
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray
from pxr import Gf, Tf, Usd, UsdGeom, UsdPhysics

from umc.utils.errors import UmcError

GROUND = "ground"
"""Name of the floor's geom."""

FLAGS_OFF = mujoco.mjtDisableBit.mjDSBL_AUTORESET | mujoco.mjtDisableBit.mjDSBL_ISLAND
"""What MuJoCo must not do: start a robot anew whose state is not finite, or copy constraint rows before the solve."""

STEPS_PER_CONTACT = 2
"""Fewest steps of a contact's time constant (MuJoCo's documentation of ``solref``, which holds shorter ones there)."""

_AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}

Vector = NDArray[np.float64]


def robot_usd(robot: str) -> Path:
    """The file that a robot of this package is spawned from.

    Args:
        robot: Name of the robot, as checkpoints have it.

    Returns:
        Path of the file.

    Raises:
        UmcError: If there is no such robot.
    """
    folder = Path(str(files("umc"))) / "robots" / "data"  # umc.robots itself would import Isaac Lab
    path = folder / f"{robot.lower()}.usda"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.usda")))
        raise UmcError(f"unknown robot {robot}; choose one of {known}")
    return path


def read_robot(path: Path | str, timestep: float, contact_time: float | None = None) -> mujoco.MjModel:
    """Reads masses, joints, limits and colliders of a robot and puts it on a plane.

    Joint limits get the softness that the file has for MuJoCo. All else of contacts is MuJoCo's own default, but for
    the friction cone, which is the elliptic (exact) one, and for friction, which is the robot's alone: the ground of
    our tasks multiplies it with 1. Bodies of the robot do not collide with each other, as in our tasks.

    Args:
        path: The USD file: rigid bodies side by side below one root, hinges between them.
        timestep: Length of a step [s].
        contact_time: Time in which a contact pushes bodies apart [s]; MuJoCo's own 0.02 without it.

    Returns:
        The model; its first joint is the free one of the base.

    Raises:
        UmcError: If the file cannot be read or holds what has no counterpart here, or if contacts are too short for
            the step.
    """
    path = Path(path)
    if contact_time is not None and not contact_time >= STEPS_PER_CONTACT * timestep:  # nor what is no number
        raise UmcError(
            f"contacts of {contact_time:g} s are too short for steps of {timestep:g} s: take"
            f" {STEPS_PER_CONTACT * timestep:g} s or longer, or shorter steps"
        )
    try:
        stage = Usd.Stage.Open(str(path))
    except Tf.ErrorException as error:
        raise UmcError(f"cannot read {path} as USD: give the robot's USD file") from error
    prims = list(stage.Traverse())
    hinges = [prim for prim in prims if prim.IsA(UsdPhysics.Joint)]
    strange = [prim.GetName() for prim in hinges if not prim.IsA(UsdPhysics.RevoluteJoint)]
    roots = [prim for prim in prims if prim.HasAPI(UsdPhysics.ArticulationRootAPI)]
    if strange or len(roots) != 1:
        raise UmcError(f"{path.name} must have one articulation of revolute joints only, not {len(roots)}, {strange}")

    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    spec.option.timestep = timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.disableflags = FLAGS_OFF
    spec.worldbody.add_geom(
        name=GROUND, type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0], contype=0, conaffinity=1, condim=3
    )
    _add_body(spec.worldbody, roots[0]).add_freejoint(name="base")
    _add_children(spec, roots[0], hinges)
    if len(spec.joints) != len(hinges) + 1:
        raise UmcError(f"{path.name} has joints that do not hang on its base {roots[0].GetName()}")
    model = spec.compile()
    if contact_time is not None:
        model.geom_solref[:, 0] = contact_time
    return model


def _add_children(spec: mujoco.MjSpec, parent: Usd.Prim, hinges: list[Usd.Prim]) -> None:
    """Adds everything that hangs on a body."""
    for prim in hinges:
        hinge = UsdPhysics.RevoluteJoint(prim)
        if hinge.GetBody0Rel().GetTargets() != [parent.GetPath()]:
            continue
        child = prim.GetStage().GetPrimAtPath(hinge.GetBody1Rel().GetTargets()[0])
        body = _add_body(spec.body(parent.GetName()), child)
        before, after = _pose(hinge, 0), _pose(hinge, 1)
        inverse, turned = (np.zeros(3), np.zeros(4)), np.zeros(4)
        mujoco.mju_negPose(inverse[0], turned, *after)
        mujoco.mju_mulPose(body.pos, body.quat, *before, inverse[0], turned)
        axis = np.zeros(3)
        mujoco.mju_rotVecQuat(axis, np.array(_AXES[str(hinge.GetAxisAttr().Get())]), after[1])
        effort = UsdPhysics.DriveAPI(prim, "angular").GetMaxForceAttr().Get()
        joint = body.add_joint(
            name=prim.GetName(),
            type=mujoco.mjtJoint.mjJNT_HINGE,
            pos=after[0],
            axis=axis,
            limited=True,
            range=[math.radians(hinge.GetLowerLimitAttr().Get()), math.radians(hinge.GetUpperLimitAttr().Get())],
            armature=prim.GetAttribute("newton:armature").Get(),
            actfrclimited=True,
            actfrcrange=[-effort, effort],
        )
        for name, field in (("mjc:solreflimit", "solref_limit"), ("mjc:solimplimit", "solimp_limit")):
            value = prim.GetAttribute(name).Get()
            if value is not None:
                setattr(joint, field, list(value))
        _add_children(spec, child, hinges)


def _add_body(parent: mujoco.MjsBody, prim: Usd.Prim) -> mujoco.MjsBody:
    """Adds a body with its mass and colliders; its place is that of its joint."""
    mass = UsdPhysics.MassAPI(prim)
    body = parent.add_body(
        name=prim.GetName(),
        explicitinertial=True,
        mass=mass.GetMassAttr().Get(),
        ipos=list(mass.GetCenterOfMassAttr().Get()),
        iquat=_quaternion(mass.GetPrincipalAxesAttr().Get()),
        inertia=list(mass.GetDiagonalInertiaAttr().Get()),
    )
    for shape in prim.GetChildren():
        if shape.HasAPI(UsdPhysics.CollisionAPI):
            _add_shape(body, shape)
    return body


def _add_shape(body: mujoco.MjsBody, prim: Usd.Prim) -> None:
    place = Gf.Transform(UsdGeom.Xformable(prim).GetLocalTransformation())
    scale = np.array(place.GetScale())
    kinds = mujoco.mjtGeom
    if prim.IsA(UsdGeom.Cube):
        kind, size = kinds.mjGEOM_BOX, scale * UsdGeom.Cube(prim).GetSizeAttr().Get() / 2.0
    elif prim.IsA(UsdGeom.Sphere):
        kind, size = kinds.mjGEOM_SPHERE, np.array([UsdGeom.Sphere(prim).GetRadiusAttr().Get(), 0.0, 0.0])
    elif prim.IsA(UsdGeom.Capsule) or prim.IsA(UsdGeom.Cylinder):
        capsule = prim.IsA(UsdGeom.Capsule)
        rod = (UsdGeom.Capsule if capsule else UsdGeom.Cylinder)(prim)
        if rod.GetAxisAttr().Get() != "Z":
            raise UmcError(f"{prim.GetPath()} does not lie along Z; turn it by its orientation instead")
        kind = kinds.mjGEOM_CAPSULE if capsule else kinds.mjGEOM_CYLINDER
        size = np.array([rod.GetRadiusAttr().Get(), rod.GetHeightAttr().Get() / 2.0, 0.0])
    else:
        raise UmcError(
            f"{prim.GetPath()} is a {prim.GetTypeName()}; only boxes, spheres, capsules and cylinders collide"
        )
    if kind != kinds.mjGEOM_BOX and not np.allclose(scale, 1.0):
        raise UmcError(f"{prim.GetPath()} is scaled; give it its size instead")
    body.add_geom(
        name=f"{body.name}/{prim.GetName()}",
        type=kind,
        size=size,
        pos=list(place.GetTranslation()),
        quat=_quaternion(place.GetRotation().GetQuat()),
        contype=1,
        conaffinity=0,
        condim=3,
        priority=1,  # its friction counts, not the greater one of the two
    )


def _pose(hinge: UsdPhysics.RevoluteJoint, end: int) -> tuple[Vector, Vector]:
    """Position and quaternion of a joint's frame in the first or second of its bodies."""
    position, rotation = (getattr(hinge, f"GetLocal{name}{end}Attr")().Get() for name in ("Pos", "Rot"))
    return np.array(position, dtype=float), np.array(_quaternion(rotation))


def _quaternion(rotation: Gf.Quatf | Gf.Quatd | Gf.Quaternion) -> list[float]:
    values = np.array([rotation.GetReal(), *rotation.GetImaginary()], dtype=float)
    return list(values / np.linalg.norm(values))
