# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Running normalisation that learns from living sensors only."""

from __future__ import annotations

import torch
from torch import Tensor, nn

EPSILON = 1e-2
"""Added to the standard deviation, as in rsl_rl's EmpiricalNormalization."""


class MaskedNormalization(nn.Module):
    """Normalization, column by column, by the running mean and the running standard deviation plus epsilon.

    Each of the dim columns keeps its own count: columns of masked joints and values that are not finite are left out.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.epsilon = EPSILON
        self.mean: Tensor
        self.var: Tensor
        self.count: Tensor
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("var", torch.ones(dim))
        self.register_buffer("count", torch.zeros(dim, dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise values (B, D)."""
        return (x - self.mean) / (self.var.sqrt() + self.epsilon)

    @torch.jit.unused
    @torch.no_grad()
    def update(self, x: Tensor, dead: Tensor | None = None) -> None:
        """Update the statistics from values (B, D), in training mode only; dead (B, D) bool marks values to leave out.

        Under torch.distributed all ranks use all batches and stay equal.
        """
        if not self.training:
            return
        alive = torch.isfinite(x) if dead is None else torch.isfinite(x) & ~dead
        count = alive.sum(0)
        total = torch.where(alive, x, 0.0).sum(0)
        _sum_over_ranks(count, total)
        mean = total / count.clamp(min=1)
        squares = torch.where(alive, x - mean, 0.0).square().sum(0)
        _sum_over_ranks(squares)
        # Two sets of samples joined (Chan et al., 1979); where count is 0 a column keeps what it knew.
        share = count / (self.count + count).clamp(min=1)
        shift = mean - self.mean
        var = squares / count.clamp(min=1) + (1.0 - share) * shift.square()
        self.var.add_(share * (var - self.var))
        self.mean.add_(share * shift)
        self.count.add_(count)


def _sum_over_ranks(*tensors: Tensor) -> None:
    """Add up each tensor over the ranks of torch.distributed, in place."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        for tensor in tensors:
            torch.distributed.all_reduce(tensor)
