# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The paper's masked transformer, and the BodyTransformer as one more setting of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from umc.models.attention import is_eager_cpu
from umc.models.blocks import EncoderBlock, PerTokenHead, PerTokenLinear, make_activation
from umc.models.core import CoreCfg, MaskedCore
from umc.models.layout import JOINT_FEATURES, JointLayout
from umc.utils.errors import UmcError

ATTENTIONS = ("full", "body", "body_mix")
"""Who may read whom: "full" lets every token read every living token, "body" those next to it in the joint graph
only, and "body_mix" does as "body" in every other block, the first included, and as "full" in between."""

POSITION_STD = 0.02
"""Initial standard deviation of the learnable positions (BERT's, as common for learnable positions)."""

ROWS_PER_THREAD = 256
"""Rows that a CPU thread takes at once: the activations of one block then fit into its second-level cache (2 MiB)."""

HEAD_STD = 0.01
"""Initial standard deviation of the detokenizers: the first policy stands near its default pose
(Andrychowicz et al. 2021, "What Matters for On-Policy Deep Actor-Critic Methods", section 3.2)."""


@dataclass(frozen=True)
class TransformerCfg(CoreCfg):
    """Options of a masked transformer; the defaults are the paper's sizes."""

    embed_dim: int = 120
    """Width of a token."""
    num_heads: int = 2
    """Attention heads, a divisor of embed_dim."""
    feedforward_dim: int = 128
    """Hidden width of the feed-forward networks."""
    num_layers: int = 4
    """Encoder blocks."""
    activation: str = "relu"
    """Activation of the feed-forward networks."""
    attention: str = "full"
    """One of ATTENTIONS; all but "full" need a layout with the joint graph."""


class MaskedTransformer(MaskedCore):
    """Joint tokens and one context token through post-norm encoder blocks; keys of masked joints are masked.

    The context token carries the fault flag and all base observations, and it is never masked: every query has a key
    that is not masked. Along the joint graph a joint reads itself, its neighbours and the context token (so the flag
    reaches joints whose neighbours are masked), the context token itself and the base's neighbours. A value is the
    mean of one number for each token. On A1 the actor has 368,804 parameters (the paper prints 366,164).
    """

    cfg_class = TransformerCfg
    flag_layer = "context"

    reads_context = True
    """Whether every joint reads the context token, next to the base or not."""

    def __init__(self, layout: JointLayout, cfg: TransformerCfg = TransformerCfg()) -> None:
        super().__init__(layout, cfg)
        attention, embed_dim = cfg.attention, cfg.embed_dim
        if attention not in ATTENTIONS:
            raise UmcError(f"unknown attention {attention!r}, choose one of: {', '.join(ATTENTIONS)}")
        if attention != "full" and not layout.neighbours:
            raise UmcError(
                f"attention {attention!r} needs the joint graph: give neighbours, see umc.robots.graph.joint_neighbours"
            )
        if min(embed_dim, cfg.feedforward_dim, cfg.num_layers) < 1:
            raise UmcError("embed_dim, feedforward_dim and num_layers must be at least 1")
        if self.context_dim == 0:
            raise UmcError("the context token is empty: the observation needs a base column or the fault flag")
        num_tokens = layout.num_joints + 1
        self.tokenizer = PerTokenLinear(layout.num_joints, len(JOINT_FEATURES), embed_dim)
        self.context = nn.Linear(self.context_dim, embed_dim)
        self.positions = nn.Parameter(POSITION_STD * torch.randn(num_tokens, embed_dim))
        self.blocks = nn.ModuleList(
            EncoderBlock(embed_dim, cfg.num_heads, cfg.feedforward_dim, cfg.activation) for _ in range(cfg.num_layers)
        )
        self.head = PerTokenHead(layout.num_joints if cfg.output == "action" else num_tokens, embed_dim, HEAD_STD)
        self.output_activation: nn.Module = nn.Identity()
        self.along_graph = [
            attention == "body" or (attention == "body_mix" and i % 2 == 0) for i in range(cfg.num_layers)
        ]
        self.graph_bias: Tensor
        graph_bias = _graph_bias(layout, self.reads_context) if any(self.along_graph) else torch.zeros(0)
        self.register_buffer("graph_bias", graph_bias, persistent=False)

    def forward(self, obs: Tensor, joint_mask: Tensor | None = None, fault_flag: Tensor | None = None) -> Tensor:
        """Compute actions (B, J) or values (B, 1); see MaskedCore.forward."""
        self._check(obs, joint_mask, fault_flag)
        if not torch.jit.is_scripting():  # pyright: ignore[reportPrivateImportUsage]
            return self._in_parts(obs, joint_mask, fault_flag)
        return self._compute(obs, joint_mask, fault_flag)

    @torch.jit.unused
    def _in_parts(self, obs: Tensor, joint_mask: Tensor | None, fault_flag: Tensor | None) -> Tensor:
        """Compute a batch, on CPUs in parts that stay in their caches."""
        if not is_eager_cpu(obs):
            return self._compute(obs, joint_mask, fault_flag)
        rows = ROWS_PER_THREAD * torch.get_num_threads()
        if obs.shape[0] <= rows:
            return self._compute(obs, joint_mask, fault_flag)
        parts = []
        for start in range(0, obs.shape[0], rows):
            part = slice(start, start + rows)
            mask = None if joint_mask is None else joint_mask[part]
            flag = None if fault_flag is None else fault_flag[part]
            parts.append(self._compute(obs[part], mask, flag))
        return torch.cat(parts)

    def attention(self, obs: Tensor, joint_mask: Tensor | None = None, fault_flag: Tensor | None = None) -> Tensor:
        """Return the attention weights (blocks, B, heads, J + 1, J + 1), in a computation of its own.

        Rows are the tokens that read, columns those that are read; a row adds up to 1. The context token comes last.
        """
        self._check(obs, joint_mask, fault_flag)
        joints, context, bias = self._inputs(obs, joint_mask, fault_flag)
        tokens = self._tokens(joints, context)
        graph_bias = self._add_graph(bias)
        maps = []
        for along_graph, module in zip(self.along_graph, self.blocks, strict=True):
            block, block_bias = cast(EncoderBlock, module), graph_bias if along_graph else bias
            maps.append(block.attention(tokens, block_bias))
            tokens = block(tokens, block_bias)
        return torch.stack(maps)

    def _compute(self, obs: Tensor, joint_mask: Tensor | None, fault_flag: Tensor | None) -> Tensor:
        """Compute actions (B, J) or values (B, 1) of one batch at once."""
        joints, context, bias = self._inputs(obs, joint_mask, fault_flag)
        tokens = self._tokens(joints, context)
        projected: Tensor | None = None
        if not torch.jit.is_scripting():  # pyright: ignore[reportPrivateImportUsage]
            projected = self._projected(joints, context)
        graph_bias = self._add_graph(bias)
        for index, block in enumerate(self.blocks):
            tokens = block(tokens, graph_bias if self.along_graph[index] else bias, projected)
            projected = None
        if self.output == "action":
            return self.output_activation(self.head(tokens[:, : self.columns.num_joints]))
        return self.head(tokens).mean(dim=1, keepdim=True)

    def _inputs(
        self, obs: Tensor, joint_mask: Tensor | None, fault_flag: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Split a batch into what joint tokens (B, J, 3) and context token (B, C) read, and the bias of dead keys."""
        bias: Tensor | None = None
        if self.masked:
            assert joint_mask is not None
            dead = self.columns.masked_tokens(joint_mask)
            obs = self.columns.fill_masked(obs, dead, self.mask_value)
            bias = self._attention_bias(dead, obs)
        base, joints = self.columns.split(obs)
        return joints, self._with_flag(base, fault_flag), bias

    def _tokens(self, joints: Tensor, context: Tensor) -> Tensor:
        """Make the tokens (B, J + 1, embed_dim) that enter the first block."""
        return torch.cat([self.tokenizer(joints), self.context(context).unsqueeze(1)], dim=1) + self.positions

    @torch.jit.unused
    def _projected(self, joints: Tensor, context: Tensor) -> Tensor | None:
        """Project the inputs for the first block's attention, (B, J + 1, 3 embed_dim), or None where it does so itself.

        The product of the tokenizers and the projection has few rows, so that a batch takes a fraction of the time.
        """
        block = cast(EncoderBlock, self.blocks[0])
        if not block.takes_projected(joints):
            return None
        weight = block.qkv.weight.t()
        offsets = (torch.cat([self.tokenizer.bias, self.context.bias.unsqueeze(0)]) + self.positions) @ weight
        by_joint = torch.baddbmm(offsets[:-1].unsqueeze(1), joints.transpose(0, 1), self.tokenizer.weight @ weight)
        of_context = torch.addmm(offsets[-1], context, self.context.weight.t() @ weight)
        return torch.cat([by_joint, of_context.unsqueeze(0)]).transpose(0, 1)

    def _attention_bias(self, dead: Tensor, like: Tensor) -> Tensor:
        """Make the (B, 1, 1, J + 1) bias in the type of `like`: -inf on dead keys, 0 on living ones."""
        bias = torch.zeros(dead.shape, dtype=like.dtype, device=like.device).masked_fill(dead, float("-inf"))
        return bias.unsqueeze(1).unsqueeze(1)

    def _add_graph(self, bias: Tensor | None) -> Tensor | None:
        """Close the keys that the joint graph keeps from a query, (B or 1, 1, J + 1, J + 1), beside the dead ones."""
        if self.graph_bias.shape[0] == 0:
            return bias
        return self.graph_bias if bias is None else bias + self.graph_bias


@dataclass(frozen=True)
class BodyTransformerCfg(TransformerCfg):
    """Options of a BodyTransformer; the defaults are the public A1 configuration's."""

    masked: bool = False
    flagged: bool = False
    embed_dim: int = 64
    num_layers: int = 8
    attention: str = "body"
    """"body" (published as BoT-Hard) or "body_mix" (BoT-Mix: masked and unmasked blocks alternate)."""
    output_activation: str | None = "tanh"
    """Activation over the mean action; None for none. A value has none."""


class BodyTransformer(MaskedTransformer):
    """The baseline of Sferrazza et al. 2024 (arXiv 2408.06316): same functions, tokens in another order.

    It reads no faults: no joint is blanked, no key is masked, no flag is read. A token reads itself and its
    neighbours in the joint graph only, the base's token too. Robots other than A1 have the same layout: the base's
    token carries all columns that belong to no joint.
    """

    cfg_class = BodyTransformerCfg
    reads_context = False

    def __init__(self, layout: JointLayout, cfg: BodyTransformerCfg = BodyTransformerCfg()) -> None:
        if cfg.attention == "full":
            raise UmcError("a BodyTransformer reads along the joint graph: choose attention body or body_mix")
        super().__init__(layout, cfg)
        if cfg.output == "action" and cfg.output_activation is not None:
            self.output_activation = make_activation(cfg.output_activation)
        bound = cfg.embed_dim**-0.5  # as nn.Linear, which the public tokenizers and detokenizers are
        nn.init.uniform_(self.head.weight, -bound, bound)
        nn.init.uniform_(self.head.bias, -bound, bound)
        # the rest as the public Transformer.init_weights
        nn.init.normal_(self.positions, std=POSITION_STD)
        for block in self.blocks:
            assert isinstance(block, EncoderBlock)
            for linear in (block.out, block.linear1, block.linear2):
                nn.init.normal_(linear.weight, std=POSITION_STD)
                nn.init.zeros_(linear.bias)


def _graph_bias(layout: JointLayout, reads_context: bool) -> Tensor:
    """Make the (1, 1, J + 1, J + 1) bias of the joint graph: 0 where a query may read a key, -inf elsewhere."""
    tokens = layout.num_joints + 1
    readable = torch.eye(tokens, dtype=torch.bool)
    for token, near in enumerate(layout.neighbours):
        readable[token, list(near)] = True
    if reads_context:
        readable[:, -1] = True
    return torch.zeros(1, 1, tokens, tokens).masked_fill(~readable, float("-inf"))
