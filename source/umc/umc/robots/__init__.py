# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Robots: USD and MJCF files, start pose, actuators, order of joints and bodies."""

from umc.robots.a1 import A1_BODIES, A1_CFG, A1_JOINTS
from umc.robots.g1 import G1_BODIES, G1_CFG, G1_JOINTS
from umc.robots.go2 import GO2_BODIES, GO2_CFG, GO2_JOINTS
from umc.robots.h1 import H1_BODIES, H1_CFG, H1_JOINTS
from umc.robots.solo8 import SOLO8_BODIES, SOLO8_CFG, SOLO8_JOINTS
