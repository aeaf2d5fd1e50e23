# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""From a compiled model to an MJCF file with the bodies, joints and colliders of the USD file."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path

import mujoco

from umc.robots.builder.cfg import BuildCfg
from umc.robots.builder.usd import DIGITS, LIMIT_SOLIMP, LIMIT_SOLREF, SHAPE_DIGITS, tidy

_SIZES = {
    mujoco.mjtGeom.mjGEOM_BOX: 3,
    mujoco.mjtGeom.mjGEOM_SPHERE: 1,
    mujoco.mjtGeom.mjGEOM_CAPSULE: 2,
    mujoco.mjtGeom.mjGEOM_CYLINDER: 2,
}
"""How many sizes MJCF has of each primitive."""


def write_mjcf(model: mujoco.MjModel, cfg: BuildCfg, path: Path) -> None:
    """Write the robot without ground and actuators; MjSpec.to_xml would keep six digits and the source's meshes."""
    root = ET.Element("mujoco", model=cfg.name)
    root.append(ET.Comment(f" {cfg.notice} "))
    ET.SubElement(root, "compiler", angle="radian")
    default = ET.SubElement(root, "default")
    # friction is the robot's alone, and its bodies collide with the ground only, as in the tasks
    ET.SubElement(default, "geom", contype="1", conaffinity="0", condim="3", priority="1")
    ET.SubElement(default, "joint", solreflimit=_text(LIMIT_SOLREF), solimplimit=_text(LIMIT_SOLIMP))
    elements = {"world": ET.SubElement(root, "worldbody")}
    for name in cfg.bodies:
        elements[name] = _add_body(elements, model, model.body(name).id)
    ET.indent(root)
    path.write_text(ET.tostring(root, encoding="unicode") + "\n", encoding="utf-8")


def _add_body(elements: dict[str, ET.Element], model: mujoco.MjModel, body: int) -> ET.Element:
    """Add a body with its mass, joint and colliders to its parent."""
    name, parent = model.body(body).name, model.body(model.body_parentid[body]).name
    element = ET.SubElement(elements[parent], "body", name=name)
    joint = model.body_jntadr[body]
    free = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
    if not free:
        element.set("pos", _text(model.body_pos[body]))
        element.set("quat", _text(model.body_quat[body]))
    ET.SubElement(
        element,
        "inertial",
        mass=_text([model.body_mass[body]]),
        pos=_text(model.body_ipos[body]),
        quat=_text(model.body_iquat[body]),
        diaginertia=_text(model.body_inertia[body]),
    )
    if free:
        ET.SubElement(element, "freejoint", name="base")
    else:
        ET.SubElement(
            element,
            "joint",
            name=model.joint(joint).name,
            pos=_text(model.jnt_pos[joint]),
            axis=_text(model.jnt_axis[joint]),
            range=_text(model.jnt_range[joint]),
            actuatorfrcrange=_text(model.jnt_actfrcrange[joint]),
            armature=_text([model.dof_armature[model.jnt_dofadr[joint]]]),
        )
    first = model.body_geomadr[body]
    for number, geom in enumerate(range(first, first + model.body_geomnum[body])):
        kind = mujoco.mjtGeom(int(model.geom_type[geom]))
        ET.SubElement(
            element,
            "geom",
            name=f"{name}/collision_{number}",
            type=kind.name.removeprefix("mjGEOM_").lower(),
            size=_text(model.geom_size[geom, : _SIZES[kind]], SHAPE_DIGITS),
            pos=_text(model.geom_pos[geom], SHAPE_DIGITS),
            quat=_text(model.geom_quat[geom], SHAPE_DIGITS),
            rgba=_text(model.geom_rgba[geom], SHAPE_DIGITS),
        )
    return element


def _text(values: Iterable[float], digits: int = DIGITS) -> str:
    return " ".join(f"{tidy(value, digits):.12g}" for value in values)
