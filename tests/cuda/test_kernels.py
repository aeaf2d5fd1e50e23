# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Our Warp kernels compile for GPUs of every generation since Turing, and draw the words that torch draws."""

from __future__ import annotations

import pytest
import torch
import warp as wp
from umc.faults import random, random_kernels
from umc.mdp.physics import newton_kernels

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
"""Turing, A100, RTX 30, RTX 40, H100, B200, RTX 50."""

KERNELS = {
    newton_kernels: ("bound_speeds", "write_position_limits", "write_effort_limits"),
    random_kernels: ("draw_words",),
}


@pytest.mark.slow
@pytest.mark.parametrize("module", KERNELS)
@pytest.mark.parametrize(("architecture", "use_ptx"), [(75, True), *((one, False) for one in ARCHITECTURES)])
def test_kernels_compile(module, architecture, use_ptx, tmp_path):
    (binary,) = wp.compile_aot_module(module, arch=architecture, module_dir=tmp_path, use_ptx=use_ptx)
    assert binary.suffix == (".ptx" if use_ptx else ".cubin")
    content = binary.read_bytes()
    if use_ptx:
        assert f".target sm_{architecture}".encode() in content
    for kernel in KERNELS[module]:
        assert f"{kernel}_".encode() in content, kernel


ENVS, STREAMS, JOINTS = torch.arange(5)[:, None], torch.tensor([3, 2**32 - 1, 7, 0]), torch.arange(4)


@pytest.mark.parametrize(
    ("seed", "counter"),
    [
        (-5, (ENVS, ENVS * 2**20, STREAMS, JOINTS)),  # of a plan
        (ENVS * 2**40 - 7, (ENVS, ENVS, 2**32 - 1, ENVS * 12 + JOINTS)),  # of a step of cases
        (2**63 - 1, (ENVS, ENVS, 5, torch.arange(3)[None, :])),
        (1, (ENVS[:0], ENVS[:0], 5, JOINTS)),  # no env is reset
        (2**64 + 2**63 + 3, (ENVS, ENVS, 5, JOINTS)),
        (-(2**63) - 1, (ENVS, ENVS, 5, JOINTS)),
    ],
)
def test_the_kernel_draws_the_words_of_torch(seed, counter):
    wanted = torch.broadcast_tensors(*random.philox_pair(seed, counter))
    for found, word in zip(random._on_gpu(torch.device("cpu"), seed, *counter), wanted, strict=True):
        assert torch.equal(found, word)
