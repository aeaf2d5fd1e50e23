# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""An encoder block over a dozen tokens on a CPU, where torch's own attention is slow for such short sequences."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

ATEN: Any = torch.ops.aten


def is_eager_cpu(x: Tensor) -> bool:
    """Return whether a batch is computed on a CPU as it is: not compiled, exported, traced or in lower precision."""
    return (
        x.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and x.dtype in (torch.float32, torch.float64)
        and not torch.is_autocast_enabled("cpu")
        and not torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
    )


class ShortSequenceBlock(torch.autograd.Function):
    """Post-norm encoder block with ReLU for short sequences of tokens; see :class:`umc.models.blocks.EncoderBlock`.

    torch's softmax and its fused attention handle one row of scores after the other, which for 13 tokens takes longer
    than the matrix products. Here whole batches go through each elementwise step, heads lie one after the other so that
    their products need no copies, and all but a few results are written over those that are no longer needed.

    A softmax does not change with the keys' offset, whose gradient is 0. Its rows sum to 1, so that the offset of the
    values is added to the projected mix instead. The bias gets no gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, projected: Tensor, bias: Tensor | None, num_heads: int, eps: float, *weights: Tensor
    ) -> Tensor:
        """Compute tokens (B, T, D) from tokens (B, T, D) and their queries, keys and values (B, T, 3 D) without offset.

        The weights are the offset of queries, keys and values, then weight and offset of the projection of the mix, of
        the first norm, of the two layers of the feed-forward network and of the second norm.
        """
        qkv_offset, out_weight, out_offset, *norm1, weight1, offset1, weight2, offset2 = weights[:-2]
        norm2 = weights[-2:]
        batch, tokens, width = x.shape
        rows = x.reshape(-1, width)
        qkv = projected.view(batch, tokens, 3, num_heads, -1).permute(2, 3, 0, 1, 4).contiguous()
        q_offset, _, v_offset = qkv_offset.chunk(3)
        qkv[0] += q_offset.view(num_heads, 1, 1, -1)
        q, k, v = qkv.flatten(1, 2)

        shares = torch.bmm(q, k.mT).mul_((width // num_heads) ** -0.5)
        by_head = shares.view(num_heads, batch, tokens, tokens)
        if bias is not None:
            by_head += bias.transpose(0, 1)
        shares -= shares.amax(-1, keepdim=True)
        shares.exp_()
        shares /= shares.sum(-1, keepdim=True)
        mixed = torch.bmm(shares, v).view(num_heads, batch, tokens, -1).permute(1, 2, 0, 3).reshape(-1, width)

        update = torch.mm(mixed, out_weight.t()).add_(torch.addmv(out_offset, out_weight, v_offset)).add_(rows)
        middle, *moments1 = torch.native_layer_norm(update, [width], norm1[0], norm1[1], eps)
        hidden = torch.mm(middle, weight1.t()).add_(offset1).relu_()
        update2 = torch.mm(hidden, weight2.t()).add_(offset2).add_(middle)
        result, *moments2 = torch.native_layer_norm(update2, [width], norm2[0], norm2[1], eps)
        ctx.num_heads, ctx.projected_stride = num_heads, projected.stride()
        ctx.save_for_backward(x, qkv, shares, mixed, update, *moments1, middle, hidden, update2, *moments2, *weights)
        return result.view_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the gradients of the tokens and the weights."""
        x, qkv, shares, mixed, update, mean1, scale1, middle, hidden, update2, mean2, scale2 = ctx.saved_tensors[:12]
        qkv_offset, out_weight, _, *norm1, weight1, _, weight2, _, norm2_weight, norm2_offset = ctx.saved_tensors[12:]
        batch, tokens, width = x.shape
        heads = ctx.num_heads
        ones = x.new_ones(1, batch * tokens)  # a product with it sums rows faster than torch.sum
        every = [True] * 3

        d, *d_norm2 = ATEN.native_layer_norm_backward(
            grad.reshape(-1, width), update2, [width], mean2, scale2, norm2_weight, norm2_offset, every
        )
        d_hidden = torch.mm(d, weight2)
        ATEN.threshold_backward(d_hidden, hidden, 0, grad_input=d_hidden)
        d_feedforward = d_hidden.t() @ middle, (ones @ d_hidden)[0], d.t() @ hidden, (ones @ d)[0]
        d.addmm_(d_hidden, weight1)

        d, *d_norm1 = ATEN.native_layer_norm_backward(d, update, [width], mean1, scale1, *norm1, every)
        d_out_offset = (ones @ d)[0]
        v_offset = qkv_offset.chunk(3)[2]
        d_out_weight = torch.addr(d.t() @ mixed, d_out_offset, v_offset)
        d_mixed = torch.mm(d, out_weight).view(batch, tokens, heads, -1).permute(2, 0, 1, 3).flatten(0, 1)

        q, k, v = qkv.flatten(1, 2)
        d_scores = torch.bmm(d_mixed, v.mT)
        d_scores -= (d_scores * shares).sum(-1, keepdim=True)
        d_scores *= shares
        d_scores *= (width // heads) ** -0.5
        d_qkv = torch.empty_like(qkv)
        d_q, d_k, d_v = d_qkv.flatten(1, 2)
        torch.bmm(d_scores, k, out=d_q)
        torch.bmm(d_scores.mT, q, out=d_k)
        torch.bmm(shares.mT, d_mixed, out=d_v)
        d_projected = x.new_empty_strided((batch, tokens, 3 * width), ctx.projected_stride)
        d_projected.view(batch, tokens, 3, heads, -1).copy_(d_qkv.permute(2, 3, 0, 1, 4))
        d_qkv_offset = torch.cat(
            [d_qkv[0].sum((1, 2)).flatten(), torch.zeros_like(v_offset), d_out_offset @ out_weight]
        )
        d_attention = d_qkv_offset, d_out_weight, d_out_offset
        return d.view_as(x), d_projected, None, None, None, *d_attention, *d_norm1, *d_feedforward, *d_norm2
