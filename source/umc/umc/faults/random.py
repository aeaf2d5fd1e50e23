# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers without a state: each is a function of (seed, counter), the same on every device and in any order.

Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC11), in integer operations that torch
carries out alike on CPU and CUDA. On CUDA a Warp kernel does so in one launch.
"""

from __future__ import annotations

import torch

_WORD = 0xFFFFFFFF
_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
"""Rounds, multipliers and key increments of Philox4x32-10."""

Word = torch.Tensor | int
"""A number in [0, 2^32), or a seed: an int64 tensor or a Python integer."""


def philox(seed: Word, counter: tuple[Word, Word, Word, Word]) -> torch.Tensor:
    """Return the first of four random words, int64 in [0, 2^32); see :func:`philox_pair`."""
    return philox_pair(seed, counter)[0]


def philox_pair(seed: Word, counter: tuple[Word, Word, Word, Word]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the first two of four random words, int64 in [0, 2^32), of a key and a counter.

    Seed (its lowest 64 bits count) and the four words are broadcast; at least one is a tensor.
    """
    device = next(word.device for word in (seed, *counter) if isinstance(word, torch.Tensor))
    if device.type == "cuda":
        return _on_gpu(device, seed, *counter)
    c0, c1, c2, c3 = counter
    key0, key1 = seed & _WORD, (seed >> 32) & _WORD
    for _ in range(_ROUNDS):
        high0, low0 = _multiply(c0, _MULTIPLIERS[0])
        high1, low1 = _multiply(c2, _MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ key0, low1, high0 ^ c3 ^ key1, low0
        key0, key1 = (key0 + _WEYL[0]) & _WORD, (key1 + _WEYL[1]) & _WORD
    return torch.as_tensor(c0), torch.as_tensor(c1)


def _on_gpu(device: torch.device, *words: Word) -> tuple[torch.Tensor, torch.Tensor]:
    """Seed and counter by the kernel, which takes tensors of one shape with two dimensions."""
    from umc.faults.random_kernels import philox_words  # slow to import

    whole = [
        word if isinstance(word, torch.Tensor) else torch.full((), seed_word(word), device=device) for word in words
    ]
    shaped = torch.broadcast_tensors(*whole)
    shape = shaped[0].shape
    first, second = philox_words(*(word.reshape(-1, shape[-1] if shape else 1) for word in shaped)).unbind(0)
    return first.reshape(shape), second.reshape(shape)


def _multiply(a: Word, b: int) -> tuple[Word, Word]:
    """High and low word of a 64-bit product. An int64 wraps around, which leaves these words' bits as they are."""
    product = a * b
    return (product >> 32) & _WORD, product & _WORD


def seed_word(seed: int) -> int:
    """Return the number in [-2^63, 2^63) that has a seed's lowest 64 bits, and thus its random numbers."""
    return (seed + 2**63) % 2**64 - 2**63


def uniform(words: torch.Tensor) -> torch.Tensor:
    """Turn random words into float32 numbers in [0, 1), exact multiples of 2^-24."""
    return (words >> 8).to(torch.float32) * 2.0**-24


def integers(words: torch.Tensor, low: int, high: int) -> torch.Tensor:
    """Turn random words into int64 numbers in [low, high]."""
    return low + ((words * (high - low + 1)) >> 32)
