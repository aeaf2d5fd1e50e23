# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The agents of A1: all of :data:`umc.rl.agents.AGENTS`, for both stages."""

from umc.robots import A1_CFG, A1_JOINTS
from umc.tasks.ppo import RobotAgents

ROBOT_AGENTS = RobotAgents(
    robot="a1",
    articulation=A1_CFG,
    joint_names=A1_JOINTS,
    actor_joint_start=12,
    critic_joint_start=12,
    # ParkourGym's 1.0 throws A1 over within a second; with 0.5 episodes reached 640 of 1,000 steps after 56
    # iterations, with 1.0 138 after 41 (256 envs, ovphysx)
    init_std=0.5,
)

# the cfg that an entry point names, e.g. umc.tasks.a1.agents:mlp_stage2
__getattr__ = ROBOT_AGENTS.cfg
