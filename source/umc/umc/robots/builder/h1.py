# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How to build Unitree H1: 10 leg joints, the upper body welded to the pelvis."""

import math

import mujoco

from umc.robots.builder.cfg import BuildCfg, Primitive
from umc.robots.builder.source import bundled
from umc.robots.h1 import ARMATURE, H1_BODIES, H1_JOINTS

SOURCE = "h1.urdf"
"""A copy of resources/robots/h1/urdf/h1.urdf of unitree_rl_gym at commit 276801e; no package on PyPI carries it."""

_SHELL, _LIGHT, _DARK = (0.17, 0.18, 0.20), (0.62, 0.64, 0.67), (0.05, 0.05, 0.06)

_BOX, _ROD, _DISC = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_CYLINDER

_ALONG_X = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)
_ALONG_Y = (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)
"""Turn the axis of a rod or disc, which is Z."""


def _limbs(side: str, left: float) -> tuple[Primitive, ...]:
    """Return the colliders of a leg and an arm, measured on Unitree's meshes to the centimetre; ``left`` is 1 or -1."""
    return (
        Primitive(f"{side}_hip_pitch_link", _ROD, (0.062, 0.145), (0.006, -0.012 * left, -0.19)),
        Primitive(f"{side}_knee_link", _ROD, (0.043, 0.15), (0.0, -0.004 * left, -0.2)),
        Primitive(f"{side}_ankle_link", _BOX, (0.15, 0.04, 0.014), (0.05, 0.0, -0.056)),
        Primitive(f"{side}_elbow_link", _ROD, (0.036, 0.11), (0.12, 0.0, -0.01), _ALONG_X),
    )


H1_BUILD_CFG = BuildCfg(
    name="h1",
    notice=(
        "Unitree H1, 10 leg joints. SPDX-License-Identifier: BSD-3-Clause\n"
        'Copyright (c) 2016-2023 HangZhou YuShu TECHNOLOGY CO.,LTD. ("Unitree Robotics"). All rights reserved.\n'
        "Made from resources/robots/h1/urdf/h1.urdf of unitree_rl_gym, commit 276801e.\n"
        "Written by `python -m umc.robots.builder h1`: change builder/h1.py, not this file."
    ),
    urdf=lambda: bundled(SOURCE),
    has_visuals=True,
    bodies=H1_BODIES,
    joints=H1_JOINTS,
    armature={".*": ARMATURE},
    primitives=(
        Primitive("pelvis", _DISC, (0.05, 0.15), (0.0, 0.0, -0.035), _ALONG_Y),
        Primitive("torso_link", _BOX, (0.08, 0.15, 0.18), (0.01, 0.0, 0.3)),
        # the head, a ring that faces forward
        Primitive("torso_link", _DISC, (0.1, 0.04), (0.02, 0.0, 0.65), _ALONG_X, _LIGHT),
        *_limbs("left", 1.0),
        *_limbs("right", -1.0),
    ),
    # the source paints all links in the same black, in which a picture shows no shape
    visual_colors=(
        (".*_(hip_pitch|knee|shoulder_yaw|elbow)_link", (0.45, 0.46, 0.48)),
        ("torso_link", (0.20, 0.21, 0.23)),
    ),
    colors=(
        (".*_(hip_pitch|knee|elbow)_link", _LIGHT),
        (".*_ankle_link", _DARK),
        (".*", _SHELL),
    ),
)
