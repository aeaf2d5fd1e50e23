# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""From rendered frames to a film and a sheet of stills: ground pattern, caption, MP4, PNG; no simulator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import imageio.v2 as imageio
import imageio_ffmpeg
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from umc.rendering.colors import FAULT_COLOR
from umc.utils.errors import UmcError
from umc.utils.io import atomic_path

FOCAL_LENGTH = 24.0
HORIZONTAL_APERTURE = 20.955
"""Lens and sensor width of Isaac Lab's default pinhole camera [mm]."""

TILE = 0.5
"""Side of a ground tile [m]."""

GROUND_LIGHT, TILE_SHADE = 1.32, 0.90
"""Brightness of the ground and, on top of it, of every other tile [-]; a light ground sets off a dark robot."""

GROUND_THICKNESS = 0.004
"""Pixels within this height belong to the ground [m]."""

FADE_FROM, FADE_TO = 3.0, 12.0
"""Distances between which the pattern fades, before it gets finer than a pixel [m]."""

RING_WIDTH, RING_PIXELS = 0.025, 1.5
"""Least width of a distance ring on the ground [m], and in the image [px]."""

RING_COLOR = (45, 100, 170)
"""Red, green, blue of a distance ring."""

TEXT_COLOR = (25, 28, 33)
PANEL = 0.6
"""How white the caption's background is [-]."""

SHEET_COLUMNS, SHEET_ROWS = 3, 2
"""Stills on the sheet."""

SHEET_GAP = 4
"""White between two stills [px]."""

Frame = NDArray[np.uint8]
"""An image. Shape is (height, width, 3)."""


def focal_pixels(width: int) -> float:
    """Focal length of the film camera.

    Args:
        width: Width of a frame [px].

    Returns:
        Focal length [px].
    """
    return width * FOCAL_LENGTH / HORIZONTAL_APERTURE


@dataclass(frozen=True)
class View:
    """A pinhole camera that looks from one point at another, Z up."""

    eye: NDArray[np.float64]
    target: NDArray[np.float64]

    def ground_points(self, depth: NDArray[np.float32]) -> NDArray[np.float64]:
        """World positions of all pixels.

        Args:
            depth: Distance along the viewing direction [m]; 0 where nothing was hit. Shape is (height, width).

        Returns:
            Positions [m]; NaN where nothing was hit. Shape is (height, width, 3).
        """
        height, width = depth.shape
        forward = self.target - self.eye
        forward = forward / np.linalg.norm(forward)
        right = np.cross(forward, (0.0, 0.0, 1.0))
        right /= np.linalg.norm(right)
        up = np.cross(right, forward)
        focal = focal_pixels(width)
        across = (np.arange(width) + 0.5 - width / 2) / focal
        down = (np.arange(height) + 0.5 - height / 2) / focal
        rays = forward + across[None, :, None] * right - down[:, None, None] * up
        return self.eye + rays * np.where(depth > 0.0, depth, np.nan)[..., None]


def paint_ground(
    frame: Frame, depth: NDArray[np.float32], view: View, rings: Sequence[float] = (), center: Sequence[float] = (0, 0)
) -> Frame:
    """Draws tiles of half a metre on flat ground, so that motion can be seen, and distance rings.

    Args:
        frame: The rendered image.
        depth: Distance along the viewing direction [m]. Shape is (height, width).
        view: Where the camera stands.
        rings: Radii [m].
        center: Where the rings are centred [m].

    Returns:
        The image with the pattern.
    """
    points = view.ground_points(depth)
    with np.errstate(invalid="ignore"):
        ground = np.abs(points[..., 2]) < GROUND_THICKNESS
        odd = (np.floor(points[..., 0] / TILE) + np.floor(points[..., 1] / TILE)) % 2 == 1
        fade = np.clip((FADE_TO - depth) / (FADE_TO - FADE_FROM), 0.0, 1.0)
        shade = np.where(ground, GROUND_LIGHT, 1.0) * np.where(ground & odd, 1.0 - (1.0 - TILE_SHADE) * fade, 1.0)
        image = np.minimum(frame * shade[..., None], 255.0)
        if rings:
            away = np.hypot(points[..., 0] - center[0], points[..., 1] - center[1])
            # a pixel far away covers much ground along the view: a ring as thin as near the robot would break up
            pixel = depth / focal_pixels(depth.shape[1]) * depth / view.eye[2]
            width = np.maximum(RING_WIDTH, RING_PIXELS * pixel)
            on_ring = np.min([np.abs(away - radius) for radius in rings], axis=0) < width / 2
            image = np.where((ground & on_ring)[..., None], np.asarray(RING_COLOR), image)
    return image.astype(np.uint8)


def write_caption(frame: Frame, lines: Sequence[str], alarm: bool = False) -> Frame:
    """Writes lines of text in the upper left corner.

    Args:
        frame: The image.
        lines: The text; the first line is larger.
        alarm: Whether the first line is red.

    Returns:
        The image with the text.
    """
    size = max(frame.shape[0] // 26, 9)
    fonts = [ImageFont.load_default(size + (size // 4 if number == 0 else 0)) for number in range(len(lines))]
    boxes = [font.getbbox(line) for font, line in zip(fonts, lines, strict=True)]
    step = round(1.35 * size)
    # ground pattern and rings pass behind the text
    panel = frame[: len(lines) * step + size, : round(max(box[2] for box in boxes)) + 2 * size]
    image = frame.copy()
    image[: panel.shape[0], : panel.shape[1]] = (panel * (1.0 - PANEL) + 255.0 * PANEL).astype(np.uint8)
    canvas = Image.fromarray(image)
    draw = ImageDraw.Draw(canvas)
    for number, (font, line) in enumerate(zip(fonts, lines, strict=True)):
        color = tuple(round(255 * value) for value in FAULT_COLOR) if alarm and number == 0 else TEXT_COLOR
        draw.text((size, size // 2 + number * step), line, fill=color, font=font)
    return np.asarray(canvas)


def sheet(frames: Sequence[Frame]) -> Frame:
    """Stills from begin to end of a film, row by row.

    Args:
        frames: The film.

    Returns:
        One image.
    """
    count = min(SHEET_COLUMNS * SHEET_ROWS, len(frames))
    columns = min(SHEET_COLUMNS, count)
    picks = [frames[round(index)] for index in np.linspace(0, len(frames) - 1, count)]
    blank = np.full_like(frames[0], 255)
    picks += [blank] * (-len(picks) % columns)
    height, width = frames[0].shape[:2]
    page = np.full(
        (len(picks) // columns * (height + SHEET_GAP) - SHEET_GAP, columns * (width + SHEET_GAP) - SHEET_GAP, 3),
        255,
        dtype=np.uint8,
    )
    for number, pick in enumerate(picks):
        top, left = number // columns * (height + SHEET_GAP), number % columns * (width + SHEET_GAP)
        page[top : top + height, left : left + width] = pick
    return page


def require_ffmpeg() -> None:
    """Makes sure, before anything is filmed, that films can be written.

    Raises:
        UmcError: If there is no ffmpeg.
    """
    try:
        imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError as error:
        raise UmcError(
            "there is no ffmpeg to write an MP4 with; pip install imageio-ffmpeg, or set IMAGEIO_FFMPEG_EXE to one"
        ) from error


def write_film(path: Path, frames: Iterable[Frame], fps: float) -> None:
    """Writes an H.264 MP4, whole or not at all.

    Args:
        path: The file, ending in ``.mp4``.
        frames: The film; width and height even.
        fps: Frames per second.

    Raises:
        UmcError: If the file cannot be written.
    """
    with atomic_path(path, sync=False) as part:
        writer: Any = imageio.get_writer(part, format="FFMPEG", fps=fps, codec="libx264", quality=8, macro_block_size=2)  # pyright: ignore[reportArgumentType] - imageio's stubs lack the plugin's options
        with writer:
            for frame in frames:
                writer.append_data(frame)


def write_still(path: Path, frame: Frame) -> None:
    """Writes a PNG, whole or not at all.

    Args:
        path: The file.
        frame: The image.

    Raises:
        UmcError: If the file cannot be written.
    """
    with atomic_path(path, sync=False) as part:
        Image.fromarray(frame).save(part, optimize=True)
