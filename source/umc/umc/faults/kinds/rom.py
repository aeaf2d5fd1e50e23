# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Less range of motion: something blocks the joint on either side."""

from __future__ import annotations

from dataclasses import replace

import torch

from umc.faults.kinds import register_kind
from umc.faults.kinds.base import JointKind, Onset
from umc.faults.limits import JointLimits


@register_kind
class RangeOfMotion(JointKind):
    """The joint moves in a window that holds its position at onset; severity is the part of its range that is left."""

    name = "rom"
    unit = "[-]"
    default = None
    smallest, largest = 0.0, 1.0

    def healthy(self, nominal: JointLimits | None) -> float:
        """See the base class."""
        return 1.0

    def whole(self, nominal: JointLimits | None) -> float:
        """See the base class."""
        return 1.0

    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: Onset) -> JointLimits:
        """See the base class."""
        lower, upper = rom_window(limits.lower, limits.upper, onset.position, severity, onset.placement)
        return replace(limits, lower=torch.where(on, lower, limits.lower), upper=torch.where(on, upper, limits.upper))


def rom_window(
    lower: torch.Tensor, upper: torch.Tensor, position: torch.Tensor, fraction: torch.Tensor, placement: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """A window inside the limits that holds the joint's position, so that switching it on kicks nothing.

    A joint that is beyond a limit already gets the window that ends at this limit, and is pushed no harder than before.

    Args:
        lower: Lower limit [rad]. Shape is (...), as for all.
        upper: Upper limit [rad].
        position: Joint position [rad].
        fraction: Width of the window over that of the limits [-].
        placement: 0 for the lowest window that holds the position, towards 1 for the highest.

    Returns:
        Lower and upper end of the window [rad].
    """
    width = fraction * (upper - lower)
    held = torch.minimum(torch.maximum(position, lower), upper)
    lowest, highest = torch.maximum(held - width, lower), torch.minimum(held, upper - width)
    start = torch.maximum(lowest + placement * (highest - lowest), lower)
    return torch.minimum(start, held), torch.maximum(torch.minimum(start + width, upper), held)
