# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How the builder makes a robot, and what it reads from the URDF."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import mujoco

Color = tuple[float, float, float]
"""Linear RGB, each in [0, 1]."""


class Fit(Enum):
    """Replacement of the collision shapes of a link."""

    DROP = None
    BOX = mujoco.mjtGeom.mjGEOM_BOX
    CAPSULE = mujoco.mjtGeom.mjGEOM_CAPSULE
    SPHERE = mujoco.mjtGeom.mjGEOM_SPHERE


@dataclass(frozen=True)
class Shape:
    """One rule for the collision shapes of some links."""

    links: str
    """Regular expression over link names of the URDF (before fixed links are fused)."""
    fit: Fit
    """A mesh becomes this primitive; shapes that are primitives already are kept, or dropped."""


@dataclass(frozen=True)
class Primitive:
    """A collider that the URDF does not have, or has as a mesh that is not fitted."""

    links: str
    """Regular expression over link names."""
    kind: mujoco.mjtGeom
    """Box, capsule, cylinder or sphere."""
    size: tuple[float, ...]
    """As in MuJoCo: half lengths of a box; radius and half length of the others [m]."""
    pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Centre in the link's frame [m]."""
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Orientation in the link's frame (w, x, y, z)."""
    color: Color | None = None
    """The link's color if None."""


@dataclass(frozen=True)
class Limits:
    """Limits of every joint, for a URDF whose own are placeholders."""

    position: tuple[float, float]
    """Lower and upper limit [rad]."""
    effort: float
    """[N*m]."""
    velocity: float
    """[rad/s]."""


@dataclass(frozen=True)
class BuildCfg:
    """Configuration of the build of one robot."""

    name: str
    """File name of USD and MJCF, without suffix."""
    notice: str
    """Origin and licence, written into the files."""
    urdf: Callable[[], Path]
    """Returns the path of the public URDF."""
    bodies: tuple[str, ...]
    """Names of the bodies in canonical order, parents first."""
    joints: tuple[str, ...]
    """Names of the joints in canonical order; every other joint of the URDF is welded."""
    armature: Mapping[str, float]
    """Regular expression over joint names to reflected rotor inertia [kg*m^2]."""
    welded_at: Mapping[str, float] = field(default_factory=dict)
    """Regular expression over welded joints to the angle they are welded at [rad]; 0 for others."""
    limits: Limits | None = None
    """Limits of the joints instead of the URDF's."""
    shapes: tuple[Shape, ...] = ()
    """Rules for collision shapes, the first match counts; links without a rule keep their primitives."""
    primitives: tuple[Primitive, ...] = ()
    """Colliders that are added."""
    colors: tuple[tuple[str, Color], ...] = ()
    """Regular expression over link names to the color of its colliders in MuJoCo, the first match counts."""
    has_visuals: bool = False
    """Whether the USD file shows the meshes of :func:`~umc.robots.builder.build_visuals` instead of the colliders."""
    visual_colors: tuple[tuple[str, Color], ...] = ()
    """Regular expression over link names to the color of its meshes, the first match counts; others keep the URDF's."""
