# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The counter-based generator is the published one."""

import pytest
import torch
from umc.faults.random import philox, philox_pair

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
