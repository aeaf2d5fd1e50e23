# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What joints can do: the quantities that joint faults lower and engines hold."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass
class JointLimits:
    """Limits of E envs with J joints; every tensor's shape is (E, J)."""

    lower: torch.Tensor
    """Lowest position [rad]."""
    upper: torch.Tensor
    """Highest position [rad]."""
    effort: torch.Tensor
    """Largest torque of the motor [N*m]."""
    velocity: torch.Tensor
    """Largest speed [rad/s]."""
