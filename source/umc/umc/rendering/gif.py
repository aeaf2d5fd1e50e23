# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""GIFs that are small enough for a README: one palette, no dithering, and coarser until the file fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from umc.rendering.writers import Frame
from umc.utils.io import atomic_path

MOST_BYTES = 2_000_000
"""Size that a GIF should not exceed [byte]; GitHub's image proxy takes 5 MB, readers and clones wait less."""

PALETTE_FRAMES = 12
"""Frames from which the palette is taken."""


@dataclass(frozen=True)
class Coarseness:
    """How much of a film a GIF keeps."""

    every: int
    """Each how manieth frame it shows."""
    colors: int
    """Size of its palette."""
    width: float = 1.0
    """Width as a part of the wanted one [-]."""


LADDER = (
    Coarseness(2, 128),
    Coarseness(2, 64),
    Coarseness(3, 64),
    Coarseness(3, 32),
    Coarseness(3, 32, 0.8),
    Coarseness(4, 32, 0.65),
)
"""From fine to coarse; the first that fits is taken. At 25 frames per second the steps are 12.5, 8.3 and 6.25."""


def write_gif(
    path: Path,
    count: int,
    frame_at: Callable[[int, float], Frame],
    fps: float,
    keep: Sequence[tuple[int, int, int]] = (),
    most_bytes: int = MOST_BYTES,
) -> Coarseness:
    """Writes a GIF that repeats for ever, whole or not at all.

    Args:
        path: The file, ending in ``.gif``.
        count: Number of frames of the film.
        frame_at: Makes a frame from its number and a width as a part of the wanted one.
        fps: Frames of the film per second.
        keep: Colours that must be in the palette, however few pixels have them.
        most_bytes: Size that sends to the next rung of :data:`LADDER` [byte].

    Returns:
        How coarse it came out.

    Raises:
        UmcError: If the file cannot be written.
    """
    with atomic_path(path, sync=False) as part:
        frames: list[Frame] = []
        shown: tuple[int, float] | None = None
        for rung in LADDER:
            if shown != (rung.every, rung.width):
                shown = (rung.every, rung.width)
                frames = [frame_at(number, rung.width) for number in range(0, count, rung.every)]
            _save(part, frames, rung.colors, 1000.0 * rung.every / fps, keep)
            if part.stat().st_size <= most_bytes:
                break
    return rung


def palette_of(frames: Sequence[Frame], colors: int, keep: Sequence[tuple[int, int, int]] = ()) -> Image.Image:
    """A palette for a whole film.

    Args:
        frames: The film.
        colors: Number of colours.
        keep: Colours that must be among them.

    Returns:
        An image that has the palette.
    """
    picks = sorted({round(number) for number in np.linspace(0, len(frames) - 1, min(PALETTE_FRAMES, len(frames)))})
    sample = Image.fromarray(np.concatenate([frames[number] for number in picks]))
    rest = colors - len(keep)
    common = sample.quantize(rest, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).getpalette() or []
    image = Image.new("P", (1, 1))
    image.putpalette([*(value for color in keep for value in color), *common[: 3 * rest]])
    return image


def _save(
    path: Path, frames: Sequence[Frame], colors: int, milliseconds: float, keep: Sequence[tuple[int, int, int]]
) -> None:
    palette = palette_of(frames, colors, keep)
    flat = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    # a GIF counts hundredths of a second
    duration = max(round(milliseconds / 10), 2) * 10
    flat[0].save(path, save_all=True, append_images=flat[1:], duration=duration, loop=0, optimize=False, disposal=1)
