# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The agents of G1: the masked transformer and the masked MLP, for both stages."""

from isaaclab.utils import configclass

from umc.robots import G1_JOINTS
from umc.tasks.ppo import UmcPpoRunnerCfg, mlp, transformer

ACTOR_JOINT_START = 9
"""Column of the first joint position in ``policy``."""

CRITIC_JOINT_START = 12
"""Column of the first joint position in ``critic``."""

INIT_STD = 0.8
"""unitree_rl_gym's initial action noise [-]."""


@configclass
class G1TransformerStage1Cfg(UmcPpoRunnerCfg):
    """Masked transformer, healthy robot."""

    experiment_name = "umc_g1_transformer_stage1"
    actor = transformer(G1_JOINTS, ACTOR_JOINT_START, INIT_STD)
    critic = transformer(G1_JOINTS, CRITIC_JOINT_START)


@configclass
class G1TransformerStage2Cfg(G1TransformerStage1Cfg):
    """Masked transformer, faults."""

    experiment_name = "umc_g1_transformer_stage2"


@configclass
class G1MlpStage1Cfg(UmcPpoRunnerCfg):
    """Masked MLP, healthy robot."""

    experiment_name = "umc_g1_mlp_stage1"
    actor = mlp(G1_JOINTS, ACTOR_JOINT_START, INIT_STD)
    critic = mlp(G1_JOINTS, CRITIC_JOINT_START)


@configclass
class G1MlpStage2Cfg(G1MlpStage1Cfg):
    """Masked MLP, faults."""

    experiment_name = "umc_g1_mlp_stage2"
