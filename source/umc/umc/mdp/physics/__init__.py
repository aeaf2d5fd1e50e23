# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How faults get into the engines: limits on position, torque and speed of joints, held and taken back to the bit."""

from umc.mdp.physics.settings import prepare_robot
from umc.mdp.physics.writer import JointLimitWriter

__all__ = ["JointLimitWriter", "prepare_robot"]
