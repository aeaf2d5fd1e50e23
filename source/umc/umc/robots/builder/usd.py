# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""From a compiled model to one flat USD file that Newton and PhysX read alike."""

# pxr's stubs declare None where the calls return objects:
# pyright: reportAttributeAccessIssue=none, reportArgumentType=none, reportReturnType=none

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

from umc.robots.builder.cfg import BuildCfg
from umc.utils.errors import UmcError

LIMIT_SOLREF = (0.01, 1.0)
"""Time constant [s] and damping ratio [-] of a joint limit in MuJoCo. G1's knee, commanded 0.3 rad beyond its limit,
overshoots 0.03 rad with these and 0.16 rad with Newton's default, which diverges under harder pushes."""

LIMIT_SOLIMP = (0.95, 0.99, 0.001, 0.5, 2.0)
"""Impedance of a joint limit in MuJoCo: least and greatest [-], width [rad], midpoint [-], power [-]."""

DIGITS = 9
"""Decimals that are kept of inertia, mass and joint frames."""

SHAPE_DIGITS = 5
"""Decimals that are kept of shapes: 0.01 mm, so that a fitted mesh gives the same text on every machine."""

_GEOM = mujoco.mjtGeom


def write_usd(model: mujoco.MjModel, velocity_limits: Mapping[str, float], cfg: BuildCfg, path: Path) -> None:
    """Write the robot, bodies and joints in the order of the cfg; velocity limits [rad/s] by joint."""
    data = mujoco.MjData(model)
    data.qpos[:7] = (0, 0, 0, 1, 0, 0, 0)
    mujoco.mj_kinematics(model, data)
    stage = Usd.Stage.CreateInMemory()
    stage.GetRootLayer().documentation = cfg.notice
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, f"/{cfg.name}").GetPrim())
    for name in cfg.bodies:
        body = model.body(name).id
        prim = UsdGeom.Xform.Define(stage, f"/{cfg.name}/{name}").GetPrim()
        _place(prim, data.xpos[body], data.xquat[body], DIGITS)
        UsdPhysics.RigidBodyAPI.Apply(prim)
        if name == cfg.bodies[0]:
            UsdPhysics.ArticulationRootAPI.Apply(prim)
        mass = UsdPhysics.MassAPI.Apply(prim)
        mass.CreateMassAttr(tidy(model.body_mass[body], DIGITS))
        mass.CreateCenterOfMassAttr(_tidied(model.body_ipos[body], DIGITS))
        mass.CreatePrincipalAxesAttr(_tidied(model.body_iquat[body], DIGITS, Gf.Quatf))
        mass.CreateDiagonalInertiaAttr(_tidied(model.body_inertia[body], DIGITS))
        _write_colliders(stage, model, body, f"/{cfg.name}/{name}", cfg.has_visuals)
    for name in cfg.joints:
        _write_joint(stage, model, name, velocity_limits[name], cfg.name)
    layer = Sdf.Layer.CreateAnonymous()
    layer.TransferContent(stage.GetRootLayer())
    if cfg.has_visuals:
        layer.subLayerPaths.append(f"./{visuals_name(cfg)}")
    layer.Export(str(path))


def visuals_name(cfg: BuildCfg) -> str:
    """Return the name of the file with the robot's visual meshes."""
    return f"{cfg.name}_visuals.usdc"


def _write_colliders(stage: Usd.Stage, model: mujoco.MjModel, body: int, parent: str, hidden: bool) -> None:
    """Write the colliders of one body; renderers do not draw hidden ones."""
    first = model.body_geomadr[body]
    for number, geom in enumerate(range(first, first + model.body_geomnum[body])):
        path, kind = f"{parent}/collision_{number}", _GEOM(int(model.geom_type[geom]))
        shape = _define_shape(stage, path, kind, model.geom_size[geom])
        form = _place(shape.GetPrim(), model.geom_pos[geom], model.geom_quat[geom], SHAPE_DIGITS)
        if kind == _GEOM.mjGEOM_BOX:
            form.AddScaleOp().Set(_tidied(model.geom_size[geom], SHAPE_DIGITS))
        shape.CreateDisplayColorAttr([_tidied(model.geom_rgba[geom, :3], SHAPE_DIGITS)])
        UsdPhysics.CollisionAPI.Apply(shape.GetPrim())
        if hidden:
            shape.CreatePurposeAttr(UsdGeom.Tokens.guide)


def _define_shape(stage: Usd.Stage, path: str, kind: mujoco.mjtGeom, size: np.ndarray) -> UsdGeom.Gprim:
    """Define a primitive; a box is a cube of edge 2 that is scaled later."""
    radius, half = tidy(size[0], SHAPE_DIGITS), tidy(size[1], SHAPE_DIGITS)
    if kind == _GEOM.mjGEOM_BOX:
        cube = UsdGeom.Cube.Define(stage, path)
        cube.CreateSizeAttr(2.0)
        return _extent(cube, (1.0, 1.0, 1.0))
    if kind == _GEOM.mjGEOM_SPHERE:
        sphere = UsdGeom.Sphere.Define(stage, path)
        sphere.CreateRadiusAttr(radius)
        return _extent(sphere, (radius,) * 3)
    if kind not in (_GEOM.mjGEOM_CAPSULE, _GEOM.mjGEOM_CYLINDER):
        raise UmcError(f"{path}: {kind.name} is no shape for both engines; give its link a rule in the BuildCfg")
    capsule = kind == _GEOM.mjGEOM_CAPSULE
    rod = (UsdGeom.Capsule if capsule else UsdGeom.Cylinder).Define(stage, path)
    rod.CreateAxisAttr(UsdGeom.Tokens.z)
    rod.CreateRadiusAttr(radius)
    rod.CreateHeightAttr(2.0 * half)
    return _extent(rod, (radius, radius, half + radius if capsule else half))


def _write_joint(stage: Usd.Stage, model: mujoco.MjModel, name: str, velocity_limit: float, robot: str) -> None:
    """Write a hinge, its limits and each engine's own attributes."""
    joint = model.joint(name).id
    body = model.jnt_bodyid[joint]
    parent = f"/{robot}/{model.body(model.body_parentid[body]).name}"
    child = f"/{robot}/{model.body(body).name}"
    hinge = UsdPhysics.RevoluteJoint.Define(stage, f"{parent}/{name}")
    hinge.CreateBody0Rel().SetTargets([parent])
    hinge.CreateBody1Rel().SetTargets([child])
    # the joint's frame: Z along its axis
    frame, frame_in_parent, anchor = np.zeros(4), np.zeros(4), np.zeros(3)
    mujoco.mju_quatZ2Vec(frame, model.jnt_axis[joint])
    mujoco.mju_mulQuat(frame_in_parent, model.body_quat[body], frame)
    mujoco.mju_rotVecQuat(anchor, model.jnt_pos[joint], model.body_quat[body])
    hinge.CreateAxisAttr(UsdPhysics.Tokens.z)
    hinge.CreateLocalPos0Attr(_tidied(anchor + model.body_pos[body], DIGITS))
    hinge.CreateLocalRot0Attr(_tidied(frame_in_parent, DIGITS, Gf.Quatf))
    hinge.CreateLocalPos1Attr(_tidied(model.jnt_pos[joint], DIGITS))
    hinge.CreateLocalRot1Attr(_tidied(frame, DIGITS, Gf.Quatf))
    lower, upper = model.jnt_range[joint]
    hinge.CreateLowerLimitAttr(tidy(math.degrees(lower), DIGITS))
    hinge.CreateUpperLimitAttr(tidy(math.degrees(upper), DIGITS))
    prim = hinge.GetPrim()
    drive = UsdPhysics.DriveAPI.Apply(prim, UsdPhysics.Tokens.angular)
    drive.CreateTypeAttr(UsdPhysics.Tokens.force)
    drive.CreateMaxForceAttr(tidy(model.jnt_actfrcrange[joint, 1], DIGITS))
    drive.CreateStiffnessAttr(0.0)  # the actuators of the configuration drive the joint
    drive.CreateDampingAttr(0.0)
    speed = tidy(math.degrees(velocity_limit), DIGITS)
    armature = tidy(model.dof_armature[model.jnt_dofadr[joint]], DIGITS)
    number, numbers = Sdf.ValueTypeNames.Float, Sdf.ValueTypeNames.DoubleArray
    for schema, values in (
        ("PhysxJointAPI", {"physxJoint:armature": armature, "physxJoint:maxJointVelocity": speed}),
        ("NewtonJointAPI", {"newton:armature": armature, "newton:velocityLimit": speed}),
        ("MjcJointAPI", {"mjc:solimplimit": LIMIT_SOLIMP, "mjc:solreflimit": LIMIT_SOLREF}),
    ):
        prim.AddAppliedSchema(schema)
        for attribute, value in values.items():
            kind = numbers if isinstance(value, tuple) else number
            prim.CreateAttribute(attribute, kind, custom=False).Set(list(value) if kind == numbers else value)


def _place(prim: Usd.Prim, position: Iterable[float], rotation: Iterable[float], digits: int) -> UsdGeom.Xformable:
    form = UsdGeom.Xformable(prim)
    double = UsdGeom.XformOp.PrecisionDouble
    form.AddTranslateOp(double).Set(_tidied(position, digits, Gf.Vec3d))
    form.AddOrientOp(double).Set(_tidied(rotation, digits, Gf.Quatd))
    return form


def _extent(shape: UsdGeom.Gprim, half: tuple[float, float, float]) -> UsdGeom.Gprim:
    shape.CreateExtentAttr([Gf.Vec3f(*(-x for x in half)), Gf.Vec3f(*half)])
    return shape


def tidy(value: float, digits: int) -> float:
    """Round, so that every machine writes the same text; never minus zero."""
    return round(float(value), digits) + 0.0


def _tidied(values: Iterable[float], digits: int, kind: type = Gf.Vec3f) -> Any:
    """Return a vector or quaternion of rounded values."""
    return kind(*(tidy(value, digits) for value in values))
