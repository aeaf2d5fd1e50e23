# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Unitree Go2: quadruped, 12 joints."""

from isaaclab.actuators import IdealPDActuatorCfg
from isaaclab.assets import ArticulationCfg

from umc.robots.a1 import A1_BODIES, A1_JOINTS, POSE
from umc.robots.spawn import DATA, robot_cfg

GO2_JOINTS = A1_JOINTS
"""The order of joints in observations, actions and masks, on every engine; names and order are A1's."""

GO2_BODIES = ("base", *A1_BODIES[1:])
"""The order of bodies on every engine (a foot is welded to its calf)."""

SPAWN_HEIGHT = 0.42
"""Height of the base at reset [m] (unitree_rl_gym). Go2 stands at 0.26, and no reset puts a foot in the ground."""

EFFORT_LIMIT = {".*_(hip|thigh)_joint": 23.7, ".*_calf_joint": 45.43}
"""Torque of a joint [N*m] (URDF; Isaac Lab's Go2). The calf has a reduction of 1.92 behind the same motor."""

VELOCITY_LIMIT = {".*_(hip|thigh)_joint": 30.1, ".*_calf_joint": 15.7}
"""Speed of a joint [rad/s] (the same)."""

ARMATURE = 0.01
"""Reflected rotor inertia of every joint [kg*m^2] (MuJoCo Menagerie); without it Newton diverges under violent
actions."""

GO2_CFG = robot_cfg(
    DATA / "go2.usda",
    GO2_JOINTS,
    GO2_BODIES,
    ArticulationCfg.InitialStateCfg(
        pos=(0.0, 0.0, SPAWN_HEIGHT),
        joint_pos=POSE,  # Isaac Lab's Go2, too
    ),
    IdealPDActuatorCfg(
        joint_names_expr=[".*"],
        stiffness=25.0,  # Isaac Lab's Go2 [N*m/rad]; unitree_rl_gym: 20
        damping=0.5,  # both [N*m*s/rad]
        actuator_effort_limit=EFFORT_LIMIT,
        actuator_velocity_limit=VELOCITY_LIMIT,
        armature=ARMATURE,
    ),
)
"""Go2 with the gains and default pose of Isaac Lab's velocity task and the limits of the URDF."""
