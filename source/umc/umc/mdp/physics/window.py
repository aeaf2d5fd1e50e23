# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What is left of a joint's range of motion."""

from __future__ import annotations

import torch


def rom_window(
    limits: torch.Tensor, position: torch.Tensor, fraction: torch.Tensor, placement: torch.Tensor
) -> torch.Tensor:
    """A window inside the limits that holds the joint's position, so that switching it on kicks nothing.

    A joint that is beyond a limit already gets the window that ends at this limit, and is pushed no harder than before.

    Args:
        limits: Lower and upper limit [rad]. Shape is (..., 2).
        position: Joint position [rad]. Shape is (...).
        fraction: Width of the window over that of the limits [-]. Shape is (...).
        placement: 0 for the lowest window that holds the position, towards 1 for the highest. Shape is (...).

    Returns:
        Lower and upper end of the window [rad]. Shape is (..., 2).
    """
    lower, upper = limits.unbind(-1)
    width = fraction * (upper - lower)
    held = torch.minimum(torch.maximum(position, lower), upper)
    lowest, highest = torch.maximum(held - width, lower), torch.minimum(held, upper - width)
    start = torch.maximum(lowest + placement * (highest - lowest), lower)
    return torch.stack((torch.minimum(start, held), torch.maximum(torch.minimum(start + width, upper), held)), dim=-1)
