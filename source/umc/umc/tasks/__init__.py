# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Gym ids ``UMC-<Robot>-Stage<1|2>``; found by Isaac Lab through the entry point group ``isaaclab.tasks``."""

from umc import compat

from . import a1, g1, h1, solo8

compat.apply()

__all__ = ["a1", "g1", "h1", "solo8"]
