# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Public robot descriptions, read from the Python packages that carry them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import mujoco

from umc.errors import UmcError
from umc.robots.builder.recipe import Source

EXAMPLE_ROBOT_DATA = "example-robot-data"
EXAMPLE_ROBOT_DATA_VERSION = "6.0.0"
"""The release on PyPI that the shipped files were built from."""


def example_robot(path: str) -> Path:
    """Find a file of ``example-robot-data``.

    Args:
        path: Path below the package's ``robots`` folder.

    Returns:
        The file's absolute path.

    Raises:
        UmcError: The package is missing or has another version.
    """
    pin = f"pip install {EXAMPLE_ROBOT_DATA}=={EXAMPLE_ROBOT_DATA_VERSION}"
    try:
        package = distribution(EXAMPLE_ROBOT_DATA)
    except PackageNotFoundError as error:
        raise UmcError(f"{EXAMPLE_ROBOT_DATA} is not installed; {pin}") from error
    if package.version != EXAMPLE_ROBOT_DATA_VERSION:
        raise UmcError(f"{EXAMPLE_ROBOT_DATA} {package.version} is not the release that the robots come from; {pin}")
    return Path(str(package.locate_file("cmeel.prefix/share/example-robot-data/robots"))) / path


def load_urdf(path: Path, package: str, package_path: Path) -> Source:
    """Read a URDF with a floating root.

    Args:
        path: The URDF file.
        package: Prefix of its mesh addresses, for example ``package://example-robot-data/robots``.
        package_path: Folder that the prefix stands for.

    Returns:
        The model and the velocity limits of its joints.
    """
    robot = ET.parse(path).getroot()
    for link in robot.findall("link"):
        for visual in link.findall("visual"):  # MuJoCo cannot read .dae, and shapes come from the collision elements
            link.remove(visual)
    for mesh in robot.iter("mesh"):
        mesh.set("filename", mesh.attrib["filename"].replace(package, str(package_path)))
    options = ET.SubElement(ET.SubElement(robot, "mujoco"), "compiler")
    options.attrib.update(strippath="false", fusestatic="true", fitaabb="true", discardvisual="false")
    joints = robot.findall("joint")
    _float_root(robot, joints)
    limits = {
        joint.attrib["name"]: float(limit.attrib["velocity"])
        for joint in joints
        if (limit := joint.find("limit")) is not None
    }
    return Source(mujoco.MjSpec.from_string(ET.tostring(robot, encoding="unicode")), limits)


def _float_root(robot: ET.Element, joints: list[ET.Element]) -> None:
    """Let the first link with a mass float; MuJoCo would weld it to the world and drop its mass."""
    children = {_end(joint, "child") for joint in joints}
    root = next(link for link in robot.findall("link") if link.attrib["name"] not in children)
    if root.find("inertial") is None:  # A1: a massless "base" with the trunk fixed to it
        next(joint for joint in joints if _end(joint, "parent") == root.attrib["name"]).set("type", "floating")
        return
    ET.SubElement(robot, "link", name="_world")
    joint = ET.SubElement(robot, "joint", name="_root", type="floating")
    ET.SubElement(joint, "parent", link="_world")
    ET.SubElement(joint, "child", link=root.attrib["name"])


def _end(joint: ET.Element, end: str) -> str:
    element = joint.find(end)
    if element is None:
        raise UmcError(f"joint {joint.attrib['name']} of the URDF has no {end}; mend the file")
    return element.attrib["link"]
