# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Visual meshes of a robot: read from its URDF, simplified, moved to the bodies, written as one binary USD file.

They come into a file of their own, since simplification differs in the last digits between machines.
"""

# pxr's stubs declare None where the calls return objects:
# pyright: reportAttributeAccessIssue=none, reportArgumentType=none

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import trimesh
from pxr import Usd, UsdGeom, Vt
from trimesh.transformations import euler_matrix, rotation_matrix, translation_matrix

from umc.robots.builder.cfg import BuildCfg, Color
from umc.robots.builder.source import attribute_of, mesh_path
from umc.utils.errors import UmcError

FACES = 60_000
"""Triangles of a robot, about."""

AGGRESSION = 3
"""Of the simplification, 0 to 10; the library's 7 tears A1's trunk."""

CREASE = 0.6
"""Angle between two faces from which on their common edge stays sharp [rad]."""

DIGITS = 5
"""Decimals that are kept of vertices: 0.01 mm."""


def write_visuals(cfg: BuildCfg, path: Path, meshes: Path | None = None) -> None:
    """Write the visual meshes of all bodies, one for each color of a body.

    Args:
        cfg: The robot.
        path: The ``.usdc`` to write.
        meshes: Folder with the meshes that ``example-robot-data`` does not have.
    """
    robot = ET.parse(cfg.urdf()).getroot()
    parts = list(_parts(robot, cfg, meshes))
    spread = sum(mesh.scale for _, _, mesh in parts)
    shapes: dict[tuple[str, Color], list[trimesh.Trimesh]] = {}
    for body, color, mesh in parts:
        shapes.setdefault((body, color), []).append(_simplify(mesh, round(FACES * mesh.scale / spread)))
    stage = Usd.Stage.CreateInMemory()
    stage.GetRootLayer().documentation = cfg.notice
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    for name in cfg.bodies:
        UsdGeom.Xform.Define(stage, f"/{cfg.name}/{name}")
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, f"/{cfg.name}").GetPrim())
    numbers = dict.fromkeys(cfg.bodies, 0)
    for (body, color), group in shapes.items():
        _write_mesh(stage, f"/{cfg.name}/{body}/visual_{numbers[body]}", trimesh.util.concatenate(group), color)
        numbers[body] += 1
    stage.GetRootLayer().Export(str(path))


def _parts(robot: ET.Element, cfg: BuildCfg, folder: Path | None) -> Iterable[tuple[str, Color, trimesh.Trimesh]]:
    """Yield the meshes of the URDF, each with the body that it belongs to, in whose frame it is, and its color."""
    palette = {material.get("name"): material for material in robot.findall("material")}
    frames = _link_frames(robot, cfg)
    for link in robot.findall("link"):
        name = link.attrib["name"]
        for visual in link.findall("visual"):
            element = visual.find("geometry/mesh")
            if element is None or name not in frames:
                continue
            mesh = trimesh.load_mesh(mesh_path(element.attrib["filename"], folder), process=False)
            mesh = trimesh.Trimesh(mesh.vertices, mesh.faces)  # merges vertices
            body, frame = frames[name]
            mesh.apply_transform(frame @ _origin(visual))
            yield body, _color(cfg, name, visual, palette), mesh


def _link_frames(robot: ET.Element, cfg: BuildCfg) -> dict[str, tuple[str, np.ndarray]]:
    """Return the body of every link below a body and the link's pose in it, other joints at the angle of their weld."""
    joints = {attribute_of(joint, "child"): joint for joint in robot.findall("joint")}
    frames: dict[str, tuple[str, np.ndarray]] = {name: (name, np.eye(4)) for name in cfg.bodies}

    def place(link: str) -> tuple[str, np.ndarray] | None:
        if link not in frames and link in joints:
            joint = joints[link]
            parent = place(attribute_of(joint, "parent"))
            if parent is not None:
                frames[link] = (parent[0], parent[1] @ _origin(joint) @ _weld(joint, cfg))
        return frames.get(link)

    for link in robot.findall("link"):
        place(link.attrib["name"])
    return frames


def _weld(joint: ET.Element, cfg: BuildCfg) -> np.ndarray:
    """Return the rotation of a joint that the cfg welds at an angle."""
    for rule, angle in cfg.welded_at.items():
        if re.fullmatch(rule, joint.attrib["name"]):
            return np.asarray(rotation_matrix(angle, _floats(attribute_of(joint, "axis", "xyz"))))
    return np.eye(4)


def _origin(element: ET.Element) -> np.ndarray:
    """Return the pose that a URDF element gives as its ``origin``."""
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    shift, turn = (_floats(origin.get(name, "0 0 0")) for name in ("xyz", "rpy"))
    return translation_matrix(shift) @ euler_matrix(*turn)


def _floats(text: str) -> list[float]:
    return [float(number) for number in text.split()]


def _color(cfg: BuildCfg, link: str, visual: ET.Element, palette: Mapping[str | None, ET.Element]) -> Color:
    """Return the cfg's color of a link or else the URDF's."""
    for pattern, color in cfg.visual_colors:
        if re.fullmatch(pattern, link):
            return color
    found = visual.find("material/color")
    if found is None and (material := visual.find("material")) is not None:
        found = palette.get(material.get("name"), material).find("color")
    if found is None:
        raise UmcError(f"the URDF has no color for {link}; add a rule to visual_colors of the robot's BuildCfg")
    red, green, blue = _floats(found.attrib["rgba"])[:3]
    return red, green, blue


def _simplify(mesh: trimesh.Trimesh, faces: int) -> trimesh.Trimesh:
    if len(mesh.faces) <= faces:
        return mesh
    return mesh.simplify_quadric_decimation(face_count=faces, aggression=AGGRESSION)


def _write_mesh(stage: Usd.Stage, path: str, mesh: trimesh.Trimesh, color: Color) -> None:
    """Write a mesh whose sharp edges have a vertex for each side, so that normals per vertex keep them sharp."""
    mesh = trimesh.graph.smooth_shade(mesh, angle=CREASE)
    shape = UsdGeom.Mesh.Define(stage, path)
    points = np.round(mesh.vertices, DIGITS).astype(np.float32)
    shape.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(points))
    shape.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(mesh.faces), 3, np.int32)))
    shape.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(mesh.faces.astype(np.int32).ravel()))
    shape.CreateNormalsAttr(Vt.Vec3fArray.FromNumpy(np.round(mesh.vertex_normals, 3).astype(np.float32)))
    shape.SetNormalsInterpolation(UsdGeom.Tokens.vertex)
    shape.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    shape.CreateExtentAttr(Vt.Vec3fArray.FromNumpy(np.stack([points.min(axis=0), points.max(axis=0)])))
    shape.CreateDisplayColorAttr([color])
