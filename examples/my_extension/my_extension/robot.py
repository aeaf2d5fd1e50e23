# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Solo12 of the Open Dynamic Robot Initiative: Solo8 with a third joint in each leg."""

from pathlib import Path

from isaaclab.actuators import IdealPDActuatorCfg
from isaaclab.assets import ArticulationCfg
from umc.robots.solo8 import ARMATURE, EFFORT_LIMIT, VELOCITY_LIMIT
from umc.robots.spawn import robot_cfg

USD = Path(__file__).parent / "solo12.usda"
"""Written by ``recipe.py``."""

LEGS = ("FL", "FR", "HL", "HR")

SOLO12_JOINTS = tuple(f"{leg}_{joint}" for leg in LEGS for joint in ("HAA", "HFE", "KFE"))
"""The one order of joints, on every engine: Newton's own and PhysX's differ."""

SOLO12_BODIES = (
    "base_link",
    *(f"{leg}_{part}" for leg in LEGS for part in ("SHOULDER", "UPPER_LEG", "LOWER_LEG")),
)
"""The one order of bodies."""

SOLO12_CFG = robot_cfg(  # UMC's settings for each engine
    USD,
    SOLO12_JOINTS,
    SOLO12_BODIES,
    ArticulationCfg.InitialStateCfg(
        pos=(0.0, 0.0, 0.26),  # as Solo8 [m]
        joint_pos={".*_HAA": 0.0, ".*_HFE": 0.8, ".*_KFE": -1.6},
    ),
    IdealPDActuatorCfg(
        joint_names_expr=[".*"],
        stiffness=5.0,  # as Solo8 [N*m/rad]
        damping=0.1,  # as Solo8 [N*m*s/rad]
        actuator_effort_limit=EFFORT_LIMIT,
        actuator_velocity_limit=VELOCITY_LIMIT,
        armature=ARMATURE,
    ),
)
"""Solo12 with the gains and motors of Solo8."""
