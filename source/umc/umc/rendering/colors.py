# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Colors of faulty joints, the same in films, in the viewer and in Isaac Sim."""

Color = tuple[float, float, float]
"""Red, green, blue in [0, 1]."""

FAULT_COLOR: Color = (0.86, 0.13, 0.11)
"""A joint whose motor or range of motion is faulty."""

SENSOR_COLOR: Color = (0.95, 0.62, 0.05)
"""A joint with a faulty sensor alone."""

COMMAND_COLOR: Color = (0.25, 0.50, 0.95)
"""A joint whose commands get lost or come late, and nothing else."""


def rgb(color: Color) -> tuple[int, int, int]:
    """Convert a color to red, green, blue in 0 to 255."""
    red, green, blue = (round(255 * value) for value in color)
    return red, green, blue
