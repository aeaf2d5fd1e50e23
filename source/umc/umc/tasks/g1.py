# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""G1 velocity tracking: the figures of unitree_rl_gym's 12-joint task and of the paper."""

from isaaclab.envs import mdp as lab
from isaaclab.managers import RewardTermCfg as RewTerm
from isaaclab.utils import configclass

from umc import mdp
from umc.robots import G1_CFG
from umc.robots.g1 import TARGET_HEIGHT
from umc.tasks.base import FaultyJoints
from umc.tasks.bodies import BodyNamesCfg
from umc.tasks.humanoid import HumanoidEnvCfg, HumanoidRewardsCfg
from umc.tasks.ppo import RobotAgents


@configclass
class RewardsCfg(HumanoidRewardsCfg):
    """The shared terms, joint velocities and torques."""

    joint_velocity = RewTerm(func=lab.joint_vel_l2, weight=-1.0e-3)
    torques = RewTerm(func=lab.joint_torques_l2, weight=-1.0e-5)
    # last: it sums up the others
    only_positive = RewTerm(func=mdp.only_positive, weight=1.0)


@configclass
class G1Stage1EnvCfg(HumanoidEnvCfg):
    """Stage 1: the healthy robot learns to walk."""

    bodies: BodyNamesCfg = BodyNamesCfg(trunk="pelvis", feet=["left_ankle_roll_link", "right_ankle_roll_link"])
    rewards: RewardsCfg = RewardsCfg()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.set_robot("g1", G1_CFG)
        self.rewards.base_height.params["target_height"] = TARGET_HEIGHT


@configclass
class G1Stage2EnvCfg(FaultyJoints, G1Stage1EnvCfg):
    """Stage 2: the same task with faults."""


ROBOT_AGENTS = RobotAgents(
    robot="g1",
    articulation=G1_CFG,
    actor_joint_start=9,
    init_std=0.8,  # unitree_rl_gym
)

__getattr__ = ROBOT_AGENTS.cfg
