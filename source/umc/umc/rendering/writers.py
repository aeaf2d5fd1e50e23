# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""MP4, GIF and PNG files from frames; a file appears only when it is complete. No simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from umc.utils.errors import UmcError
from umc.utils.io import atomic_path

Frame = NDArray[np.uint8]
"""An image. Shape is (height, width, 3)."""

MAX_GIF_BYTES = 2_000_000
"""Size that a GIF should not exceed [byte]; GitHub's image proxy takes 5 MB, a README should load faster."""

GIF_QUALITIES = ((2, 128, 1.0), (2, 64, 1.0), (3, 64, 1.0), (3, 32, 1.0), (3, 32, 0.8), (4, 32, 0.65))
"""Frames per frame of the GIF, colors, and part of the wanted width [-]; the first that is small enough is taken."""


def require_ffmpeg() -> None:
    """Make sure, before anything is filmed, that films can be written."""
    try:
        imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError as error:
        raise UmcError(
            "there is no ffmpeg to write films with; pip install imageio-ffmpeg, or set IMAGEIO_FFMPEG_EXE to one"
        ) from error


def write_mp4(path: Path, frames: Iterable[Frame], fps: float) -> None:
    """Write an H.264 MP4 of frames of even width and height; UmcError if the file cannot be written."""
    with atomic_path(path, sync=False) as part:
        _encode(part, frames, fps, "libx264", "yuv420p", "-crf", "10")


def write_gif(path: Path, frames: Callable[[], Iterable[Frame]], fps: float, width: int) -> None:
    """Write a GIF of a width [px] that repeats for ever, coarser until it has :data:`MAX_GIF_BYTES` at most.

    ``frames`` is called for each of the :data:`GIF_QUALITIES` that is tried.
    """
    with atomic_path(path, sync=False) as part:
        for every, colors, share in GIF_QUALITIES:
            filters = (
                f"fps={fps / every:g},scale={round(width * share)}:-1:flags=lanczos,split[a][b];"
                f"[a]palettegen=max_colors={colors}:reserve_transparent=0[p];"
                "[b][p]paletteuse=dither=none:diff_mode=rectangle"
            )
            _encode(part, frames(), fps, "gif", "pal8", "-filter_complex", filters, "-loop", "0")
            if part.stat().st_size <= MAX_GIF_BYTES:
                break


def write_png(path: Path, frame: Frame) -> None:
    """Write an image; UmcError if the file cannot be written."""
    with atomic_path(path, sync=False) as part:
        Image.fromarray(frame).save(part, optimize=True)


def _encode(path: Path, frames: Iterable[Frame], fps: float, codec: str, pixels: str, *options: str) -> None:
    """Send frames through ffmpeg."""
    write_frames: Any = imageio_ffmpeg.write_frames  # its types allow neither fractional fps nor no quality
    encoder = None
    try:
        for frame in frames:
            if encoder is None:
                encoder = write_frames(
                    path,
                    (frame.shape[1], frame.shape[0]),
                    fps=fps,
                    codec=codec,
                    pix_fmt_out=pixels,
                    quality=None,
                    macro_block_size=1,
                    ffmpeg_log_level="error",
                    output_params=list(options),
                )
                encoder.send(None)
            encoder.send(np.ascontiguousarray(frame))
    finally:
        if encoder is not None:
            encoder.close()
