# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How to build Unitree A1."""

import mujoco

from umc.robots.a1 import A1_BODIES, A1_JOINTS, ARMATURE
from umc.robots.builder.cfg import BuildCfg, Fit, Primitive, Shape
from umc.robots.builder.source import EXAMPLE_ROBOT_DATA, EXAMPLE_ROBOT_DATA_VERSION, example_robot

SOURCE = "a1_description/urdf/a1.urdf"

_FACE = (0.75, 0.76, 0.78)

A1_BUILD_CFG = BuildCfg(
    name="a1",
    notice=(
        "Unitree A1. SPDX-License-Identifier: MPL-2.0\n"
        f"Made from {SOURCE} of {EXAMPLE_ROBOT_DATA} {EXAMPLE_ROBOT_DATA_VERSION}, which took it from unitree_ros.\n"
        "This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0. If a copy of the MPL\n"
        "was not distributed with this file, You can obtain one at https://mozilla.org/MPL/2.0/.\n"
        "Written by `python -m umc.robots.builder a1`: change builder/a1.py, not this file."
    ),
    urdf=lambda: example_robot(SOURCE),
    bodies=A1_BODIES,
    joints=A1_JOINTS,
    armature={".*": ARMATURE},
    shapes=(Shape("imu_link", Fit.DROP),),  # a cube of 1 mm
    primitives=(
        # a light face, so that a picture tells front from rear
        Primitive("trunk", mujoco.mjtGeom.mjGEOM_BOX, (0.012, 0.07, 0.035), (0.1455, 0.0, 0.0), color=_FACE),
        # the covers of the legs, which the collision shapes leave out
        Primitive(".*_thigh", mujoco.mjtGeom.mjGEOM_CAPSULE, (0.029, 0.055), (0.0, 0.0, -0.065)),
        Primitive(".*_calf", mujoco.mjtGeom.mjGEOM_CAPSULE, (0.014, 0.07), (0.0, 0.0, -0.1)),
    ),
    colors=(
        ("trunk", (0.05, 0.05, 0.06)),
        (".*_(hip|thigh_shoulder)", (0.16, 0.17, 0.19)),
        (".*_thigh", (0.42, 0.45, 0.50)),
        (".*_calf", (0.20, 0.22, 0.25)),
        (".*_foot", (0.02, 0.02, 0.02)),
    ),
)
