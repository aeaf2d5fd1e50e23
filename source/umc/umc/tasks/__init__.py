# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Gym ids ``UMC-<Robot>-Stage<1|2>``; found by Isaac Lab through the entry point group ``isaaclab.tasks``."""

from umc.tasks.registration import register_robot
from umc.utils import patches

patches.apply()

for _robot in ("A1", "Go2", "G1", "H1", "Solo8"):
    register_robot(_robot, f"umc.tasks.{_robot.lower()}")
