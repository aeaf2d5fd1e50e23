# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Configs of the rsl_rl models and of distillation, for agent configs."""

from dataclasses import MISSING

from isaaclab.utils import configclass
from isaaclab_rl.rsl_rl import RslRlMLPModelCfg

from umc.models import BodyTransformerCfg, GruCfg, MlpCfg, MultiTaskCfg, TransformerCfg


@configclass
class UmcModelCfg(RslRlMLPModelCfg):
    """Base cfg of all UMC models: where the joints are in the observation, and what masked ones read."""

    joint_names: list[str] = MISSING  # pyright: ignore[reportAssignmentType]
    """Joint names in the order of observations, actions and masks."""

    joint_start: int = MISSING  # pyright: ignore[reportAssignmentType]
    """Column of the first joint's position in the observation; all positions, all velocities and all last actions
    follow each other from there."""

    mask_value: float = 0.0
    """What masked joints read; the paper's is 0."""

    mask_group: str = "joint_mask"
    """Observation group with the joint mask; a model whose set has no such group masks nothing."""

    flag_group: str = "fault_flag"
    """Observation group with the fault flag; a model whose set has no such group reads no flag."""


@configclass
class UmcMlpModelCfg(UmcModelCfg):
    """The masked MLP; fields as of :class:`umc.models.MlpCfg`."""

    class_name: str = "umc.rl.models:MaskedMlpModel"
    hidden_dims: list[int] = list(MlpCfg.hidden_dims)
    activation: str = MlpCfg.activation


@configclass
class UmcGruModelCfg(UmcMlpModelCfg):
    """The masked GRU; fields as of :class:`umc.models.GruCfg`."""

    class_name: str = "umc.rl.models:MaskedGruModel"
    memory_dim: int = GruCfg.memory_dim


@configclass
class UmcTransformerModelCfg(UmcModelCfg):
    """The masked transformer; fields as of :class:`umc.models.TransformerCfg`."""

    class_name: str = "umc.rl.models:MaskedTransformerModel"
    hidden_dims: list[int] = []
    """Stays empty: a transformer has none."""
    activation: str = TransformerCfg.activation
    embed_dim: int = TransformerCfg.embed_dim
    num_heads: int = TransformerCfg.num_heads
    feedforward_dim: int = TransformerCfg.feedforward_dim
    num_layers: int = TransformerCfg.num_layers
    attention: str = TransformerCfg.attention
    neighbours: list[list[int]] = []
    """The joint graph (:func:`umc.robots.graph.joint_neighbours`); needed unless attention is "full"."""


@configclass
class UmcBodyTransformerModelCfg(UmcTransformerModelCfg):
    """The baseline; fields as of :class:`umc.models.BodyTransformerCfg`.

    It reads neither mask nor flag, whether obs_groups holds them or not; mask_value must stay 0.
    """

    class_name: str = "umc.rl.models:BodyTransformerModel"
    embed_dim: int = BodyTransformerCfg.embed_dim
    num_layers: int = BodyTransformerCfg.num_layers
    attention: str = BodyTransformerCfg.attention
    output_activation: str | None = BodyTransformerCfg.output_activation


@configclass
class UmcMultiTaskModelCfg(UmcModelCfg):
    """The baseline MT-FTC; fields as of :class:`umc.models.MultiTaskCfg`. It masks nothing; mask_value must stay 0."""

    class_name: str = "umc.rl.models:MultiTaskModel"
    flag_group: str = "fault_class"
    hidden_dims: list[int] = list(MultiTaskCfg.hidden_dims)
    head_dims: list[int] = list(MultiTaskCfg.head_dims)
    activation: str = MultiTaskCfg.activation


@configclass
class DistillationCfg:
    """How ``umc train --teacher`` imitates a policy (``umc.rl.distillation``)."""

    iterations: int = 150
    """Iterations without ``--max_iterations``."""

    mixing: int = 15
    """First iterations, in which the teacher acts less and less: the actor alone would fall at once."""

    updates: int = 10
    """Gradient steps of the actor per iteration."""

    batch_size: int = 4096
    """Samples of each."""

    samples: int = 250_000
    """Samples to learn from: the newest."""

    critic_epochs: int = 2
    """Epochs of the critic per iteration."""

    learning_rate: float = 1.0e-3
    """At the start; it falls linearly."""
