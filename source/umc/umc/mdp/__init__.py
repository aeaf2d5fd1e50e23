# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Isaac Lab terms: events inject faults, observations show them, rewards and terminations evaluate the gait."""

from umc.mdp.actions import CommandFaults, CommandFaultsCfg, JointTargets, JointTargetsCfg
from umc.mdp.add_faults import FaultClassCfg, FaultEventsCfg, FaultFlagCfg, JointMaskCfg, LiveFaultsCfg, add_faults
from umc.mdp.curricula import failure_sampling, fault_curriculum
from umc.mdp.detection import DetectionCfg
from umc.mdp.events import joint_faults, reset_faults
from umc.mdp.fault_injector import FaultInjector, JointRow, SeverityRange, newest_fault_injector
from umc.mdp.fault_terms import fault_state
from umc.mdp.imu import add_imu_sensors
from umc.mdp.observations import (
    fault_class,
    fault_flag,
    forward_and_turn,
    imu_sensor,
    joint_mask,
    joint_sensor,
    live_faults,
    phase_clock,
    randomized_physics,
    zeros,
)
from umc.mdp.rewards import (
    commanded_progress,
    contact_follows_phase,
    diagonal_support,
    effort_beyond,
    foot_contact,
    foot_slip,
    gait_phase,
    height_above_ground,
    height_error_l2,
    joint_pos_l2,
    mechanical_power,
    only_positive,
    planar_velocity_error,
    swing_height_error,
    uneven_duty,
    yaw_drift,
)
from umc.mdp.terminations import height_below_minimum, non_finite_state, roll_pitch_beyond
