# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The counter-based generator is the published one, and its numbers are what they claim to be."""

import pytest
import torch
from umc.faults.random import integers, philox, philox_pair, uniform

# Random123's kat_vectors, philox4x32 10 rounds: counter, key, first two words of the answer
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0), (0xD16CFE09, 0x94FDCCEB)),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_gives_the_published_answers(counter, key, answer):
    words = tuple(torch.tensor([word]) for word in counter)
    assert int(philox(key[0] | key[1] << 32, words)) == answer[0]
    assert tuple(int(word) for word in philox_pair(key[0] | key[1] << 32, words)) == answer


def test_uniform_fills_the_unit_interval():
    numbers = uniform(philox(7, (torch.arange(100_000), 0, 0, 0)))
    assert 0.0 <= float(numbers.min()) < 1e-3
    assert 1.0 - 1e-3 < float(numbers.max()) < 1.0
    assert float(numbers.mean()) == pytest.approx(0.5, abs=0.005)


def test_integers_reach_both_ends_equally_often():
    counts = integers(philox(7, (torch.arange(90_000), 0, 0, 0)), 2, 4).bincount(minlength=6)
    assert counts[:2].sum() + counts[5:].sum() == 0
    assert torch.allclose(counts[2:5] / 30_000, torch.ones(3), atol=0.03)
