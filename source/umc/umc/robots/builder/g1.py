# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How to build Unitree G1: 12 leg joints, the upper body welded to the pelvis."""

from umc.robots.builder.cfg import BuildCfg, Fit, Shape
from umc.robots.builder.source import EXAMPLE_ROBOT_DATA, EXAMPLE_ROBOT_DATA_VERSION, example_robot
from umc.robots.g1 import ARMATURE, G1_BODIES, G1_JOINTS

SOURCE = "g1_description/urdf/g1_29dof_rev_1_0.urdf"

_LIGHT, _DARK = (0.55, 0.57, 0.60), (0.06, 0.06, 0.07)

G1_BUILD_CFG = BuildCfg(
    name="g1",
    notice=(
        "Unitree G1, 12 leg joints. SPDX-License-Identifier: BSD-3-Clause\n"
        'Copyright (c) 2016-2022 HangZhou YuShu TECHNOLOGY CO.,LTD. ("Unitree Robotics"). All rights reserved.\n'
        f"Made from {SOURCE} of {EXAMPLE_ROBOT_DATA} {EXAMPLE_ROBOT_DATA_VERSION}, which took it from unitree_ros.\n"
        "Written by `python -m umc.robots.builder g1`: change builder/g1.py, not this file."
    ),
    urdf=lambda: example_robot(SOURCE),
    has_visuals=True,
    bodies=G1_BODIES,
    joints=G1_JOINTS,
    armature=ARMATURE,
    # the arms hang, elbows bent: the default pose of Isaac Lab's G1 [rad]
    welded_at={
        ".*_shoulder_pitch_joint": 0.35,
        "left_shoulder_roll_joint": 0.16,
        "right_shoulder_roll_joint": -0.16,
        ".*_elbow_joint": 0.87,
    },
    shapes=(
        # inside the neighbors' shapes, or never the first to touch the ground
        Shape("logo_link|.*_(hip_pitch|hip_roll|ankle_pitch|shoulder_pitch|shoulder_roll)_link", Fit.DROP),
        Shape(".*_wrist_(roll|pitch)_link", Fit.DROP),
        Shape("head_link|.*_(hip_yaw|knee|shoulder_yaw)_link", Fit.CAPSULE),
        Shape("(pelvis_contour|torso|.*_(elbow|wrist_yaw))_link", Fit.BOX),
    ),
    colors=(
        ("torso_link|.*_(hip_yaw|knee|shoulder_yaw|wrist_yaw)_link", _LIGHT),
        (".*", _DARK),
    ),
)
