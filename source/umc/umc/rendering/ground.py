# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Ground that shows how far a robot walks: 1 m fields, numbered lines, and the place of the fault. No simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from umc.rendering.colors import FAULT_COLOR, rgb
from umc.rendering.writers import Frame

FOCAL_LENGTH = 24.0
HORIZONTAL_APERTURE = 20.955
"""Lens and sensor width of Isaac Lab's default pinhole camera [mm]."""

LIGHT, DARK, LINE_COLOR, NUMBER_COLOR = (226, 231, 234), (211, 217, 222), (108, 126, 148), (40, 52, 68)
"""Red, green, blue of the two kinds of field, of the lines across the track and of their numbers."""

ONSET_COLOR = rgb(FAULT_COLOR)
"""Color of the line at the place of the fault."""

FADE_FROM, FADE_TO = 3.0, 12.0
"""Distances between which the pattern fades, before it gets finer than a pixel [m]."""

LINE_WIDTH, LINE_PIXELS = 0.02, 1.3
"""Least width of a line on the ground [m], and in the image [px]."""

NUMBER_ROW, NUMBER_SIZE = 0.94, 0.042
"""Row of the numbers from above and their size, as parts of the image's height [-]."""


def focal_pixels(width: int) -> float:
    """Return the focal length [px] of the film camera for frames of a width [px]."""
    return width * FOCAL_LENGTH / HORIZONTAL_APERTURE


@dataclass(frozen=True)
class View:
    """A pinhole camera that looks from one point at another [m], Z up."""

    eye: NDArray[np.float64]
    target: NDArray[np.float64]

    def ground_points(self, depth: NDArray[np.float32]) -> NDArray[np.float64]:
        """Compute the world positions [m] of all pixels, shape (height, width, 3); NaN where nothing was hit.

        Args:
            depth: Distance along the viewing direction [m]; 0 where nothing was hit. Shape is (height, width).
        """
        height, width = depth.shape
        forward = (self.target - self.eye) / np.linalg.norm(self.target - self.eye)
        right = np.cross(forward, (0.0, 0.0, 1.0))
        right /= np.linalg.norm(right)
        up = np.cross(right, forward)
        across = (np.arange(width) + 0.5 - width / 2) / focal_pixels(width)
        down = (np.arange(height) + 0.5 - height / 2) / focal_pixels(width)
        reach, points = np.where(depth > 0.0, depth, np.nan), np.empty((3, height, width))
        for axis, at in enumerate(points):  # each coordinate apart: numpy is slow where the last axis is short
            rays = forward[axis] + across * right[axis] - down[:, None] * up[axis]
            np.add(self.eye[axis], rays * reach, out=at)
        return np.moveaxis(points, 0, -1)


@dataclass(frozen=True)
class Track:
    """The straight line ahead of a robot at its start."""

    start: NDArray[np.float64]
    """Horizontal position [m]. Shape is (2,)."""
    heading: float
    """Angle about the vertical axis [rad]."""

    def along(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far points [m], shape (..., 2 or 3), lie ahead of the start [m]."""
        away = points[..., :2] - self.start
        return away[..., 0] * np.cos(self.heading) + away[..., 1] * np.sin(self.heading)

    def across(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far points [m], shape (..., 2 or 3), lie to the left of the track [m]."""
        away = points[..., :2] - self.start
        return away[..., 1] * np.cos(self.heading) - away[..., 0] * np.sin(self.heading)


def paint_ground(
    frame: Frame,
    depth: NDArray[np.float32],
    points: NDArray[np.float64],
    ground: NDArray[np.bool_],
    track: Track,
    onset_at: float | None = None,
) -> Frame:
    """Draw 1 m fields and numbered lines on the ground.

    Args:
        frame: The rendered image; its brightness on the ground relative to the lit ground is kept, for shadows.
        depth: Distance along the viewing direction [m]. Shape is (height, width).
        points: World positions of all pixels [m]. Shape is (height, width, 3).
        ground: Pixels that show the ground. Shape is (height, width).
        track: Track that the meters count along.
        onset_at: Place of the fault along the track [m]; None before the fault.
    """
    if not ground.any():
        return frame
    # only the pixels of the ground; their colors are one row for each channel
    along, across, away = track.along(points)[ground], track.across(points)[ground], depth[ground]
    red, green, blue = (frame[..., channel].astype(np.uint16) for channel in range(3))
    gray = (red + green + blue)[ground] / 3.0
    shade = np.minimum(gray / max(float(np.percentile(gray, 90)), 1.0), 1.0)
    light, dark, line_color, onset_color = (
        np.array(one, dtype=float)[:, None] for one in (LIGHT, DARK, LINE_COLOR, ONSET_COLOR)
    )
    middle = (light + dark) / 2
    with np.errstate(invalid="ignore"):
        odd = (np.floor(along) + np.floor(across)).astype(np.int64) & 1
        fade = np.clip((FADE_TO - away) / (FADE_TO - FADE_FROM), 0.0, 1.0)
        field = np.where(odd, -fade, fade) * (light - middle)
        field += middle
        # a pixel far away covers more ground than a line is wide
        width = np.maximum(LINE_WIDTH, LINE_PIXELS * away / focal_pixels(ground.shape[1]))
        line = np.abs(along - np.round(along)) < width / 2
        field[:, line] += fade[line] * (line_color - field[:, line])
        if onset_at is not None:
            field[:, np.abs(along - onset_at) < width] = onset_color
    image = frame.copy()
    field *= shade
    for channel, values in enumerate(field):
        image[..., channel][ground] = values
    row = round(NUMBER_ROW * ground.shape[0])
    return _write_numbers(image, row, track.along(points[row]), ground[row])


def _write_numbers(image: Frame, row: int, along: NDArray[np.float64], ground: NDArray[np.bool_]) -> Frame:
    """Write the meters beside their lines at a row of pixels, near the lower edge."""
    height, width = image.shape[:2]
    size = max(round(NUMBER_SIZE * height), 8)
    canvas = Image.fromarray(image)
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(size)
    for meter, column in crossings(along, ground):
        # lines lean towards the middle: outside of them a number is clear of its line
        left = column < width / 2
        place = (column - size // 3 if left else column + size // 3, row)
        # a light edge, to be read on rough ground, too
        edge = {"stroke_width": max(size // 6, 1), "stroke_fill": LIGHT}
        draw.text(place, f"{meter} m", fill=NUMBER_COLOR, **edge, font=font, anchor="rs" if left else "ls")
    return np.asarray(canvas)


def crossings(along: NDArray[np.float64], ground: NDArray[np.bool_]) -> Sequence[tuple[int, int]]:
    """Find the meters and columns at which a row of pixels crosses the lines.

    Args:
        along: Distance along the track at each pixel [m]. Shape is (width,).
        ground: Pixels that show the ground. Shape is (width,).
    """
    found: dict[int, int] = {}
    cell = np.floor(np.where(ground, along, np.nan))
    for column in np.flatnonzero(np.isfinite(cell[1:]) & np.isfinite(cell[:-1]) & (cell[1:] != cell[:-1])):
        found.setdefault(int(max(cell[column], cell[column + 1])), int(column) + 1)
    return sorted(found.items())
