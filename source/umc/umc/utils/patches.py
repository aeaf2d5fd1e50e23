# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Patches for two faults of Isaac Lab 3.0.0's ovphysx engine on machines without CUDA."""

import ctypes
import sys

import warp as wp

from umc.utils.console import without_gpu_remark

PR_SET_TIMERSLACK = 29
"""Linux: number of the prctl call that sets how late sleeps of this thread, and of those it starts, may end [ns]."""

TIMER_SLACK_NS = 1_000_000


def apply() -> None:
    """Let ``isaaclab_ov`` run, and let it sleep, on a machine without CUDA. Machines with CUDA are left alone."""
    level, wp.config.log_level = wp.config.log_level, wp.LOG_WARNING  # without Warp's banner
    with without_gpu_remark():
        wp.init()
    wp.config.log_level = level
    if wp.is_cuda_available():
        return
    _allocate_without_cuda()
    _sleep_longer()


def _allocate_without_cuda() -> None:
    """Let ``isaaclab_ov`` allocate its staging buffers.

    What: ``isaaclab_ov`` asks Warp for page-locked host memory (``wp.zeros(..., pinned=True)``).
    Why: page-locked memory belongs to the CUDA driver; without one Warp raises, so the ovphysx engine cannot start.
    The patch: ordinary memory serves where no GPU reads it.
    When it can go: once ``isaaclab_ov`` asks ``wp.is_cuda_available()`` before it pins.
    """
    cpu = wp.get_device("cpu")
    cpu.pinned_allocator = cpu.default_allocator


def _sleep_longer() -> None:
    """Let threads that start from now on sleep a millisecond where they ask for less.

    What: a thread of ovphysx that cooks meshes (``libcarb.ujitsoagent``) looks for work after each 1 us of sleep.
    Why: it costs a quarter of a core as long as the process lives (``benchmarks/idle.py``), most of it in the kernel.
    The patch: the kernel may let sleeps end up to a millisecond late; other waits have no part in it.
    When it can go: once that thread waits for its work.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS)
