# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Unitree H1: humanoid, 10 leg joints, the upper body welded to the pelvis."""

from isaaclab.actuators import IdealPDActuatorCfg
from isaaclab.assets import ArticulationCfg

from umc.robots.spawn import DATA, robot_cfg

_PARTS = ("hip_yaw", "hip_roll", "hip_pitch", "knee", "ankle")

H1_JOINTS = tuple(f"{side}_{part}_joint" for side in ("left", "right") for part in _PARTS)
"""The order of joints in observations, actions and masks, on every engine."""

H1_BODIES = ("pelvis", *(f"{side}_{part}_link" for side in ("left", "right") for part in _PARTS))
"""The order of bodies on every engine."""

SPAWN_HEIGHT = 1.07
"""Height of the pelvis at reset [m]. At unitree_rl_gym's 1.0 the soles of the default pose are 4 cm in the ground;
resets scale the joint angles by 0.5 to 1.5, so this is the lowest round height that never starts with a sole in it."""

TARGET_HEIGHT = 1.05
"""Height of the pelvis that the walking reward asks for [m] (unitree_rl_gym)."""

ARMATURE = 0.01
"""Reflected rotor inertia of every joint [kg*m^2] (unitree_rl_gym's MuJoCo model, resources/robots/h1/h1.xml)."""

POSITION_ITERATIONS = 16
"""PhysX iterations per step. H1 lands with 2 to 5 kN on feet whose joint has hardly any inertia of its own; after 8
iterations impact and joint limit have not converged, and the ankle leaves its range (docs/engines.md)."""

H1_CFG = robot_cfg(
    DATA / "h1.usda",
    H1_JOINTS,
    H1_BODIES,
    ArticulationCfg.InitialStateCfg(
        pos=(0.0, 0.0, SPAWN_HEIGHT),
        joint_pos={
            ".*_hip_(yaw|roll)_joint": 0.0,
            ".*_hip_pitch_joint": -0.1,
            ".*_knee_joint": 0.3,
            ".*_ankle_joint": -0.2,
        },
    ),
    IdealPDActuatorCfg(
        joint_names_expr=[".*"],
        # gains of unitree_rl_gym [N*m/rad], [N*m*s/rad]
        stiffness={".*_hip_.*": 150.0, ".*_knee_joint": 200.0, ".*_ankle_joint": 40.0},
        damping={".*_hip_.*": 2.0, ".*_knee_joint": 4.0, ".*_ankle_joint": 2.0},
        # limits of unitree_rl_gym's URDF [N*m], [rad/s]
        actuator_effort_limit={".*_hip_.*": 200.0, ".*_knee_joint": 300.0, ".*_ankle_joint": 40.0},
        actuator_velocity_limit={".*_hip_.*": 23.0, ".*_knee_joint": 14.0, ".*_ankle_joint": 9.0},
        armature=ARMATURE,
    ),
    position_iterations=POSITION_ITERATIONS,
)
"""H1 with the gains and default pose of unitree_rl_gym and the limits of its URDF."""
