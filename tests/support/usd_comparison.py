# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Compare a USD file with pinocchio's reading of its URDF."""

# pxr's stubs declare None where the calls return objects:
# pyright: reportAttributeAccessIssue=none, reportArgumentType=none, reportOptionalIterable=none, reportGeneralTypeIssues=none

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports] (cmeel installs it behind a .pth file)
from pxr import Gf, Usd, UsdGeom, UsdPhysics
from umc.robots.builder.cfg import BuildCfg

TOLERANCE = 1.0e-5
"""Greatest difference in any figure (SI units): USD keeps most of them in single precision."""

FIGURES = ("mass", "center_of_mass", "inertia", "position_limit", "effort_limit", "velocity_limit", "kinematics")
"""What is compared."""

FLOATING_ROOT = 6
"""Speeds of the floating root; it has one coordinate more."""

POSES = 5
"""Random poses in which the kinematics are compared."""


def reduced_model(cfg: BuildCfg) -> pin.Model:
    """Read the URDF with a floating root; weld joints and replace limits as the cfg says."""
    model = pin.buildModelFromUrdf(str(cfg.urdf()), pin.JointModelFreeFlyer())
    pose = pin.neutral(model)
    welded = [name for name in list(model.names)[2:] if name not in cfg.joints]
    for name in welded:
        angle = next((angle for rule, angle in cfg.welded_at.items() if re.fullmatch(rule, name)), 0.0)
        pose[model.joints[model.getJointId(name)].idx_q] = angle
    model = pin.buildReducedModel(model, [model.getJointId(name) for name in welded], pose)
    if cfg.limits is not None:
        joints = np.arange(FLOATING_ROOT, model.nv)
        lower, upper = cfg.limits.position
        model.lowerPositionLimit[joints + 1], model.upperPositionLimit[joints + 1] = lower, upper
        model.effortLimit[joints], model.velocityLimit[joints] = cfg.limits.effort, cfg.limits.velocity
    return model


def compare(usd: Path, model: pin.Model) -> Mapping[str, float]:
    """Measure how far the USD file is from pinocchio's reduced model of the same robot.

    Returns:
        Greatest difference of: ``mass`` [kg], ``center_of_mass`` [m], ``inertia`` [kg*m^2] (each per body),
        ``position_limit`` [rad], ``effort_limit`` [N*m], ``velocity_limit`` [rad/s],
        ``kinematics`` (positions [m] and rotation matrices [-] of all bodies in random poses).
    """
    stage = Usd.Stage.Open(str(usd))
    joints = {prim.GetName(): prim for prim in stage.Traverse() if prim.IsA(UsdPhysics.RevoluteJoint)}
    if set(joints) != set(list(model.names)[2:]):
        raise ValueError(f"joints differ: {sorted(set(joints) ^ set(list(model.names)[2:]))}")
    worst: dict[str, float] = dict.fromkeys(FIGURES, 0.0)

    def note(what: str, found: object, wanted: object) -> None:
        worst[what] = max(worst[what], float(np.abs(np.asarray(found) - np.asarray(wanted)).max()))

    bodies = {1: next(p for p in stage.Traverse() if p.HasAPI(UsdPhysics.ArticulationRootAPI))}
    for name, prim in joints.items():
        index = model.getJointId(name)
        bodies[index] = stage.GetPrimAtPath(UsdPhysics.Joint(prim).GetBody1Rel().GetTargets()[0])
        hinge, at_q, at_v = UsdPhysics.RevoluteJoint(prim), model.joints[index].idx_q, model.joints[index].idx_v
        note("position_limit", math.radians(hinge.GetLowerLimitAttr().Get()), model.lowerPositionLimit[at_q])
        note("position_limit", math.radians(hinge.GetUpperLimitAttr().Get()), model.upperPositionLimit[at_q])
        note("effort_limit", UsdPhysics.DriveAPI(prim, "angular").GetMaxForceAttr().Get(), model.effortLimit[at_v])
        for attribute in ("newton:velocityLimit", "physxJoint:maxJointVelocity"):
            note("velocity_limit", math.radians(prim.GetAttribute(attribute).Get()), model.velocityLimit[at_v])
    for index, prim in bodies.items():
        mass, wanted = UsdPhysics.MassAPI(prim), model.inertias[index]
        axes = _rotation(mass.GetPrincipalAxesAttr().Get())
        note("mass", mass.GetMassAttr().Get(), wanted.mass)
        note("center_of_mass", mass.GetCenterOfMassAttr().Get(), wanted.lever)
        note("inertia", axes @ np.diag(mass.GetDiagonalInertiaAttr().Get()) @ axes.T, wanted.inertia)
    _compare_kinematics(joints, bodies, model, note)
    return worst


def _compare_kinematics(joints, bodies, model: pin.Model, note) -> None:
    """Chain the joint frames of the USD in random poses, and its body frames in the zero pose."""
    data = model.createData()
    random = np.random.default_rng(0)
    poses = [np.zeros(len(joints)), *random.uniform(-1.0, 1.0, (POSES, len(joints)))]
    index_of = {prim.GetPath(): index for index, prim in bodies.items()}
    for number, pose in enumerate(poses):
        q = pin.neutral(model)
        q[7:] = pose
        pin.forwardKinematics(model, data, q)
        found = {1: pin.SE3.Identity()}
        for index in range(2, model.njoints):  # parents come before children
            prim = joints[model.names[index]]
            hinge = UsdPhysics.RevoluteJoint(prim)
            parent = index_of[hinge.GetBody0Rel().GetTargets()[0]]
            before = pin.SE3(_rotation(hinge.GetLocalRot0Attr().Get()), np.array(hinge.GetLocalPos0Attr().Get()))
            after = pin.SE3(_rotation(hinge.GetLocalRot1Attr().Get()), np.array(hinge.GetLocalPos1Attr().Get()))
            angle = q[model.joints[index].idx_q]
            turn = pin.SE3(pin.AngleAxis(angle, np.array([0.0, 0.0, 1.0])).toRotationMatrix(), np.zeros(3))
            found[index] = found[parent] * before * turn * after.inverse()
        for index, frame in found.items():
            note("kinematics", frame.homogeneous, data.oMi[index].homogeneous)
        if number == 0:
            for index, prim in bodies.items():
                matrix = np.array(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(Usd.TimeCode.Default())).T
                note("kinematics", matrix, data.oMi[index].homogeneous)


def _rotation(quaternion: Gf.Quatf) -> np.ndarray:
    return pin.Quaternion(quaternion.real, *quaternion.imaginary).toRotationMatrix()
