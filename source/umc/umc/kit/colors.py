# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Which colour shows which fault, in the panel and in the viewport."""

from __future__ import annotations

from collections.abc import Sequence

from umc.rendering.colors import COMMAND_COLOR, FAULT_COLOR, SENSOR_COLOR, Color

LEGEND: tuple[tuple[str, Color], ...] = (
    ("joint", FAULT_COLOR),
    ("sensor", SENSOR_COLOR),
    ("command", COMMAND_COLOR),
)
"""What the colours mean."""


def color_of(kinds: Sequence[str]) -> Color | None:
    """What colour shows a joint's faults.

    Args:
        kinds: Names of the kinds of faults that it has.

    Returns:
        The colour of the worst of them: a broken joint before a lying sensor before lost commands. None if there is
        no fault.
    """
    from umc.faults import CommandKind, JointKind, SensorKind, find_kind

    found = [find_kind(name) for name in kinds]
    for base, color in ((JointKind, FAULT_COLOR), (SensorKind, SENSOR_COLOR), (CommandKind, COMMAND_COLOR)):
        if any(isinstance(kind, base) for kind in found):
            return color
    return None


def packed(color: Color, alpha: float = 1.0) -> int:
    """A colour as styles of omni.ui take it.

    Args:
        color: The colour.
        alpha: Opacity in [0, 1].

    Returns:
        0xAABBGGRR.
    """
    red, green, blue, opacity = (round(255 * value) for value in (*color, alpha))
    return opacity << 24 | blue << 16 | green << 8 | red
