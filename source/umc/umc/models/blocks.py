# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Layers that the networks are built from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from umc.models.attention import ShortSequenceBlock, is_eager_cpu
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


IN_PLACE = ("elu", "relu")
"""Activations that need their result alone for the backward pass, so they may write it over their input."""


def make_activation(name: str) -> nn.Module:
    """Make an activation function of ACTIVATIONS, for an input that nothing else reads; refuse other names."""
    if name not in ACTIVATIONS:
        raise UmcError(f"unknown activation {name!r}, choose one of: {', '.join(sorted(ACTIVATIONS))}")
    return ACTIVATIONS[name](inplace=True) if name in IN_PLACE else ACTIVATIONS[name]()


def hidden_layers(widths: Sequence[int], activation: str) -> list[nn.Module]:
    """Make linear layers from each width to the next, each followed by an activation function."""
    layers: list[nn.Module] = []
    for width, following in pairwise(widths):
        layers += [nn.Linear(width, following), make_activation(activation)]
    return layers


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

    An attention bias is added to the scores and broadcastable to (B, heads, T, T); every query needs a key whose bias
    is not -inf.
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
        self.activation = make_activation(activation)
        self.linear2 = nn.Linear(feedforward_dim, embed_dim)
        self.norm2 = nn.LayerNorm(embed_dim)
        nn.init.xavier_uniform_(self.qkv.weight)  # as nn.MultiheadAttention
        nn.init.zeros_(self.qkv.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor, bias: Tensor | None = None, projected: Tensor | None = None) -> Tensor:
        """Map tokens (B, T, embed_dim) to the same shape, with an attention bias.

        Where takes_projected(x), the product of the tokens and qkv.weight may be given: (B, T, 3 embed_dim).
        """
        if not torch.jit.is_scripting():  # pyright: ignore[reportPrivateImportUsage]
            return self._forward_eagerly(x, bias, projected)
        return self._forward(x, bias)

    @torch.jit.unused
    def takes_projected(self, x: Tensor) -> bool:
        """Return whether tokens are computed by ShortSequenceBlock."""
        return is_eager_cpu(x) and isinstance(self.activation, nn.ReLU)

    def attention(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return the attention weights of forward(x, bias), (B, heads, T, T): row reads column, a row sums to 1."""
        q, k, _ = self._queries_keys_values(x)
        scores = q @ k.transpose(2, 3) * self.head_dim**-0.5
        return (scores if bias is None else scores + bias).softmax(-1)

    def _queries_keys_values(self, x: Tensor) -> list[Tensor]:
        """Project tokens to three (B, heads, T, head_dim)."""
        # unbind along dim 2, since its backward writes (B, T, 3, heads, head_dim) at once: indexing fills three zero
        # tensors first, and unbinding a permuted tensor copies once more.
        qkv = self.qkv(x).view(x.shape[0], x.shape[1], 3, self.num_heads, self.head_dim)
        return [part.transpose(1, 2) for part in qkv.unbind(2)]

    def _forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Compute forward by torch's modules and fused attention."""
        q, k, v = self._queries_keys_values(x)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2)
        # Rows of one matrix, since in-place steps on views of one would copy in the backward pass.
        rows = x.flatten(0, 1)
        rows = self.norm1(_add(self.out(mixed.reshape(rows.shape)), rows))
        return self.norm2(_add(self.linear2(self.activation(self.linear1(rows))), rows)).view_as(x)

    @torch.jit.unused
    def _forward_eagerly(self, x: Tensor, bias: Tensor | None, projected: Tensor | None) -> Tensor:
        """Compute forward outside TorchScript, which knows no autograd functions."""
        if not self.takes_projected(x):
            return self._forward(x, bias)
        if projected is None:
            projected = F.linear(x, self.qkv.weight)
        layers = self.out, self.norm1, self.linear1, self.linear2, self.norm2
        weights = [self.qkv.bias, *(tensor for layer in layers for tensor in (layer.weight, layer.bias))]
        return cast(Tensor, ShortSequenceBlock.apply(x, projected, bias, self.num_heads, self.norm1.eps, *weights))


def _add(update: Tensor, rows: Tensor) -> Tensor:
    """Add rows to a fresh update, in its place where both have the same precision."""
    return update.add_(rows) if update.dtype == rows.dtype else update + rows
