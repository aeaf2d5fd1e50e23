# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Unitree A1: quadruped, 12 joints."""

from isaaclab.actuators import IdealPDActuatorCfg
from isaaclab.assets import ArticulationCfg

from umc.robots.spawn import DATA, robot_cfg

A1_JOINTS = tuple(f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf"))
"""The order of joints in observations, actions and masks, on every engine."""

A1_BODIES = ("trunk", *(f"{leg}_{part}" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")))
"""The order of bodies on every engine (a foot is welded to its calf)."""

SPAWN_HEIGHT = 0.38
"""Height of the trunk at reset [m]. A1 stands at 0.28; resets scale the joint angles by 0.5 to 1.5, which can stretch
a leg to 0.37, so this is the lowest round height that never starts with a foot in the ground (A1-Walk itself: 0.42)."""

ARMATURE = 0.01
"""Reflected rotor inertia of every joint [kg*m^2]; without it Newton diverges under violent actions."""

POSE = {
    ".*L_hip_joint": 0.1,
    ".*R_hip_joint": -0.1,
    "F[LR]_thigh_joint": 0.8,
    "R[LR]_thigh_joint": 1.0,
    ".*_calf_joint": -1.5,
}
"""Default joint angles [rad] (A1-Walk)."""

A1_CFG = robot_cfg(
    DATA / "a1.usda",
    A1_JOINTS,
    A1_BODIES,
    ArticulationCfg.InitialStateCfg(
        pos=(0.0, 0.0, SPAWN_HEIGHT),
        joint_pos=POSE,
    ),
    IdealPDActuatorCfg(
        joint_names_expr=[".*"],
        stiffness=50.0,  # A1-Walk [N*m/rad]
        damping=1.0,  # A1-Walk [N*m*s/rad]
        actuator_effort_limit=25.0,  # A1-Walk clips here [N*m]; the motor could do 33.5 (URDF)
        actuator_velocity_limit=21.0,  # URDF [rad/s]
        armature=ARMATURE,
    ),
)
"""A1 with the gains, limits and default pose of the A1-Walk task (BodyTransformer's fork of ParkourGym)."""
