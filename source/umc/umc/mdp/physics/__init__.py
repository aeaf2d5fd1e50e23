# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Writes faults into the engines as limits, damping and friction of joints, and restores them to the bit."""

from umc.mdp.physics.physx_joints import prepare_robot
from umc.mdp.physics.writer import JointLimitWriter
