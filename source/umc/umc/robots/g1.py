# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Unitree G1: humanoid, 12 leg joints, the upper body welded to the pelvis."""

from isaaclab.actuators import IdealPDActuatorCfg
from isaaclab.assets import ArticulationCfg

from umc.robots.spawn import DATA, robot_cfg

_PARTS = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")

G1_JOINTS = tuple(f"{side}_{part}_joint" for side in ("left", "right") for part in _PARTS)
"""The order of joints in observations, actions and masks, on every engine."""

G1_BODIES = ("pelvis", *(f"{side}_{part}_link" for side in ("left", "right") for part in _PARTS))
"""The order of bodies on every engine."""

TARGET_HEIGHT = 0.78
"""Height of the pelvis that the walking reward asks for [m] (unitree_rl_gym)."""

ARMATURE = {
    ".*_hip_(pitch|yaw)_joint": 0.01017752,
    ".*_(hip_roll|knee)_joint": 0.025101925,
    ".*_ankle_.*": 0.00721945,
}
"""Reflected rotor inertia [kg*m^2] of Unitree's motors 7520 (14.3:1), 7520 (22.5:1) and a pair of 5020, as mjlab and
BeyondMimic publish them for G1; the URDF's effort limits tell which motor sits where."""

G1_CFG = robot_cfg(
    DATA / "g1.usda",
    G1_JOINTS,
    G1_BODIES,
    ArticulationCfg.InitialStateCfg(
        pos=(0.0, 0.0, 0.8),  # unitree_rl_gym [m]
        joint_pos={
            ".*_hip_pitch_joint": -0.1,
            ".*_hip_(roll|yaw)_joint": 0.0,
            ".*_knee_joint": 0.3,
            ".*_ankle_pitch_joint": -0.2,
            ".*_ankle_roll_joint": 0.0,
        },
    ),
    IdealPDActuatorCfg(
        joint_names_expr=[".*"],
        # gains of unitree_rl_gym [N*m/rad], [N*m*s/rad]
        stiffness={".*_hip_.*": 100.0, ".*_knee_joint": 150.0, ".*_ankle_.*": 40.0},
        damping={".*_hip_.*": 2.0, ".*_knee_joint": 4.0, ".*_ankle_.*": 2.0},
        # limits of the URDF [N*m], [rad/s]
        actuator_effort_limit={
            ".*_hip_(pitch|yaw)_joint": 88.0,
            ".*_(hip_roll|knee)_joint": 139.0,
            ".*_ankle_.*": 35.0,
        },
        actuator_velocity_limit={
            ".*_hip_(pitch|yaw)_joint": 32.0,
            ".*_(hip_roll|knee)_joint": 20.0,
            ".*_ankle_.*": 30.0,
        },
        armature=ARMATURE,
    ),
)
"""G1 with the gains and default pose of unitree_rl_gym and the limits of Unitree's URDF."""
