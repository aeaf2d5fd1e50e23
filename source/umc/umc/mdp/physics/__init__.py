# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How faults get into the engines: one limiter per kind of joint fault, and one governor for Newton."""

from .interim import JointLimitWriter
from .limiters import EffortLimiter, JointLimiter, PositionLimiter, VelocityLimiter
from .window import rom_window
from .writer import JointFaultWriter

__all__ = [
    "EffortLimiter",
    "JointFaultWriter",
    "JointLimitWriter",
    "JointLimiter",
    "PositionLimiter",
    "VelocityLimiter",
    "rom_window",
]
