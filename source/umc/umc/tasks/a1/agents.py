# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The agents of A1: the masked transformer and the masked MLP, for both stages."""

from isaaclab.utils import configclass

from umc.robots import A1_JOINTS
from umc.tasks.ppo import UmcPpoRunnerCfg, mlp, transformer

ACTOR_JOINT_START = 12
"""Column of the first joint position in ``policy``."""

CRITIC_JOINT_START = 12
"""Column of the first joint position in ``critic``."""

INIT_STD = 0.5
"""Initial action noise [-]. ParkourGym's 1.0 throws A1 over within a second; with 0.5 episodes reached 640 of 1,000
steps after 56 iterations, with 1.0 138 after 41 (256 envs, ovphysx)."""


@configclass
class A1TransformerStage1Cfg(UmcPpoRunnerCfg):
    """Masked transformer, healthy robot."""

    experiment_name = "umc_a1_transformer_stage1"
    actor = transformer(A1_JOINTS, ACTOR_JOINT_START, INIT_STD)
    critic = transformer(A1_JOINTS, CRITIC_JOINT_START)


@configclass
class A1TransformerStage2Cfg(A1TransformerStage1Cfg):
    """Masked transformer, faults."""

    experiment_name = "umc_a1_transformer_stage2"


@configclass
class A1MlpStage1Cfg(UmcPpoRunnerCfg):
    """Masked MLP, healthy robot."""

    experiment_name = "umc_a1_mlp_stage1"
    actor = mlp(A1_JOINTS, ACTOR_JOINT_START, INIT_STD)
    critic = mlp(A1_JOINTS, CRITIC_JOINT_START)


@configclass
class A1MlpStage2Cfg(A1MlpStage1Cfg):
    """Masked MLP, faults."""

    experiment_name = "umc_a1_mlp_stage2"
