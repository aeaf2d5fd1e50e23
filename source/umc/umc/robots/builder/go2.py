# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How to build Unitree Go2."""

import mujoco

from umc.robots.builder.cfg import BuildCfg, Fit, Primitive, Shape
from umc.robots.builder.source import EXAMPLE_ROBOT_DATA, EXAMPLE_ROBOT_DATA_VERSION, example_robot
from umc.robots.go2 import ARMATURE, GO2_BODIES, GO2_JOINTS

SOURCE = "go2_description/urdf/go2.urdf"

_SHELL, _METAL, _DARK, _RUBBER = (0.60, 0.62, 0.66), (0.80, 0.82, 0.83), (0.14, 0.15, 0.16), (0.02, 0.02, 0.02)

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
    has_visuals=True,
    bodies=GO2_BODIES,
    joints=GO2_JOINTS,
    armature={".*": ARMATURE},
    shapes=(
        Shape("base", Fit.BOX),
        Shape(".*_hip", Fit.DROP),  # the URDF has one for the rear hips only, inside the trunk's
        Shape(".*_foot", Fit.DROP),
        Shape(".*_(thigh|calf)", Fit.CAPSULE),
    ),
    primitives=(
        # as unitree_ros and MuJoCo Menagerie have it; MuJoCo's fit to the mesh is 7 mm too low
        Primitive(".*_foot", mujoco.mjtGeom.mjGEOM_SPHERE, (0.022,), (-0.002, 0.0, 0.0)),
    ),
    # the source has white for everything; these are the main colors of its meshes
    visual_colors=(("base", _SHELL), (".*_(hip|thigh)", _METAL), (".*_calf", _DARK), (".*_foot", _RUBBER)),
    colors=(("base", (0.55, 0.57, 0.60)), (".*_foot", _RUBBER), (".*", (0.20, 0.22, 0.25))),
)
