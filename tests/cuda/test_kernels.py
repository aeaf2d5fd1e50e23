# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Our Warp kernels compile for GPUs of every generation since Turing; no driver is needed."""

from __future__ import annotations

import pytest
import warp as wp
from umc.mdp.physics import newton_kernels

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
"""Turing, A100, RTX 30, RTX 40, H100, B200, RTX 50."""

KERNELS = ("bound_speeds", "write_position_limits", "write_effort_limits")


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "use_ptx"), [(75, True), *((one, False) for one in ARCHITECTURES)])
def test_kernels_compile(architecture, use_ptx, tmp_path):
    (binary,) = wp.compile_aot_module(newton_kernels, arch=architecture, module_dir=tmp_path, use_ptx=use_ptx)
    assert binary.suffix == (".ptx" if use_ptx else ".cubin")
    content = binary.read_bytes()
    if use_ptx:
        assert f".target sm_{architecture}".encode() in content
    for kernel in KERNELS:
        assert f"{kernel}_".encode() in content, kernel
