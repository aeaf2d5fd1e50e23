# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A patch for a fault of Isaac Lab 3.0.0 that stops UMC."""

import warp as wp

from umc.utils.console import without_gpu_remark


def apply() -> None:
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
