# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""From a public URDF to a compiled model: joints welded, fixed links fused, meshes replaced by primitives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import mujoco
import numpy as np

from umc.robots.builder.cfg import BuildCfg, Fit, Limits
from umc.robots.builder.source import load_urdf
from umc.utils.errors import UmcError


def compile_model(cfg: BuildCfg) -> tuple[mujoco.MjModel, Mapping[str, float]]:
    """Compile the robot, and return it with the velocity limit [rad/s] of each joint; UmcError if it is another one."""
    spec, velocity_limits = load_urdf(cfg.urdf())
    _weld(spec, cfg)
    _shape(spec, cfg)
    if cfg.limits is not None:
        velocity_limits = _limit(spec, cfg.limits)
    for joint in spec.joints:
        if joint.type != mujoco.mjtJoint.mjJNT_FREE:
            joint.armature = match(cfg.armature.items(), joint.name, "armature")
    if missing := sorted(set(cfg.joints) - set(velocity_limits)):
        raise UmcError(
            f"{cfg.name}: no velocity limit of {', '.join(missing)}; give it in the URDF, or BuildCfg.limits"
        )
    if not spec.geoms:
        raise UmcError(f"{cfg.name} has no collision shapes; add a Primitive for the trunk and for each foot")
    model = spec.compile()
    bodies = [model.body(i).name for i in range(1, model.nbody)]
    joints = [model.joint(i).name for i in range(model.njnt) if model.jnt_type[i] == mujoco.mjtJoint.mjJNT_HINGE]
    for what, found, wanted in (("bodies", bodies, cfg.bodies), ("joints", joints, cfg.joints)):
        if set(found) != set(wanted):
            raise UmcError(
                f"{cfg.name}: {what} differ from the cfg's: {sorted(set(found) ^ set(wanted))}; correct the cfg"
            )
    if free := [name for name in joints if not model.jnt_limited[model.joint(name).id]]:
        raise UmcError(
            f"{cfg.name}: {', '.join(free)} has no position limits, in which faults act; give them in the URDF, or "
            "BuildCfg.limits"
        )
    return model, velocity_limits


def match[T](rules: Iterable[tuple[str, T]], name: str, what: str) -> T:
    """Look up the first rule whose regular expression matches the whole name; UmcError without one."""
    for pattern, value in rules:
        if re.fullmatch(pattern, name):
            return value
    raise UmcError(f"the robot's BuildCfg has no {what} for {name}; add a rule")


def _weld(spec: mujoco.MjSpec, cfg: BuildCfg) -> None:
    """Turn the bodies of joints that the cfg does not name to their angle and remove the joints."""
    for joint in list(spec.joints):
        if joint.type == mujoco.mjtJoint.mjJNT_FREE or joint.name in cfg.joints:
            continue
        angle = match((*cfg.welded_at.items(), (".*", 0.0)), joint.name, "angle")
        turn, turned = np.zeros(4), np.zeros(4)
        mujoco.mju_axisAngle2Quat(turn, np.array(joint.axis), angle)
        mujoco.mju_mulQuat(turned, np.array(joint.parent.quat), turn)
        joint.parent.quat = turned
        spec.delete(joint)


def _limit(spec: mujoco.MjSpec, limits: Limits) -> Mapping[str, float]:
    """Replace the limits of all joints; returns joint name to velocity limit [rad/s]."""
    hinges = [joint for joint in spec.joints if joint.type != mujoco.mjtJoint.mjJNT_FREE]
    for joint in hinges:
        joint.range = limits.position
        joint.actfrcrange = (-limits.effort, limits.effort)
    return {joint.name: limits.velocity for joint in hinges}


def _shape(spec: mujoco.MjSpec, cfg: BuildCfg) -> None:
    """Make every shape a primitive, add the cfg's primitives and paint all."""
    for geom in list(spec.geoms):
        fit = next((rule.fit for rule in cfg.shapes if re.fullmatch(rule.links, geom.parent.name)), None)
        if fit is Fit.DROP:
            spec.delete(geom)
        elif fit is not None and geom.meshname:
            geom.type = fit.value
    for geom in spec.geoms:
        geom.rgba = [*match(cfg.colors, geom.parent.name, "color"), 1.0]
    for body in spec.bodies:
        for primitive in cfg.primitives:
            if re.fullmatch(primitive.links, body.name):
                color = primitive.color or match(cfg.colors, body.name, "color")
                body.add_geom(
                    type=primitive.kind,
                    size=[*primitive.size, 0.0, 0.0][:3],
                    pos=primitive.pos,
                    quat=primitive.quat,
                    rgba=[*color, 1.0],
                    mass=0.0,
                )
