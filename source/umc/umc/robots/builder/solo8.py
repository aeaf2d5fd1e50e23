# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How to build Solo8."""

import mujoco

from umc.robots.builder.cfg import BuildCfg, Fit, Limits, Primitive, Shape
from umc.robots.builder.source import EXAMPLE_ROBOT_DATA, EXAMPLE_ROBOT_DATA_VERSION, example_robot
from umc.robots.solo8 import ARMATURE, EFFORT_LIMIT, POSITION_LIMIT, SOLO8_BODIES, SOLO8_JOINTS, VELOCITY_LIMIT

SOURCE = "solo_description/robots/solo.urdf"

_SHELL, _ROD, _RUBBER = (0.80, 0.80, 0.78), (0.22, 0.23, 0.25), (0.02, 0.02, 0.02)

SOLO8_BUILD_CFG = BuildCfg(
    name="solo8",
    notice=(
        "Solo8. SPDX-License-Identifier: BSD-3-Clause\n"
        "Copyright (c) 2019, New York University and Max Planck Gesellschaft. All rights reserved.\n"
        f"Made from {SOURCE} of {EXAMPLE_ROBOT_DATA} {EXAMPLE_ROBOT_DATA_VERSION}, which took it from\n"
        "robot_properties_solo of the Open Dynamic Robot Initiative.\n"
        "Written by `python -m umc.robots.builder solo8`: change builder/solo8.py, not this file."
    ),
    urdf=lambda: example_robot(SOURCE),
    has_visuals=True,
    bodies=SOLO8_BODIES,
    joints=SOLO8_JOINTS,
    armature={".*": ARMATURE},
    limits=Limits((-POSITION_LIMIT, POSITION_LIMIT), EFFORT_LIMIT, VELOCITY_LIMIT),
    shapes=(Shape(".*_FOOT", Fit.DROP), Shape(".*_LEG", Fit.CAPSULE), Shape("base_link", Fit.BOX)),
    primitives=(
        # the ring of rubber at the end of a leg: radius of its mesh
        Primitive(".*_FOOT", mujoco.mjtGeom.mjGEOM_SPHERE, (0.016,)),
    ),
    visual_colors=((".*_LOWER_LEG", _ROD), (".*_FOOT", _RUBBER)),
    colors=((".*_UPPER_LEG|base_link", _SHELL), (".*_LOWER_LEG", _ROD), (".*_FOOT", _RUBBER)),
)
