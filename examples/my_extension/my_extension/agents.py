# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The agents of Solo12: all that UMC has, and this project's own."""

from umc.tasks.ppo import RobotAgents, UmcPpoRunnerCfg

from .robot import SOLO12_CFG, SOLO12_JOINTS

ROBOT_AGENTS = RobotAgents(
    robot="solo12",
    articulation=SOLO12_CFG,
    joint_names=SOLO12_JOINTS,
    actor_joint_start=12,  # after velocity, angular velocity, gravity and command
    critic_joint_start=12,
    init_std=0.5,  # of the action noise [-], as A1
)


def __getattr__(name: str) -> UmcPpoRunnerCfg:
    """Return the cfg that an entry point names, e.g. ``my_extension.agents:mlp_stage2``."""
    return ROBOT_AGENTS.cfg(name)
