# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""PPO settings that every UMC agent shares; a robot's ``agents.py`` adds its joints and names."""

from isaaclab.utils import configclass
from isaaclab_rl.rsl_rl import RslRlMLPModelCfg, RslRlOnPolicyRunnerCfg, RslRlPpoAlgorithmCfg

from umc.rl.cfg import UmcMlpModelCfg, UmcTransformerModelCfg
from umc.tasks.device import DEFAULT_DEVICE

STAGE_ITERATIONS = 2500
"""Iterations of each stage (paper, table of the actor's parameters)."""


@configclass
class UmcPpoRunnerCfg(RslRlOnPolicyRunnerCfg):
    """The PPO of legged_gym, which the paper trains with."""

    num_steps_per_env = 24
    max_iterations = STAGE_ITERATIONS
    save_interval = 50
    # the critic sees true values and no mask (paper, "Actor Model")
    obs_groups = {"actor": ["policy", "joint_mask", "fault_flag"], "critic": ["critic"]}
    algorithm = RslRlPpoAlgorithmCfg(
        value_loss_coef=1.0,
        use_clipped_value_loss=True,
        clip_param=0.2,
        entropy_coef=0.01,
        num_learning_epochs=5,
        num_mini_batches=4,
        learning_rate=1.0e-3,
        schedule="adaptive",
        gamma=0.99,
        lam=0.95,
        desired_kl=0.01,
        max_grad_norm=1.0,
    )

    def __post_init__(self) -> None:
        """Learn on the first GPU where there is one, so that Isaac Lab's own commands start on any machine."""
        self.device = DEFAULT_DEVICE


def transformer(
    joint_names: tuple[str, ...], joint_start: int, init_std: float | None = None
) -> UmcTransformerModelCfg:
    """The paper's transformer.

    Args:
        joint_names: The task's joints in the order of its observations.
        joint_start: Column of the first joint position in the group the model reads.
        init_std: Standard deviation of the action noise at the start [-]; None for a critic.

    Returns:
        The model's cfg.
    """
    return UmcTransformerModelCfg(
        joint_names=list(joint_names), joint_start=joint_start, distribution_cfg=_gaussian(init_std)
    )


def mlp(joint_names: tuple[str, ...], joint_start: int, init_std: float | None = None) -> UmcMlpModelCfg:
    """The paper's MLP.

    Args:
        joint_names: The task's joints in the order of its observations.
        joint_start: Column of the first joint position in the group the model reads.
        init_std: Standard deviation of the action noise at the start [-]; None for a critic.

    Returns:
        The model's cfg.
    """
    return UmcMlpModelCfg(joint_names=list(joint_names), joint_start=joint_start, distribution_cfg=_gaussian(init_std))


def _gaussian(init_std: float | None) -> RslRlMLPModelCfg.GaussianDistributionCfg | None:
    return None if init_std is None else RslRlMLPModelCfg.GaussianDistributionCfg(init_std=init_std)
