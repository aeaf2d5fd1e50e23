# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Self-attention over a dozen tokens: torch's own on GPUs and in exports, one made for short rows on CPUs."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable


def self_attention(
    x: Tensor,
    qkv_weight: Tensor,
    qkv_offset: Tensor,
    out_weight: Tensor,
    out_offset: Tensor,
    bias: Tensor | None,
    num_heads: int,
) -> Tensor:
    """Project tokens to queries, keys and values, mix the values, and project the mix.

    Args:
        x: Tokens (B, T, D).
        qkv_weight: Projection (3 D, D) to queries, keys and values.
        qkv_offset: Its bias (3 D).
        out_weight: Projection (D, D) of the mixed values.
        out_offset: Its bias (D).
        bias: Added to the scores, broadcastable to (B, heads, T, T); every query needs a key that is not -inf.
        num_heads: Attention heads, a divisor of D.

    Returns:
        Rows (B T, D), no view of anything.
    """
    if not torch.jit.is_scripting():  # pyright: ignore[reportPrivateImportUsage]
        return _eager(x, qkv_weight, qkv_offset, out_weight, out_offset, bias, num_heads)
    return _torchs_own(x, qkv_weight, qkv_offset, out_weight, out_offset, bias, num_heads)


def attention_weights(x: Tensor, qkv_weight: Tensor, qkv_offset: Tensor, bias: Tensor | None, num_heads: int) -> Tensor:
    """Compute the shares (B, heads, T, T) that self_attention mixes: row reads column, a row adds up to 1.

    Arguments as of self_attention.
    """
    batch, tokens, width = x.shape
    q, k, _ = F.linear(x, qkv_weight, qkv_offset).view(batch, tokens, 3, num_heads, width // num_heads).unbind(2)
    scores = q.transpose(1, 2) @ k.permute(0, 2, 3, 1) * (width // num_heads) ** -0.5
    return (scores if bias is None else scores + bias).softmax(-1)


def _torchs_own(
    x: Tensor,
    qkv_weight: Tensor,
    qkv_offset: Tensor,
    out_weight: Tensor,
    out_offset: Tensor,
    bias: Tensor | None,
    num_heads: int,
) -> Tensor:
    """self_attention through torch's fused attention."""
    batch, tokens, width = x.shape
    # unbind along dim 2, since its backward writes (B, T, 3, heads, head_dim) at once: indexing fills three zero
    # tensors first, and unbinding a permuted tensor copies once more.
    qkv = F.linear(x, qkv_weight, qkv_offset).view(batch, tokens, 3, num_heads, width // num_heads)
    q, k, v = qkv.unbind(2)
    mixed = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=bias)
    return F.linear(mixed.transpose(1, 2).reshape(batch * tokens, width), out_weight, out_offset)


@torch.jit.unused
def _eager(
    x: Tensor,
    qkv_weight: Tensor,
    qkv_offset: Tensor,
    out_weight: Tensor,
    out_offset: Tensor,
    bias: Tensor | None,
    num_heads: int,
) -> Tensor:
    """self_attention outside TorchScript, which knows no autograd functions."""
    if not is_eager_cpu(x):
        return _torchs_own(x, qkv_weight, qkv_offset, out_weight, out_offset, bias, num_heads)
    rows = ShortRowAttention.apply(x, qkv_weight, qkv_offset, out_weight, out_offset, bias, num_heads)
    return cast(Tensor, rows)


def is_eager_cpu(x: Tensor) -> bool:
    """Whether a batch is computed on a CPU as it is: not compiled, exported, traced or in lower precision."""
    return (
        x.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and x.dtype in (torch.float32, torch.float64)
        and not torch.is_autocast_enabled("cpu")
        and not torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
    )


class ShortRowAttention(torch.autograd.Function):
    """self_attention for rows that are shorter than a vector register.

    torch's softmax and its fused attention handle one row of scores after the other, which for 13 tokens takes longer
    than the matrix products. Here whole batches go through each elementwise step, the gradients of the three
    projections are summed inside their matrix products, and the mixed values are computed again in the backward pass
    instead of kept (a tenth of the training's memory for a fiftieth of its time). The bias gets no gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        qkv_weight: Tensor,
        qkv_offset: Tensor,
        out_weight: Tensor,
        out_offset: Tensor,
        bias: Tensor | None,
        num_heads: int,
    ) -> Tensor:
        """Compute rows (B T, D); see self_attention."""
        batch, tokens, width = x.shape
        scale = (width // num_heads) ** -0.5
        flat = x.reshape(-1, width)
        factors, offsets = (_scaled_queries(packed, scale) for packed in (qkv_weight, qkv_offset))
        q, k, v = (
            torch.addmm(offset, flat, factor.t()).view(batch, tokens, width)
            for offset, factor in zip(offsets.chunk(3), factors.chunk(3), strict=True)
        )
        shares = x.new_empty(num_heads, batch, tokens, tokens)
        for share, q_head, k_head in zip(shares, *(t.chunk(num_heads, 2) for t in (q, k)), strict=True):
            torch.bmm(q_head, k_head.mT, out=share)
        if bias is not None:
            shares += bias.transpose(0, 1)
        shares -= shares.amax(-1, keepdim=True)
        shares.exp_()
        shares /= shares.sum(-1, keepdim=True)
        ctx.scale = scale
        ctx.save_for_backward(x, factors, out_weight, q, k, v, shares)
        mixed = _per_head(x.new_empty(x.shape), shares, v)
        return torch.addmm(out_offset, mixed.view(-1, width), out_weight.t())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the gradients of x, the weights and their offsets."""
        x, factors, out_weight, q, k, v, shares = ctx.saved_tensors
        heads, width = shares.shape[0], x.shape[2]
        mixed = _per_head(x.new_empty(x.shape), shares, v)
        d_out_weight, d_out_offset = grad.t() @ mixed.view(-1, width), grad.sum(0)
        d_mixed = torch.mm(grad, out_weight, out=mixed.view(-1, width)).view_as(x)

        d_scores = torch.empty_like(shares)
        for d_score, d_head, v_head in zip(d_scores, d_mixed.chunk(heads, 2), v.chunk(heads, 2), strict=True):
            torch.bmm(d_head, v_head.mT, out=d_score)
        d_scores -= (d_scores * shares).sum(-1, keepdim=True)
        d_scores *= shares
        d_qkv = x.new_empty(3, *x.shape)
        _per_head(d_qkv[0], d_scores, k)
        _per_head(d_qkv[1], d_scores.mT, q)
        _per_head(d_qkv[2], shares.mT, d_mixed)

        flat = x.reshape(-1, width)
        d_x: Tensor | None = None
        d_weight, d_offset = torch.empty_like(factors), factors.new_empty(len(factors))
        for d, factor, d_w, d_o in zip(
            d_qkv.view(3, -1, width), factors.chunk(3), d_weight.chunk(3), d_offset.chunk(3), strict=True
        ):
            torch.mm(d.t(), flat, out=d_w)
            torch.sum(d, 0, out=d_o)
            d_x = torch.mm(d, factor) if d_x is None else d_x.addmm_(d, factor)
        assert d_x is not None
        d_weight, d_offset = (_scaled_queries(d, ctx.scale) for d in (d_weight, d_offset))
        return d_x.view_as(x), d_weight, d_offset, d_out_weight, d_out_offset, None, None


def _scaled_queries(packed: Tensor, scale: float) -> Tensor:
    """Copy a packed projection with the queries' third scaled."""
    scaled = packed.clone()
    scaled[: len(packed) // 3] *= scale
    return scaled


def _per_head(out: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Write left (heads, B, T, T) times the heads of right (B, T, D) into the heads of out (B, T, D)."""
    heads = len(left)
    product = out.new_empty(out.shape[0], out.shape[1], out.shape[2] // heads)
    for out_head, left_head, right_head in zip(out.chunk(heads, 2), left, right.chunk(heads, 2), strict=True):
        out_head.copy_(torch.bmm(left_head, right_head, out=product))
    return out
