# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Solo8 of the Open Dynamic Robot Initiative (ODRI): quadruped, 8 joints."""

import math

from isaaclab.actuators import IdealPDActuatorCfg
from isaaclab.assets import ArticulationCfg

from umc.robots.spawn import DATA, robot_cfg

_LEGS = ("FL", "FR", "HL", "HR")

SOLO8_JOINTS = tuple(f"{leg}_{joint}" for leg in _LEGS for joint in ("HFE", "KFE"))
"""The order of joints in observations, actions and masks, on every engine (ODRI's: hip and knee flexion)."""

SOLO8_BODIES = ("base_link", *(f"{leg}_{part}_LEG" for leg in _LEGS for part in ("UPPER", "LOWER")))
"""The order of bodies on every engine (a foot is welded to its lower leg)."""

RESET_SCALE = (0.9, 1.1)
"""Factor of the default joint angles at reset [-]. With A1's 0.5 to 1.5 a leg can be 0.311 m long, and robots dropped
from there sit down: 32 of 64 within 2 s at zero action (ovphysx), 10 of 64 with these figures."""

SPAWN_HEIGHT = 0.26
"""Height of the base at reset [m] (solo_gym: 0.25 to 0.35). Solo8 stands at 0.21, 0.24 with stiff legs; this is the
lowest round height that never starts with a foot in the ground."""

POSITION_LIMIT = math.pi
"""Greatest angle of a joint to either side [rad]: `max_qref` of ODRI's robot_properties_solo. The URDF's 10 is no limit
of the robot, and 30 % of such a range would be no fault."""

EFFORT_LIMIT = 2.5
"""Torque of a joint [N*m]: ODRI's open_robot_actuator_hardware, actuator module v1 (2.5 N*m at 12 A), and solo_gym.
The URDF's 1000 is no limit of the robot."""

VELOCITY_LIMIT = 80.0
"""Speed of a joint [rad/s]: `max_joint_velocities` in ODRI's driver settings of Solo12, which has the same actuator
module (robot_properties_solo, solo12_driver.yaml). Its motor, 300 rpm/V at 24 V behind 9:1, turns at 84 without load.
The URDF's 1000 is no limit of the robot."""

ROTOR_INERTIA = 4.5e-6
GEAR_RATIO = 9.0
"""Of the actuator module [kg*m^2], [-] (robot_properties_solo, Solo8Config)."""

ARMATURE = ROTOR_INERTIA * GEAR_RATIO**2
"""Reflected rotor inertia of every joint [kg*m^2]: 3.645e-4."""

SOLO8_CFG = robot_cfg(
    DATA / "solo8.usda",
    SOLO8_JOINTS,
    SOLO8_BODIES,
    ArticulationCfg.InitialStateCfg(
        pos=(0.0, 0.0, SPAWN_HEIGHT),
        joint_pos={".*_HFE": 0.8, ".*_KFE": -1.6},  # ODRI's Solo8Config
    ),
    IdealPDActuatorCfg(
        joint_names_expr=[".*"],
        stiffness=5.0,  # solo_gym and ODRI's Solo8Config [N*m/rad]
        damping=0.1,  # the same [N*m*s/rad]
        actuator_effort_limit=EFFORT_LIMIT,
        actuator_velocity_limit=VELOCITY_LIMIT,
        armature=ARMATURE,
    ),
)
"""Solo8 with the gains of solo_gym and the limits of its actuators."""
