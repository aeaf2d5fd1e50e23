# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a recipe says about a robot, and what a source delivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import mujoco

Color = tuple[float, float, float]
"""Linear RGB, each in [0, 1]."""


class Fit(Enum):
    """What becomes of the collision shapes of a link of the source."""

    KEEP = "keep"
    DROP = "drop"
    BOX = "box"
    CAPSULE = "capsule"
    SPHERE = "sphere"


@dataclass(frozen=True)
class Shape:
    """One rule for the shapes of some links.

    Attributes:
        links: Regular expression over link names of the source (before fixed links are fused).
        fit: A mesh becomes this primitive; shapes that are primitives already are kept or dropped.
        collides: False makes it visible only.
    """

    links: str
    fit: Fit = Fit.KEEP
    collides: bool = True


@dataclass(frozen=True)
class Primitive:
    """A visible shape that the source does not have, or has as a mesh that is not fitted.

    Attributes:
        links: Regular expression over link names.
        kind: ``mujoco.mjtGeom`` type: box, capsule, cylinder or sphere.
        size: Sizes as MuJoCo takes them: half lengths of a box; radius and half length of the others [m].
        pos: Centre in the link's frame [m].
        quat: Orientation in the link's frame (w, x, y, z).
        color: Its own colour; None paints it like its link.
        collides: Whether it is felt, too.
    """

    links: str
    kind: mujoco.mjtGeom
    size: tuple[float, ...]
    pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    color: Color | None = None
    collides: bool = False


@dataclass(frozen=True)
class Limits:
    """Limits of every joint, for a source whose own are placeholders.

    Attributes:
        position: Lower and upper limit [rad].
        effort: Torque limit [N*m].
        velocity: Speed limit [rad/s].
    """

    position: tuple[float, float]
    effort: float
    velocity: float


@dataclass(frozen=True)
class Source:
    """A public description, loaded.

    Attributes:
        spec: The model, its root link floating, every joint still in place.
        velocity_limits: Joint name to velocity limit [rad/s] (MuJoCo has no place for them).
    """

    spec: mujoco.MjSpec
    velocity_limits: Mapping[str, float]


@dataclass(frozen=True)
class Recipe:
    """How one robot is made.

    Attributes:
        name: File name of the USD, without suffix.
        notice: Origin and licence, written into the file.
        urdf: Delivers the path of the public description.
        bodies: Names of the bodies in canonical order, the root first.
        joints: Names of the joints in canonical order; every other joint of the source is welded.
        armature: Regular expression over joint names to reflected rotor inertia [kg*m^2].
        welded_at: Regular expression over welded joints to the angle they are welded at [rad]; the others at 0.
        limits: Limits of the joints instead of the source's.
        shapes: Rules for collision shapes, the first match counts; links without a rule keep their primitives.
        primitives: Shapes that are added.
        colors: Regular expression over link names to colour, the first match counts.
    """

    name: str
    notice: str
    urdf: Callable[[], Path]
    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    armature: Mapping[str, float]
    welded_at: Mapping[str, float] = field(default_factory=dict)
    limits: Limits | None = None
    shapes: tuple[Shape, ...] = ()
    primitives: tuple[Primitive, ...] = ()
    colors: tuple[tuple[str, Color], ...] = ()
