# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How to build Unitree A1."""

from umc.robots.a1 import A1_BODIES, A1_JOINTS, ARMATURE
from umc.robots.builder.cfg import BuildCfg, Fit, Shape
from umc.robots.builder.source import EXAMPLE_ROBOT_DATA, EXAMPLE_ROBOT_DATA_VERSION, example_robot

SOURCE = "a1_description/urdf/a1.urdf"

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
    has_visuals=True,
    bodies=A1_BODIES,
    joints=A1_JOINTS,
    armature={".*": ARMATURE},
    shapes=(Shape("imu_link", Fit.DROP),),  # a cube of 1 mm
    visual_colors=(("trunk", (0.20, 0.20, 0.21)),),  # its texture, a pattern of carbon fibers
    colors=(
        ("trunk", (0.05, 0.05, 0.06)),
        (".*_(hip|thigh_shoulder)", (0.16, 0.17, 0.19)),
        (".*_thigh", (0.42, 0.45, 0.50)),
        (".*_calf", (0.20, 0.22, 0.25)),
        (".*_foot", (0.02, 0.02, 0.02)),
    ),
)
