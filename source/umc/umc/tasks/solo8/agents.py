# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The agents of Solo8: all of :data:`umc.rl.agents.AGENTS`, for both stages."""

from umc.robots import SOLO8_CFG, SOLO8_JOINTS
from umc.tasks.ppo import RobotAgents

ROBOT_AGENTS = RobotAgents(
    robot="solo8",
    articulation=SOLO8_CFG,
    joint_names=SOLO8_JOINTS,
    actor_joint_start=12,
    critic_joint_start=12,
    init_std=0.5,  # as A1
)

# the cfg that an entry point names, e.g. umc.tasks.solo8.agents:mlp_stage2
__getattr__ = ROBOT_AGENTS.cfg
