# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Layers that the networks are built from."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from umc.models.attention import attention_weights, self_attention
from umc.utils.errors import UmcError

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "relu": nn.ReLU,
    "selu": nn.SELU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}
"""Activation functions by the names that rsl_rl's configs use."""


def make_activation(name: str) -> nn.Module:
    """Make an activation function from its name in ACTIVATIONS; raise UmcError for an unknown one."""
    if name not in ACTIVATIONS:
        raise UmcError(f"unknown activation {name!r}, choose one of: {', '.join(sorted(ACTIVATIONS))}")
    return ACTIVATIONS[name]()


class PerTokenLinear(nn.Module):
    """T linear layers from in_dim to out_dim, one for each token, in one batched product."""

    def __init__(self, num_tokens: int, in_dim: int, out_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_tokens, in_dim, out_dim))
        self.bias = nn.Parameter(torch.empty(num_tokens, out_dim))
        bound = in_dim**-0.5  # as nn.Linear
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens (B, T, in_dim) to (B, T, out_dim)."""
        return torch.baddbmm(self.bias.unsqueeze(1), x.transpose(0, 1), self.weight).transpose(0, 1)


class PerTokenHead(nn.Module):
    """T linear layers to one number each; weights start with a standard deviation of weight_std, biases at 0."""

    def __init__(self, num_tokens: int, in_dim: int, weight_std: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight_std * torch.randn(num_tokens, in_dim))
        self.bias = nn.Parameter(torch.zeros(num_tokens))

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens (B, T, in_dim) to (B, T)."""
        return (x * self.weight).sum(-1) + self.bias


class EncoderBlock(nn.Module):
    """Post-norm transformer block, the same function as nn.TransformerEncoderLayer without dropout.

    Args:
        embed_dim: Width of a token, a multiple of num_heads.
        num_heads: Attention heads.
        feedforward_dim: Hidden width of the feed-forward network.
        activation: Activation of the feed-forward network, a key of ACTIVATIONS.
    """

    def __init__(self, embed_dim: int, num_heads: int, feedforward_dim: int, activation: str = "relu") -> None:
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise UmcError(f"embed_dim {embed_dim} must be a multiple of num_heads {num_heads}")
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.out = nn.Linear(embed_dim, embed_dim)
        self.norm1 = nn.LayerNorm(embed_dim)
        self.linear1 = nn.Linear(embed_dim, feedforward_dim)
        self.activation = nn.ReLU(inplace=True) if activation == "relu" else make_activation(activation)
        self.linear2 = nn.Linear(feedforward_dim, embed_dim)
        self.norm2 = nn.LayerNorm(embed_dim)
        nn.init.xavier_uniform_(self.qkv.weight)  # as nn.MultiheadAttention
        nn.init.zeros_(self.qkv.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Map tokens (B, T, embed_dim) to the same shape.

        The bias is added to the attention scores and broadcastable to (B, heads, T, T).
        """
        # Rows of one matrix, since in-place steps on views of one would copy in the backward pass.
        rows = x.flatten(0, 1)
        mixed = self_attention(x, self.qkv.weight, self.qkv.bias, self.out.weight, self.out.bias, bias, self.num_heads)
        rows = self.norm1(_add(mixed, rows))
        return self.norm2(_add(self.linear2(self.activation(self.linear1(rows))), rows)).view_as(x)

    def attention(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return who reads whom in forward(x, bias): shares (B, heads, T, T), see attention_weights."""
        return attention_weights(x, self.qkv.weight, self.qkv.bias, bias, self.num_heads)


def _add(update: Tensor, rows: Tensor) -> Tensor:
    """Add rows to a fresh update, in its place where both have the same precision."""
    return update.add_(rows) if update.dtype == rows.dtype else update + rows
