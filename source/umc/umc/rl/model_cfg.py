# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Configs of the rsl_rl models, for agent configs."""

from dataclasses import MISSING

from isaaclab.utils import configclass
from isaaclab_rl.rsl_rl import RslRlMLPModelCfg

from umc.models import BodyTransformerCfg, MlpCfg, TransformerCfg


@configclass
class UmcModelCfg(RslRlMLPModelCfg):
    """What all UMC models share: where the joints are in the observation, and what masked ones read."""

    joint_names: list[str] = MISSING  # pyright: ignore[reportAssignmentType]
    """Joint names in the order of observations, actions and masks."""

    joint_start: int = MISSING  # pyright: ignore[reportAssignmentType]
    """Column of the first joint's position in the observation; all positions, all velocities and all last actions
    follow each other from there."""

    mask_value: float = 0.0
    """What masked joints read. Defaults to 0.0, the paper's."""

    mask_group: str = "joint_mask"
    """Observation group with the joint mask; a model whose set has no such group masks nothing."""

    flag_group: str = "fault_flag"
    """Observation group with the fault flag; a model whose set has no such group reads no flag."""


@configclass
class UmcMlpModelCfg(UmcModelCfg):
    """The masked MLP (umc.models.MaskedMlp)."""

    class_name: str = "umc.rl.models:MaskedMlpModel"

    hidden_dims: list[int] = list(MlpCfg.hidden_dims)
    """Hidden widths. Defaults to the paper's."""

    activation: str = MlpCfg.activation
    """Activation after each hidden layer."""


@configclass
class UmcTransformerModelCfg(UmcModelCfg):
    """The masked transformer (umc.models.MaskedTransformer); its defaults are the paper's."""

    class_name: str = "umc.rl.models:MaskedTransformerModel"

    hidden_dims: list[int] = []
    """Stays empty: a transformer has none."""

    activation: str = TransformerCfg.activation
    """Activation of the feed-forward networks."""

    embed_dim: int = TransformerCfg.embed_dim
    """Width of a token."""

    num_heads: int = TransformerCfg.num_heads
    """Attention heads, a divisor of embed_dim."""

    feedforward_dim: int = TransformerCfg.feedforward_dim
    """Hidden width of the feed-forward networks."""

    num_layers: int = TransformerCfg.num_layers
    """Encoder blocks."""

    attention: str = TransformerCfg.attention
    """Who reads whom: "full" (every living token), "body" (neighbours in the joint graph and the context token) or
    "body_mix" (the two in turns, "body" first)."""

    neighbours: list[list[int]] = []
    """The joint graph, as umc.robots.graph.joint_neighbours reads it off the robot; needed unless attention is
    "full"."""


@configclass
class UmcBodyTransformerModelCfg(UmcTransformerModelCfg):
    """The baseline (umc.models.BodyTransformer); its defaults are the public A1 configuration's.

    It reads neither mask nor flag, whether obs_groups holds them or not; mask_value must stay 0.
    """

    class_name: str = "umc.rl.models:BodyTransformerModel"
    embed_dim: int = BodyTransformerCfg.embed_dim
    num_layers: int = BodyTransformerCfg.num_layers

    attention: str = BodyTransformerCfg.attention
    """Who reads whom: "body" (neighbours in the joint graph) or "body_mix" (every other block reads all tokens)."""

    output_activation: str | None = BodyTransformerCfg.output_activation
    """Activation over the mean action; None for none. A critic has none."""
