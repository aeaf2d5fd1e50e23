# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How to build Unitree Go2, which runs Isaac Lab's stock task offline; UMC has no task for it."""

from umc.robots.builder.cfg import BuildCfg, Fit, Shape
from umc.robots.builder.source import EXAMPLE_ROBOT_DATA, EXAMPLE_ROBOT_DATA_VERSION, example_robot

SOURCE = "go2_description/urdf/go2.urdf"

LEGS = ("FL", "FR", "RL", "RR")

ARMATURE = 0.01
"""Reflected rotor inertia [kg*m^2], as A1."""

GO2_BUILD_CFG = BuildCfg(
    name="go2",
    notice=(
        "Unitree Go2. SPDX-License-Identifier: MPL-2.0\n"
        f"Made from {SOURCE} of {EXAMPLE_ROBOT_DATA} {EXAMPLE_ROBOT_DATA_VERSION}, which took it from unitree_ros.\n"
        "This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0. If a copy of the MPL\n"
        "was not distributed with this file, You can obtain one at https://mozilla.org/MPL/2.0/.\n"
        "Written by `python -m umc.robots.builder go2`: change builder/go2.py, not this file."
    ),
    urdf=lambda: example_robot(SOURCE),
    bodies=("base", *(f"{leg}_{part}" for leg in LEGS for part in ("hip", "thigh", "calf"))),
    joints=tuple(f"{leg}_{part}_joint" for leg in LEGS for part in ("hip", "thigh", "calf")),
    armature={".*": ARMATURE},
    shapes=(
        Shape("base", Fit.BOX),
        Shape(".*_hip", Fit.DROP),  # the URDF has one for the rear hips only, inside the trunk's
        Shape(".*_foot", Fit.SPHERE),
        Shape(".*_(thigh|calf)", Fit.CAPSULE),
    ),
    colors=(("base", (0.55, 0.57, 0.60)), (".*_foot", (0.02, 0.02, 0.02)), (".*", (0.20, 0.22, 0.25))),
)
