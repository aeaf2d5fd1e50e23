# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Public URDFs, read from the Python package that contains them or from the copy in this one."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import mujoco

from umc.robots.spawn import DATA
from umc.utils.errors import UmcError

EXAMPLE_ROBOT_DATA = "example-robot-data"
EXAMPLE_ROBOT_DATA_VERSION = "6.0.0"
"""The release on PyPI that the files in data/ were built from."""

EXAMPLE_ROBOT_DATA_MESHES = "package://example-robot-data/robots/"
"""How its URDFs address their meshes."""

MESHES = (".stl", ".obj", ".msh")
"""Files that MuJoCo reads."""


def example_robot(path: str) -> Path:
    """Return the path of a file below the ``robots`` folder of ``example-robot-data``; UmcError in another version."""
    pin = f"pip install {EXAMPLE_ROBOT_DATA}=={EXAMPLE_ROBOT_DATA_VERSION}"
    try:
        package = distribution(EXAMPLE_ROBOT_DATA)
    except PackageNotFoundError as error:
        raise UmcError(f"{EXAMPLE_ROBOT_DATA} is not installed; {pin}") from error
    if package.version != EXAMPLE_ROBOT_DATA_VERSION:
        raise UmcError(f"{EXAMPLE_ROBOT_DATA} {package.version} is not the release that the robots come from; {pin}")
    return Path(str(package.locate_file("cmeel.prefix/share/example-robot-data/robots"))) / path


def bundled(name: str) -> Path:
    """Return the path of a URDF in this package's data (those that no package on PyPI contains)."""
    return DATA / "sources" / name


def mesh_path(name: str, folder: Path | None) -> Path:
    """Return the path of a mesh that a URDF names; those outside ``example-robot-data`` lie in a folder."""
    if name.startswith(EXAMPLE_ROBOT_DATA_MESHES):
        return example_robot(name.removeprefix(EXAMPLE_ROBOT_DATA_MESHES))
    path = (folder or Path()) / Path(name).name
    if folder is None or not path.is_file():
        raise UmcError(f"no package on PyPI has {path.name}; name the folder that holds it with --meshes")
    return path


def load_urdf(path: Path) -> tuple[mujoco.MjSpec, Mapping[str, float]]:
    """Read a URDF with a floating root; return it with velocity limits [rad/s] of joints, which MuJoCo lacks."""
    robot = ET.parse(path).getroot()
    for options in robot.findall("mujoco"):
        robot.remove(options)
    for link in robot.findall("link"):
        for visual in link.findall("visual"):  # MuJoCo cannot read .dae, and shapes come from the collision elements
            link.remove(visual)
        for collision in link.findall("collision"):
            mesh = collision.find("geometry/mesh")
            if mesh is None:
                continue
            if (file := _collision_mesh(mesh.attrib["filename"], path)) is None:
                link.remove(collision)
            else:
                mesh.set("filename", str(file))
    options = ET.SubElement(ET.SubElement(robot, "mujoco"), "compiler")
    options.attrib.update(strippath="false", fusestatic="true", fitaabb="true", discardvisual="false")
    joints = robot.findall("joint")
    _float_root(robot, joints)
    limits = {
        joint.attrib["name"]: float(limit.attrib["velocity"])
        for joint in joints
        if (limit := joint.find("limit")) is not None and "velocity" in limit.attrib
    }
    return mujoco.MjSpec.from_string(ET.tostring(robot, encoding="unicode")), limits


def _collision_mesh(name: str, urdf: Path) -> Path | None:
    """Return the path of a mesh; None if it is of a bundled URDF, whose meshes no package has."""
    if name.startswith(EXAMPLE_ROBOT_DATA_MESHES):
        return example_robot(name.removeprefix(EXAMPLE_ROBOT_DATA_MESHES))
    if urdf.parent == bundled(""):
        return None
    package, _, below = name.removeprefix("package://").partition("/")
    places = [urdf.parent / name] if "://" not in name else [up / package / below for up in urdf.resolve().parents]
    file = next((place for place in places if place.is_file()), None)
    if file is None or file.suffix.lower() not in MESHES:
        raise UmcError(
            f"{urdf}: no collision mesh {name} with a suffix {', '.join(MESHES)}; put it there, or take the collision "
            "out of the file and add a Primitive to the BuildCfg"
        )
    return file.resolve()


def _float_root(robot: ET.Element, joints: list[ET.Element]) -> None:
    """Let the first link with a mass float; MuJoCo would weld it to the world and drop its mass."""
    children = {attribute_of(joint, "child") for joint in joints}
    root = next(link for link in robot.findall("link") if link.attrib["name"] not in children)
    if root.find("inertial") is None:  # A1: a massless "base" with the trunk fixed to it
        next(joint for joint in joints if attribute_of(joint, "parent") == root.attrib["name"]).set("type", "floating")
        return
    ET.SubElement(robot, "link", name="_world")
    joint = ET.SubElement(robot, "joint", name="_root", type="floating")
    ET.SubElement(joint, "parent", link="_world")
    ET.SubElement(joint, "child", link=root.attrib["name"])


def attribute_of(joint: ET.Element, tag: str, name: str = "link") -> str:
    """Return an attribute of a part of a joint: of its ``parent`` or ``child`` the link."""
    part = joint.find(tag)
    if part is None:
        raise UmcError(f"joint {joint.attrib['name']} of the URDF has no {tag}; fix the file")
    return part.attrib[name]
