# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Gym ids ``UMC-<Robot>-Stage<1|2>``; found by Isaac Lab through the entry point group ``isaaclab.tasks``."""

from umc.tasks import a1, g1, h1, solo8
from umc.utils import patches

patches.apply()

__all__ = ["a1", "g1", "h1", "solo8"]
