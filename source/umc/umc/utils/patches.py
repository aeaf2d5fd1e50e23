# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Patches for faults of Isaac Lab 3.0.0 that stop UMC; each says what, why, and when it can go."""

import warp as wp

from umc.utils.console import without_gpu_remark


def patch_pinned_memory() -> None:
    """Let ``isaaclab_ov`` allocate its staging buffers on a machine without CUDA.

    What: ``isaaclab_ov`` asks Warp for page-locked host memory (``wp.zeros(..., pinned=True)``).
    Why: page-locked memory belongs to the CUDA driver; without one Warp raises, so the ovphysx engine cannot start.
    The patch: ordinary memory serves where no GPU reads it. Machines with CUDA are left alone.
    When it can go: once ``isaaclab_ov`` asks ``wp.is_cuda_available()`` before it pins.
    """
    level, wp.config.log_level = wp.config.log_level, wp.LOG_WARNING  # without Warp's banner
    with without_gpu_remark():
        wp.init()
    wp.config.log_level = level
    if wp.is_cuda_available():
        return
    cpu = wp.get_device("cpu")
    cpu.pinned_allocator = cpu.default_allocator


def apply() -> None:
    """Apply every patch; safe to call more than once."""
    patch_pinned_memory()
