# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The agents of G1: all of :data:`umc.rl.agents.AGENTS`, for both stages."""

from umc.robots import G1_CFG, G1_JOINTS
from umc.tasks.ppo import RobotAgents

ROBOT_AGENTS = RobotAgents(
    robot="g1",
    articulation=G1_CFG,
    joint_names=G1_JOINTS,
    actor_joint_start=9,
    critic_joint_start=12,
    init_std=0.8,  # unitree_rl_gym
)

# the cfg that an entry point names, e.g. umc.tasks.g1.agents:mlp_stage2
__getattr__ = ROBOT_AGENTS.cfg
