# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Self-attention over a dozen tokens on a CPU, where torch's own is slow for such short rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def is_eager_cpu(x: Tensor) -> bool:
    """Return whether a batch is computed on a CPU as it is: not compiled, exported, traced or in lower precision."""
    return (
        x.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and x.dtype in (torch.float32, torch.float64)
        and not torch.is_autocast_enabled("cpu")
        and not torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
    )


class ShortRowAttention(torch.autograd.Function):
    """Self-attention for short rows of tokens: projections to queries, keys and values, mix, projection of the mix.

    torch's softmax and its fused attention handle one row of scores after the other, which for 13 tokens takes longer
    than the matrix products. Here whole batches go through each elementwise step, the gradients of the three
    projections are summed inside their matrix products, and the mixed values are computed again in the backward pass
    instead of kept (a tenth of the training's memory for a fiftieth of its time). The bias gets no gradient.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor | None, num_heads: int, *projections: Tensor) -> Tensor:
        """Compute rows (B T, D) from tokens (B, T, D); see :meth:`umc.models.blocks.EncoderBlock.attend`.

        The projections are weight (3 D, D) and offset (3 D) of queries, keys and values, then weight (D, D) and offset
        (D) of the mix.
        """
        qkv_weight, qkv_offset, out_weight, out_offset = projections
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
        """Compute the gradients of the tokens and the projections."""
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
        return d_x.view_as(x), None, None, d_weight, d_offset, d_out_weight, d_out_offset


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
