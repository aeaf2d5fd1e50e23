# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The running statistics come from living, finite values only."""

from __future__ import annotations

import torch
from umc.models import MaskedNormalization


def test_statistics_of_many_batches_are_those_of_all_living_values():
    torch.manual_seed(0)
    normalizer = MaskedNormalization(3)
    values = 5.0 + torch.tensor([1.0, 2.0, 3.0]) * torch.randn(400, 3)
    dead = torch.rand(400, 3) < 0.4
    reported = values.masked_fill(dead, 0.0)  # a dead sensor reads exactly 0
    for part, part_dead in zip(reported.split(57), dead.split(57), strict=True):
        normalizer.update(part, part_dead)
    for column in range(3):
        living = values[~dead[:, column], column]
        assert normalizer.count[column] == len(living)
        torch.testing.assert_close(normalizer.mean[column], living.mean())
        torch.testing.assert_close(normalizer.var[column], living.var(unbiased=False))


def test_nan_and_a_column_that_is_always_dead_leave_the_rest_alone():
    torch.manual_seed(0)
    normalizer = MaskedNormalization(2)
    values = torch.randn(100, 2)
    values[3, 0], values[4, 0], values[:, 1] = torch.nan, torch.inf, torch.nan
    normalizer.update(values)
    normalizer.update(torch.full((5, 2), torch.nan), torch.ones(5, 2, dtype=torch.bool))
    living = values[torch.isfinite(values[:, 0]), 0]
    torch.testing.assert_close(normalizer.mean, torch.stack([living.mean(), torch.tensor(0.0)]))
    assert normalizer.count.tolist() == [98, 0]
    assert normalizer.var[1] == 1.0


def test_evaluation_does_not_learn():
    normalizer = MaskedNormalization(2).eval()
    normalizer.update(torch.randn(10, 2))
    assert normalizer.count.tolist() == [0, 0]


def test_normalised_values_have_unit_scale():
    torch.manual_seed(0)
    normalizer = MaskedNormalization(2)
    values = torch.tensor([10.0, -3.0]) + torch.tensor([2.0, 5.0]) * torch.randn(5000, 2)
    normalizer.update(values)
    normalised = normalizer(values)
    assert normalised.mean(0).abs().max() < 1e-2
    assert (normalised.std(0) - 1.0).abs().max() < 2e-2
