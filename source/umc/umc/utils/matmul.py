# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products by the faster of PyTorch's two libraries, where both compute in float32.

Learning is most of a training on a CPU, and nearly all of it is matrix products. PyTorch gives those of float32 to
MKL, which does not use the AVX-512 of AMD's CPUs (``MKL_VERBOSE=1`` names a generic processor there); oneDNN does
(``ONEDNN_VERBOSE=1``: ``brg_matmul:avx512_core`` of f32) and is up to twice as fast (``benchmarks/models.py``). On
Intel's CPUs MKL is the faster one for the transformer, so they keep it. The only switch that brings products to oneDNN
also allows it to round factors to bfloat16. So it is tried first, and left off where the result is not float32's.

A training may ask for bfloat16 (``agent.bfloat16``): a CPU with AMX then updates an MLP in half the time.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path

import torch

from umc.utils.errors import UmcError

ONEDNN = "bf16"
"""Setting of PyTorch's that brings float32 products to oneDNN."""

PROBE_SIZE = 256
"""Rows and columns of the product that is tried: as large as those of the networks."""

FLOAT32_ERROR = 1.0e-5
"""Largest difference in the probe's result as a share of its largest entry: sums in another order make 1e-6, factors in
bfloat16 5e-4."""

CPU_INFO = Path("/proc/cpuinfo")


@contextlib.contextmanager
def onednn_matmul(rounded: bool = False) -> Iterator[bool]:
    """Let oneDNN multiply float32 matrices on the CPU, unless it would round them; yield whether it does.

    Args:
        rounded: Whether it may round them.
    """
    matmul = torch.backends.mkldnn.matmul
    before = matmul.fp32_precision
    if fast := rounded or onednn_is_exact():
        matmul.fp32_precision = ONEDNN
    try:
        yield fast
    finally:
        matmul.fp32_precision = before


def matmul_backend(
    device: str, compile_mode: str | None, bfloat16: bool = False
) -> contextlib.AbstractContextManager[object]:
    """Return a context with oneDNN's products where they help, not on a GPU nor on an Intel CPU, or in bfloat16.

    Meanwhile ``torch.get_float32_matmul_precision``, which torch.compile asks, raises over old and new switches.
    """
    intel = CPU_INFO.is_file() and "GenuineIntel" in CPU_INFO.read_text()
    helps = device == "cpu" and compile_mode is None and not intel
    return onednn_matmul(rounded=bfloat16) if helps or bfloat16 else contextlib.nullcontext()


def check_bfloat16(device: str, compile_mode: str | None) -> None:
    """Raise UmcError if matrices cannot be multiplied in bfloat16."""
    if device != "cpu":
        raise UmcError(f"agent.bfloat16 is for a CPU, not for {device}; leave it out")
    if compile_mode is not None:
        raise UmcError("agent.bfloat16 and agent.torch_compile_mode exclude each other; leave one of them out")
    if onednn_is_exact():
        raise UmcError("this CPU has no instructions for bfloat16 (AMX or AVX512_BF16); leave agent.bfloat16 out")


@functools.cache
def onednn_is_exact() -> bool:
    """Return whether oneDNN multiplies float32 matrices in float32 on this CPU; tried once per process."""
    exact = _probe()
    with onednn_matmul(rounded=True):
        error = (_probe() - exact).abs().max()
    return bool(error <= FLOAT32_ERROR * exact.abs().max())


def _probe() -> torch.Tensor:
    """Return the same product every time, without random numbers."""
    numbers = torch.arange(PROBE_SIZE * PROBE_SIZE, dtype=torch.float32)
    factor = torch.sin(numbers).reshape(PROBE_SIZE, PROBE_SIZE)
    return factor @ factor.T
