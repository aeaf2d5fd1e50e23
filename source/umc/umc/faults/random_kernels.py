# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
# type: ignore
# (Warp compiles these functions; its array types mean something else to a Python type checker.)
"""Philox as one Warp kernel: on a GPU the operations of :mod:`umc.faults.random` are over a hundred small launches."""

import torch
import warp as wp

LOW = wp.constant(wp.uint64(0xFFFFFFFF))
MULTIPLIER_0 = wp.constant(wp.uint64(0xD2511F53))
MULTIPLIER_1 = wp.constant(wp.uint64(0xCD9E8D57))
WEYL_0 = wp.constant(wp.uint64(0x9E3779B9))
WEYL_1 = wp.constant(wp.uint64(0xBB67AE85))
ROUNDS = wp.constant(10)
HALF = wp.constant(wp.uint64(32))


@wp.kernel(enable_backward=False)
def draw_words(
    seed: wp.array2d[wp.int64],
    first: wp.array2d[wp.int64],
    second: wp.array2d[wp.int64],
    third: wp.array2d[wp.int64],
    fourth: wp.array2d[wp.int64],
    words: wp.array3d[wp.int64],
) -> None:
    """Write the first two of Philox4x32-10's four words of each key and counter."""
    row, column = wp.tid()
    key = wp.uint64(seed[row, column])
    key0 = key & LOW
    key1 = key >> HALF
    c0 = wp.uint64(first[row, column])
    c1 = wp.uint64(second[row, column])
    c2 = wp.uint64(third[row, column])
    c3 = wp.uint64(fourth[row, column])
    for _ in range(ROUNDS):
        product0 = c0 * MULTIPLIER_0
        product1 = c2 * MULTIPLIER_1
        c0 = (product1 >> HALF) ^ c1 ^ key0
        c1 = product1 & LOW
        c2 = (product0 >> HALF) ^ c3 ^ key1
        c3 = product0 & LOW
        key0 = (key0 + WEYL_0) & LOW
        key1 = (key1 + WEYL_1) & LOW
    words[0, row, column] = wp.int64(c0)
    words[1, row, column] = wp.int64(c1)


def philox_words(*given: torch.Tensor) -> torch.Tensor:
    """Return the first two words of a seed and the four words of a counter, int64 of shapes (N, M); shape (2, N, M)."""
    wp.init()
    rows, columns = given[0].shape
    words = torch.empty((2, rows, columns), dtype=torch.int64, device=given[0].device)
    if words.numel():
        inputs = [wp.from_torch(tensor) for tensor in given]
        wp.launch(
            draw_words, dim=(rows, columns), inputs=inputs, outputs=[wp.from_torch(words)], device=inputs[0].device
        )
    return words
