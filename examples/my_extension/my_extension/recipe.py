# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""From a public URDF to USD and MJCF: ``python -m my_extension.recipe`` writes ``solo12.usda`` and ``solo12.xml``."""

import mujoco
from umc.robots.builder import BuildCfg, build
from umc.robots.builder.cfg import Fit, Limits, Primitive, Shape
from umc.robots.builder.source import example_robot
from umc.robots.solo8 import ARMATURE, EFFORT_LIMIT, POSITION_LIMIT, VELOCITY_LIMIT

from .robot import SOLO12_BODIES, SOLO12_JOINTS, USD

SOURCE = "solo_description/robots/solo12.urdf"

FOOT_RADIUS = 0.016
"""The ring of rubber at the end of a leg [m], as of UMC's Solo8."""

BUILD_CFG = BuildCfg(
    name=USD.stem,
    notice=(
        "Solo12. SPDX-License-Identifier: BSD-3-Clause\n"
        "Copyright (c) 2019, New York University and Max Planck Gesellschaft. All rights reserved.\n"
        f"Made from {SOURCE} of example-robot-data 6.0.0, which took it from robot_properties_solo of the\n"
        "Open Dynamic Robot Initiative. Written by `python -m my_extension.recipe`: change that, not this file."
    ),
    urdf=lambda: example_robot(SOURCE),
    bodies=SOLO12_BODIES,
    joints=SOLO12_JOINTS,
    armature={".*": ARMATURE},
    # the URDF's limits are placeholders; the actuators are those of Solo8
    limits=Limits((-POSITION_LIMIT, POSITION_LIMIT), EFFORT_LIMIT, VELOCITY_LIMIT),
    # meshes become boxes and capsules, which both engines collide alike
    shapes=(
        Shape(".*_(FOOT|SHOULDER)", Fit.DROP),
        Shape(".*_LEG", Fit.CAPSULE),
        Shape("base_link", Fit.BOX),
    ),
    primitives=(Primitive(".*_FOOT", mujoco.mjtGeom.mjGEOM_SPHERE, (FOOT_RADIUS,)),),
    colors=((".*_FOOT", (0.02, 0.02, 0.02)), (".*", (0.55, 0.57, 0.60))),
)

if __name__ == "__main__":
    print(build(BUILD_CFG, USD.parent))
