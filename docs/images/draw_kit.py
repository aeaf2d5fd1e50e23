# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Draw the pictures of the Kit extension without Kit: its icon, and its panel beside a colored robot.

The panel is what exts/umc builds on the stand-ins of tests/kit, laid out here; the robot is what umc.kit leaves on a
USD stage. Neither is a screenshot, and the picture says so. Usage: ./isaaclab.sh -p docs/images/draw_kit.py
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from matplotlib import font_manager
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from pxr import Usd, UsdGeom
from scipy.spatial import ConvexHull

REPOSITORY = Path(__file__).resolve().parents[2]
EXTENSION = REPOSITORY / "exts" / "umc"
sys.path[:0] = [str(REPOSITORY / "tests" / "kit"), str(EXTENSION)]

import fake_kit  # noqa: E402
from fake_board import FakeBoard  # noqa: E402
from umc.kit import FaultPanel  # noqa: E402
from umc.rendering.colors import FAULT_COLOR, SENSOR_COLOR  # noqa: E402
from umc.robots import A1_CFG, A1_JOINTS  # noqa: E402

FAULTS = (
    ("FL_calf_joint", "rom", 0.3),
    ("FL_calf_joint", "dead", None),
    ("FR_thigh_joint", "effort", 10.0),
    ("RL_thigh_joint", "dead", None),
    ("RR_calf_joint", "dropped", 0.8),
)
KINDS = ("rom", "effort", "velocity", "locked", "power_loss", "dead", "bias", "noise", "dropped", "delayed")
ROBOT = "/World/envs/env_0/Robot"
LABEL = "Drawn from the panel's layout and a USD stage, without Isaac Sim: not a screenshot."
VIEW, MARGIN = 520, 16
"""Width of the robot's part, and space around everything [px]."""
SCALE = 660.0
"""Size of the robot [px/m]."""
LIGHT = np.array((0.35, -0.5, 0.8)) / np.linalg.norm((0.35, -0.5, 0.8))
BACK, WINDOW, FIELD, BUTTON, TEXT, DIM = "#3a3f44", "#2b2e31", "#1e2022", "#4a4f54", "#d6d9dc", "#6c7176"
ICON = 256


def font(size: int) -> ImageFont.FreeTypeFont:
    """Return Matplotlib's own font, which every environment has."""
    return ImageFont.truetype(font_manager.findfont("DejaVu Sans"), size)


def css(packed: int) -> tuple[int, int, int, int]:
    """Convert a color of omni.ui, 0xAABBGGRR."""
    return packed & 255, packed >> 8 & 255, packed >> 16 & 255, packed >> 24


class Painter:
    """Lay widgets out as omni.ui does, as far as the panel needs it: fixed sizes first, the rest is shared."""

    def __init__(self, image: Image.Image) -> None:
        self.draw, self.font = ImageDraw.Draw(image, "RGBA"), font(14)

    def paint(self, widget: Any, x: float, y: float, width: float, height: float) -> None:
        """Paint a widget and all below it."""
        name = widget.kind
        if name in ("VStack", "HStack", "Frame", "ScrollingFrame"):
            upright = name != "HStack"
            for child, start, size in self.share(widget, upright, height if upright else width):
                box = (x, y + start, width, size) if upright else (x + start, y, size, height)
                self.paint(child, *box)
        elif name == "Rectangle":
            color = css(widget.style.get("background_color", 0))
            self.draw.rectangle((x, y + 6, x + width, y + height - 6), fill=color)
        elif name == "Label":
            fill = css(widget.style["color"]) if "color" in widget.style else TEXT
            self.draw.text((x, y + height / 2), widget.text, fill, self.font, anchor="lm")
        elif name == "Button":
            self.draw.rounded_rectangle((x, y + 1, x + width, y + height - 1), 3, fill=BUTTON)
            ink = TEXT if widget.enabled else DIM
            self.draw.text((x + width / 2, y + height / 2), widget.text, ink, self.font, anchor="mm")
        elif name == "CheckBox":
            self.draw.rectangle((x + 4, y + 5, x + 18, y + 19), fill=FIELD, outline=TEXT)
            if widget.model.value:
                self.draw.line((x + 7, y + 12, x + 10, y + 16, x + 16, y + 8), fill=TEXT, width=2)
        elif name in ("IntField", "StringField", "ComboBox"):
            self.draw.rectangle((x, y + 1, x + width, y + height - 1), fill=FIELD)
            combo = name == "ComboBox"
            value = widget.model.value
            text = widget.arguments[1 + value] if combo else str(value)
            self.draw.text((x + 6, y + height / 2), text, TEXT, self.font, anchor="lm")
            if combo:
                right = x + width - 14
                self.draw.polygon(((right, y + 9), (right + 8, y + 9), (right + 4, y + 15)), fill=TEXT)

    def share(self, widget: Any, upright: bool, room: float) -> Iterator[tuple[Any, float, float]]:
        """Yield the children with their places along one axis."""
        key, gap = ("height" if upright else "width"), widget.keywords.get("spacing", 0)
        sizes = [child.keywords.get(key) for child in widget.children]
        sizes = [self.extent(child) if size == 0 else size for child, size in zip(widget.children, sizes, strict=True)]
        left = room - sum(size or 0 for size in sizes) - gap * max(len(sizes) - 1, 0)
        start = 0.0
        for child, size in zip(widget.children, sizes, strict=True):
            actual = left / sizes.count(None) if size is None else size
            yield child, start, actual
            start += actual + gap

    def extent(self, widget: Any) -> float:
        """Return the height of what is in a stack that says 0: as much as it needs."""
        gap = widget.keywords.get("spacing", 0)
        return sum(child.keywords.get("height", 0) + gap for child in widget.children)


def points(shape: UsdGeom.Gprim) -> NDArray[np.float64]:
    """Return points whose hull is the shape, in its own frame [m]."""
    kind = shape.GetPrim().GetTypeName()
    circle = np.linspace(0.0, 2.0 * np.pi, 17)[:-1]
    if kind == "Cube":
        half = UsdGeom.Cube(shape).GetSizeAttr().Get() / 2.0
        return np.array([(x, y, z) for x in (-half, half) for y in (-half, half) for z in (-half, half)])
    radius = shape.GetPrim().GetAttribute("radius").Get()
    if kind == "Sphere":
        height, axis = 0.0, "Z"
    else:
        height, axis = (shape.GetPrim().GetAttribute(name).Get() for name in ("height", "axis"))
    tilts = (0.0,) if kind == "Cylinder" else np.linspace(0.0, np.pi / 2.0, 6)
    rings = [
        (wide * np.cos(turn), wide * np.sin(turn), side * (height / 2.0 + radius * np.sin(tilt)))
        for tilt in tilts
        for wide in (radius * np.cos(tilt),)
        for turn in circle
        for side in (-1.0, 1.0)
    ]
    cloud = np.array(rings)
    return cloud if axis == "Z" else np.roll(cloud, 1 if axis == "X" else 2, axis=1)


def paint_robot(image: Image.Image, stage: Usd.Stage, middle: tuple[float, float]) -> None:
    """Paint the facets of all shapes, back to front, in the colors that the stage gives them."""
    yaw, pitch = np.radians(62.0), np.radians(24.0)
    right = np.array((-np.sin(yaw), np.cos(yaw), 0.0))
    forward = -np.array((np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)))
    up = np.cross(right, forward)
    facets = []
    for prim in stage.Traverse():
        if not prim.IsA(UsdGeom.Gprim):
            continue
        shape = UsdGeom.Gprim(prim)
        matrix = np.array(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(Usd.TimeCode.Default()))
        cloud = np.hstack((points(shape), np.ones((len(points(shape)), 1)))) @ matrix
        hull = ConvexHull(cloud[:, :3])
        color = np.array(shape.GetDisplayColorAttr().Get()[0])
        for corners, plane in zip(hull.simplices, hull.equations, strict=True):
            if plane[:3] @ forward < 0.0:
                triangle = cloud[corners, :3]
                shade = 0.65 + 0.35 * max(plane[:3] @ LIGHT, 0.0)
                facets.append((triangle.mean(axis=0) @ forward, triangle, np.clip(color ** (1 / 2.2) * shade, 0, 1)))
    draw = ImageDraw.Draw(image)
    for _, triangle, color in sorted(facets, key=lambda facet: -facet[0]):
        flat = [(middle[0] + SCALE * (p @ right), middle[1] - SCALE * (p @ up)) for p in triangle]
        fill = tuple(round(255 * value) for value in color)
        draw.polygon(flat, fill=fill, outline=fill)


def a1_stage() -> tuple[Usd.Stage, dict[str, str]]:
    """Return A1 on a stage, and the link that each of its joints moves."""
    from pxr import UsdPhysics

    stage = Usd.Stage.CreateInMemory()
    stage.DefinePrim(ROBOT, "Xform").GetReferences().AddReference(A1_CFG.spawn.usd_path)
    joints = [UsdPhysics.Joint(prim) for prim in stage.Traverse() if prim.IsA(UsdPhysics.RevoluteJoint)]
    names = {joint.GetPrim().GetName(): joint.GetBody1Rel().GetTargets()[0].name for joint in joints}
    return stage, {name: names[name] for name in A1_JOINTS}


def draw_preview() -> Image.Image:
    """Draw the panel beside the robot."""
    import tomllib

    stage, links = a1_stage()
    settings = tomllib.loads((EXTENSION / "config/extension.toml").read_text())["settings"]["exts"]["umc"]
    kit = fake_kit.FakeKit({f"/exts/umc/{name}": value for name, value in settings.items()}, stage)
    kit.install(dict.__setitem__)
    import umc.kit.link_colors
    from umc_kit.window import PanelWindow

    board = FakeBoard(num_envs=16, links=links, kinds=KINDS)
    for fault in FAULTS:
        board.inject(0, *fault)
    env = SimpleNamespace(spec=SimpleNamespace(id="UMC-A1-Stage2"))
    panel = FaultPanel(lambda: env, lambda one: board)
    panel.refresh()
    panel.inject("FL_calf_joint", "0.3")  # for the message below the table
    panel.refresh()
    window = PanelWindow(panel)
    window.update(umc.kit.link_colors.LinkColors().show(stage, ROBOT, panel.link_colors))
    width, height = (kit.window.keywords[name] for name in ("width", "height"))
    image = Image.new("RGB", (VIEW + width + 3 * MARGIN, height + 4 * MARGIN), BACK)
    paint_robot(image, stage, (VIEW / 2 + MARGIN, height / 2 - 40))
    x, y = VIEW + 2 * MARGIN, MARGIN
    draw = ImageDraw.Draw(image)
    draw.rectangle((x - 8, y, x + width + 8, y + height), fill=WINDOW)
    draw.text((x, y + 12), kit.window.text, TEXT, font(15), anchor="lm")
    Painter(image).paint(kit.window.frame, x, y + 28, width, height - 32)
    draw.text((MARGIN, image.height - MARGIN - 4), LABEL, TEXT, font(15), anchor="lm")
    return image


def draw_icon() -> Image.Image:
    """Draw a leg whose knee is broken."""
    big = 4 * ICON
    image = Image.new("RGBA", (big, big), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    draw.rounded_rectangle((0, 0, big - 1, big - 1), big // 6, fill="#22313f")
    hip, knee, foot = (0.34 * big, 0.20 * big), (0.64 * big, 0.50 * big), (0.40 * big, 0.84 * big)
    for start, end, radius, ink in ((hip, knee, 62, "#e9edf1"), (knee, foot, 50, "#e9edf1")):
        draw.line((*start, *end), fill=ink, width=2 * radius)
    for center, radius, color in ((hip, 92, SENSOR_COLOR), (knee, 112, FAULT_COLOR), (foot, 66, (0.91, 0.93, 0.95))):
        ink = tuple(round(255 * value) for value in color)
        draw.ellipse([value + sign * radius for sign in (-1, 1) for value in center], fill=ink)
    return image.resize((ICON, ICON), Image.Resampling.LANCZOS)


def main() -> None:
    """Write all pictures."""
    draw_icon().save(EXTENSION / "data/icon.png", optimize=True)
    draw_preview().save(EXTENSION / "data/preview.png", optimize=True)
    shutil.copyfile(EXTENSION / "data/preview.png", REPOSITORY / "docs/images/kit_panel.png")


if __name__ == "__main__":
    main()
