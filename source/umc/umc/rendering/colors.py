# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Colors of faulty joints and the links that get them, the same in films, in the viewer and in Isaac Sim."""

from collections.abc import Callable, Mapping, Sequence

Color = tuple[float, float, float]
"""Red, green, blue in [0, 1]."""

FAULT_COLOR: Color = (0.86, 0.13, 0.11)
"""A joint whose motor or range of motion is faulty."""

SENSOR_COLOR: Color = (0.95, 0.62, 0.05)
"""A joint with a faulty sensor alone."""

COMMAND_COLOR: Color = (0.25, 0.50, 0.95)
"""A joint whose commands get lost or come late, and nothing else."""


def color_of(kinds: Sequence[str]) -> Color | None:
    """Return the color of the worst kind: a joint fault before a sensor fault before a command fault; None for none."""
    from umc.faults import CommandKind, JointKind, SensorKind, find_kind
    from umc.faults.kinds import ImuKind

    found = [find_kind(name) for name in kinds]
    colors = ((JointKind, FAULT_COLOR), ((SensorKind, ImuKind), SENSOR_COLOR), (CommandKind, COMMAND_COLOR))
    return next((color for base, color in colors if any(isinstance(kind, base) for kind in found)), None)


SMALL = 0.05
"""Radius of the largest shape that is hardly seen [m]."""


def moving_links[Link](
    link: Link, children: Mapping[Link, Sequence[Link]], radii: Callable[[Link], Sequence[float]]
) -> list[Link]:
    """Return the link that a joint moves and, where it is too small to be seen, the next ones on it.

    ``radii`` returns the radii of the shapes of a link [m]. A small link is that between the joints of G1's ankle.
    """
    if any(radius >= SMALL for radius in radii(link)):
        return [link]
    return [link, *(one for child in children.get(link, ()) for one in moving_links(child, children, radii))]


def rgb(color: Color) -> tuple[int, int, int]:
    """Convert a color to red, green, blue in 0 to 255."""
    red, green, blue = (round(255 * value) for value in color)
    return red, green, blue
