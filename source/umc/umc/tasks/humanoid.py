# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Terms and figures that unitree_rl_gym's walking humanoids share."""

import math
from dataclasses import MISSING

from isaaclab.envs import mdp as lab
from isaaclab.managers import EventTermCfg as EventTerm
from isaaclab.managers import ObservationTermCfg as ObsTerm
from isaaclab.managers import RewardTermCfg as RewTerm
from isaaclab.managers import SceneEntityCfg
from isaaclab.managers import TerminationTermCfg as DoneTerm
from isaaclab.utils import configclass

from umc import mdp
from umc.tasks.base import (
    ActorTermsCfg,
    CriticTermsCfg,
    FaultEventsCfg,
    LeggedEnvCfg,
    LeggedObservationsCfg,
    friction_event,
    payload_event,
    reset_base_event,
    reset_joints_event,
)
from umc.tasks.bodies import FEET, FEET_CONTACT, TRUNK_CONTACT

GAIT_PERIOD = 0.8
"""Duration of one stride [s] (unitree_rl_gym)."""

GAIT_OFFSETS = (0.0, 0.5)
"""Phase of the left and the right foot, as fractions of the stride (unitree_rl_gym)."""

STANCE_FRACTION = 0.55
"""Fraction of the stride in which a foot stands (unitree_rl_gym)."""


@configclass
class HumanoidCommandsCfg:
    """A planar velocity and a heading to keep, drawn anew every 10 s."""

    base_velocity = lab.UniformVelocityCommandCfg(
        asset_name="robot",
        resampling_time_range=(10.0, 10.0),
        rel_standing_envs=0.0,
        heading_command=True,
        heading_control_stiffness=0.5,
        debug_vis=False,
        ranges=lab.UniformVelocityCommandCfg.Ranges(
            lin_vel_x=(-1.0, 1.0), lin_vel_y=(-1.0, 1.0), ang_vel_z=(-1.0, 1.0), heading=(-math.pi, math.pi)
        ),
    )


@configclass
class HumanoidActionsCfg:
    """Joint targets around the default pose."""

    joint_pos = mdp.JointTargetsCfg(asset_name="robot", joint_names=[".*"], scale=0.25, use_default_offset=True)


@configclass
class HumanoidObservationsCfg(LeggedObservationsCfg):
    """What actor and critic observe."""

    @configclass
    class PolicyCfg(ActorTermsCfg):
        """Base 9, then positions, velocities and last actions of the joints, then the clock 2."""

        clock = ObsTerm(func=mdp.phase_clock, params={"period": GAIT_PERIOD})

    @configclass
    class CriticCfg(CriticTermsCfg):
        """Linear velocity, then the same columns with true values."""

        clock = ObsTerm(func=mdp.phase_clock, params={"period": GAIT_PERIOD})

    policy: PolicyCfg = PolicyCfg()
    critic: CriticCfg = CriticCfg()


@configclass
class HumanoidEventsCfg(FaultEventsCfg):
    """Faults, then randomisation of physics and of the start, and pushes."""

    # unitree_rl_gym draws 0.1..1.25 and IsaacGym averages it with the ground's 1; our ground takes the foot's
    friction = friction_event(0.55, 1.125)
    pelvis_mass = payload_event(-1.0, 3.0)
    reset_base = reset_base_event(yaw=math.pi, speed=0.5)
    reset_joints = reset_joints_event()
    push = EventTerm(
        func=lab.push_by_setting_velocity,
        mode="interval",
        interval_range_s=(5.0, 5.0),
        params={"velocity_range": {"x": (-1.5, 1.5), "y": (-1.5, 1.5)}},
    )


@configclass
class HumanoidRewardsCfg:
    """unitree_rl_gym's terms, multiplied with the policy step; a robot adds its own, and last ``only_positive``."""

    track_lin_vel = RewTerm(
        func=lab.track_lin_vel_xy_exp,
        weight=1.0,
        params={"command_name": "base_velocity", "std": math.sqrt(0.25)},
    )
    track_ang_vel = RewTerm(
        func=lab.track_ang_vel_z_exp,
        weight=0.5,
        params={"command_name": "base_velocity", "std": math.sqrt(0.25)},
    )
    lin_vel_z = RewTerm(func=lab.lin_vel_z_l2, weight=-2.0)
    ang_vel_xy = RewTerm(func=lab.ang_vel_xy_l2, weight=-0.05)
    orientation = RewTerm(func=lab.flat_orientation_l2, weight=-1.0)
    base_height = RewTerm(func=lab.base_height_l2, weight=-10.0, params={"target_height": MISSING})
    joint_acceleration = RewTerm(func=lab.joint_acc_l2, weight=-2.5e-7)
    action_rate = RewTerm(func=lab.action_rate_l2, weight=-0.01)
    joint_limits = RewTerm(func=lab.joint_pos_limits, weight=-5.0)
    alive = RewTerm(func=lab.is_alive, weight=0.15)
    hip_position = RewTerm(
        func=mdp.joint_pos_l2,
        weight=-1.0,
        params={"asset_cfg": SceneEntityCfg("robot", joint_names=[".*_hip_roll_joint", ".*_hip_yaw_joint"])},
    )
    foot_slip = RewTerm(func=mdp.foot_slip, weight=-0.2, params={"sensor_cfg": FEET_CONTACT, "asset_cfg": FEET})
    swing_height = RewTerm(
        func=mdp.swing_height_error,
        weight=-20.0,
        params={"target": 0.08, "sensor_cfg": FEET_CONTACT, "asset_cfg": FEET},
    )
    contact_phase = RewTerm(
        func=mdp.contact_follows_phase,
        weight=0.18,
        params={
            "period": GAIT_PERIOD,
            "offsets": GAIT_OFFSETS,
            "stance": STANCE_FRACTION,
            "sensor_cfg": FEET_CONTACT,
        },
    )
    # off unless a run asks for them, as the quadrupeds' (docs/training_guide.md)
    yaw_drift = RewTerm(func=mdp.yaw_drift, weight=0.0, params={"command_name": "base_velocity", "time_constant": 0.5})
    progress = RewTerm(func=mdp.commanded_progress, weight=0.0, params={"command_name": "base_velocity"})


@configclass
class HumanoidTerminationsCfg:
    """A fall, a time-out, or physics gone wrong."""

    time_out = DoneTerm(func=lab.time_out, time_out=True)
    pelvis_contact = DoneTerm(func=lab.illegal_contact, params={"sensor_cfg": TRUNK_CONTACT, "threshold": 1.0})
    # legged_gym's bounds on the trunk's tilt, which unitree_rl_gym keeps beside the contact
    orientation = DoneTerm(func=mdp.roll_pitch_beyond, params={"max_roll": 0.8, "max_pitch": 1.0})
    non_finite_state = DoneTerm(func=mdp.non_finite_state)


@configclass
class HumanoidEnvCfg(LeggedEnvCfg):
    """A task without its robot, the names of its bodies and rewards."""

    observations: HumanoidObservationsCfg = HumanoidObservationsCfg()
    actions: HumanoidActionsCfg = HumanoidActionsCfg()
    commands: HumanoidCommandsCfg = HumanoidCommandsCfg()
    rewards: HumanoidRewardsCfg = MISSING
    terminations: HumanoidTerminationsCfg = HumanoidTerminationsCfg()
    events: HumanoidEventsCfg = HumanoidEventsCfg()
