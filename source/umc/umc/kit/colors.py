# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Colours of faulty joints, in the panel and in the viewport."""

from __future__ import annotations

from collections.abc import Sequence

Color = tuple[float, float, float]
"""Red, green, blue in [0, 1]."""

FAULT_COLOR: Color = (0.86, 0.13, 0.11)
"""A joint whose motor or range of motion is broken; as in films (umc.evaluation.picture), which a test checks."""

SENSOR_COLOR: Color = (0.95, 0.62, 0.05)
"""A joint whose sensor alone lies; likewise."""

COMMAND_COLOR: Color = (0.25, 0.50, 0.95)
"""A joint whose commands get lost or come late, and nothing else."""

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
