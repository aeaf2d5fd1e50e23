# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Colors of faults in the panel and in the viewport."""

from __future__ import annotations

from collections.abc import Sequence

from umc.rendering.colors import COMMAND_COLOR, FAULT_COLOR, SENSOR_COLOR, Color

LEGEND: tuple[tuple[str, Color], ...] = (
    ("joint", FAULT_COLOR),
    ("sensor", SENSOR_COLOR),
    ("command", COMMAND_COLOR),
)
"""Meaning of the colors."""


def color_of(kinds: Sequence[str]) -> Color | None:
    """Return the color of the worst kind: a joint fault before a sensor fault before a command fault; None for none."""
    from umc.faults import CommandKind, JointKind, SensorKind, find_kind

    found = [find_kind(name) for name in kinds]
    for base, color in ((JointKind, FAULT_COLOR), (SensorKind, SENSOR_COLOR), (CommandKind, COMMAND_COLOR)):
        if any(isinstance(kind, base) for kind in found):
            return color
    return None


def packed(color: Color, alpha: float = 1.0) -> int:
    """Convert a color and an opacity in [0, 1] to 0xAABBGGRR, as styles of omni.ui expect."""
    red, green, blue, opacity = (round(255 * value) for value in (*color, alpha))
    return opacity << 24 | blue << 16 | green << 8 | red
