# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Ground that shows how far a robot walks: fields and lines of a metre, numbered, and where its fault set in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from umc.rendering.colors import FAULT_COLOR
from umc.rendering.writers import FADE_FROM, FADE_TO, Frame, focal_pixels

LIGHT, DARK = (226, 231, 234), (211, 217, 222)
"""Red, green, blue of the two kinds of field."""

LINE_COLOR = (108, 126, 148)
"""Of the lines across the way."""

ONSET_COLOR = (round(255 * FAULT_COLOR[0]), round(255 * FAULT_COLOR[1]), round(255 * FAULT_COLOR[2]))
"""Of the line where the fault set in."""

LINE_WIDTH, LINE_PIXELS = 0.02, 1.3
"""Least width of a line on the ground [m], and in the image [px]."""

NUMBER_ROW = 0.94
"""Height of the numbers in the image, from above [-]."""

NUMBER_SIZE = 0.042
"""Size of the numbers, as a part of the image's height [-]."""


@dataclass(frozen=True)
class Way:
    """Where a robot started and which way it looked."""

    start: NDArray[np.float64]
    """Horizontal position [m]. Shape is (2,)."""
    heading: float
    """Angle about the vertical axis [rad]."""

    def along(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far places lie ahead of the start.

        Args:
            points: Positions in the world [m]. Shape is (..., 2) or more in the last axis.

        Returns:
            Distance along the heading [m]. Shape is (...).
        """
        away = points[..., :2] - self.start
        return away[..., 0] * np.cos(self.heading) + away[..., 1] * np.sin(self.heading)

    def across(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far places lie to the left of the way.

        Args:
            points: Positions in the world [m]. Shape is (..., 2) or more in the last axis.

        Returns:
            Distance across the heading [m]. Shape is (...).
        """
        away = points[..., :2] - self.start
        return away[..., 1] * np.cos(self.heading) - away[..., 0] * np.sin(self.heading)


def paint_metres(
    frame: Frame,
    depth: NDArray[np.float32],
    points: NDArray[np.float64],
    ground: NDArray[np.bool_],
    way: Way,
    onset_at: float | None = None,
) -> Frame:
    """Draws fields of a metre and numbered lines on the ground.

    Args:
        frame: The rendered image; its brightness on the ground is kept relative to the lit ground, for shadows.
        depth: Distance along the viewing direction [m]. Shape is (height, width).
        points: World positions of all pixels [m]. Shape is (height, width, 3).
        ground: Pixels that show the ground. Shape is (height, width).
        way: Where the metres are counted from.
        onset_at: How far along the way the fault set in [m]; None where none has.

    Returns:
        The image with the pattern.
    """
    if not ground.any():
        return frame
    gray = frame.mean(axis=-1)
    lit = np.percentile(gray[ground], 90)
    shade = np.clip(gray / max(float(lit), 1.0), 0.0, 1.0)[..., None]
    with np.errstate(invalid="ignore"):
        along, across = way.along(points), way.across(points)
        odd = (np.floor(along) + np.floor(across)) % 2 == 1
        fade = np.clip((FADE_TO - depth) / (FADE_TO - FADE_FROM), 0.0, 1.0)[..., None]
        middle = (np.asarray(LIGHT) + np.asarray(DARK)) / 2
        field = middle + fade * (np.where(odd[..., None], DARK, LIGHT) - middle)
        # a pixel far away covers more ground than a line is wide
        width = np.maximum(LINE_WIDTH, LINE_PIXELS * depth / focal_pixels(depth.shape[1]))
        line = np.abs(along - np.round(along)) < width / 2
        field = np.where(line[..., None], field + fade * (np.asarray(LINE_COLOR) - field), field)
        if onset_at is not None:
            struck = np.abs(along - onset_at) < width
            field = np.where(struck[..., None], ONSET_COLOR, field)
    image = np.where(ground[..., None], field * shade, frame)
    return _write_numbers(np.clip(np.nan_to_num(image), 0, 255).astype(np.uint8), along, ground)


def _write_numbers(image: Frame, along: NDArray[np.float64], ground: NDArray[np.bool_]) -> Frame:
    """Writes the metres beside their lines, near the lower edge."""
    height, width = ground.shape
    row = round(NUMBER_ROW * height)
    size = max(round(NUMBER_SIZE * height), 8)
    canvas = Image.fromarray(image)
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size)
    for metre, column in crossings(along[row], ground[row]):
        # lines lean towards the middle: outside of them a number is clear of its line
        left = column < width / 2
        place = (column - size // 3 if left else column + size // 3, row)
        draw.text(place, f"{metre} m", fill=LINE_COLOR, font=font, anchor="rs" if left else "ls")
    return np.asarray(canvas)


def crossings(along: NDArray[np.float64], ground: NDArray[np.bool_]) -> Sequence[tuple[int, int]]:
    """Where a row of pixels crosses the lines.

    Args:
        along: Distance along the way at each pixel [m]. Shape is (width,).
        ground: Pixels that show the ground. Shape is (width,).

    Returns:
        Number of the metre and column of each crossing, at most one for each metre.
    """
    found: dict[int, int] = {}
    cell = np.floor(np.where(ground, along, np.nan))
    for column in np.flatnonzero(np.isfinite(cell[1:]) & np.isfinite(cell[:-1]) & (cell[1:] != cell[:-1])):
        found.setdefault(int(max(cell[column], cell[column + 1])), int(column) + 1)
    return sorted(found.items())
