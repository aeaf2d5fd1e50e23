# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""H1 velocity tracking: the figures of unitree_rl_gym's 10-joint task and of the paper."""

from isaaclab.envs import mdp as lab
from isaaclab.managers import RewardTermCfg as RewTerm
from isaaclab.managers import SceneEntityCfg
from isaaclab.utils import configclass

from umc import mdp
from umc.robots import H1_CFG
from umc.robots.h1 import TARGET_HEIGHT
from umc.tasks.base import FaultyJoints
from umc.tasks.bodies import BodyNamesCfg
from umc.tasks.humanoid import HumanoidEnvCfg, HumanoidRewardsCfg
from umc.tasks.ppo import RobotAgents


@configclass
class RewardsCfg(HumanoidRewardsCfg):
    """The shared terms, and contacts of hips and knees."""

    collision = RewTerm(
        func=lab.undesired_contacts,
        weight=-1.0,
        params={
            "sensor_cfg": SceneEntityCfg("contact_forces", body_names=[".*_hip_.*", ".*_knee_.*"]),
            "threshold": 0.1,  # legged_gym [N]
        },
    )
    # last: it sums up the others
    only_positive = RewTerm(func=mdp.only_positive, weight=1.0)


@configclass
class H1Stage1EnvCfg(HumanoidEnvCfg):
    """Stage 1: the healthy robot learns to walk."""

    bodies: BodyNamesCfg = BodyNamesCfg(trunk="pelvis", feet=["left_ankle_link", "right_ankle_link"])
    rewards: RewardsCfg = RewardsCfg()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.set_robot("h1", H1_CFG)
        self.rewards.base_height.params["target_height"] = TARGET_HEIGHT


@configclass
class H1Stage2EnvCfg(FaultyJoints, H1Stage1EnvCfg):
    """Stage 2: the same task with faults."""


ROBOT_AGENTS = RobotAgents(
    robot="h1",
    articulation=H1_CFG,
    actor_joint_start=9,
    init_std=0.8,  # unitree_rl_gym
)

__getattr__ = ROBOT_AGENTS.cfg
