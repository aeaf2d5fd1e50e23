# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The attention of a transformer policy as a picture: which token reads which."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from umc.rendering.colors import FAULT_COLOR, rgb

CELL, FONT = 22, 12
"""Side of a cell and size of the labels [px]."""

CONTEXT = "context"
"""Name of the last token, which carries base observations and fault flag."""

DARK = (8, 48, 107)
"""Color of the largest share of attention, red-green-blue; none is white."""

INK, DEAD = (25, 28, 33), rgb(FAULT_COLOR)
"""Colors of labels: of tokens, and of joints with a dead sensor."""


class AttentionMap:
    """Picture of the attention maps of a policy with J joints; the context token follows them."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        self._names = [*(name.removesuffix("_joint") for name in joint_names), CONTEXT]
        self._font = ImageFont.load_default(FONT)
        self._margin = round(max(self._font.getlength(name) for name in self._names)) + FONT

    def draw(self, shares: NDArray[np.floating], dead: Sequence[bool]) -> NDArray[np.uint8]:
        """Draw one map, of shape (height, width, 3), in colors from white to the largest share.

        ``shares`` are those of its attention that each token (row) gives to each (column), shape (J + 1, J + 1).
        """
        tokens, margin = len(self._names), self._margin
        most = max(float(shares.max()), 1.0e-6)
        tint = (np.asarray(shares, dtype=np.float64) / most)[..., None]
        cells = ((1.0 - tint) * 255.0 + tint * np.asarray(DARK)).astype(np.uint8)
        page = np.full((margin + CELL * tokens, margin + CELL * tokens, 3), 255, dtype=np.uint8)
        page[margin:, margin:] = cells.repeat(CELL, axis=0).repeat(CELL, axis=1)
        page[margin::CELL, margin:] = page[margin:, margin::CELL] = 225
        canvas = Image.fromarray(page)
        canvas.paste(self._labels(dead, margin - FONT // 2, "rm"), (0, margin))
        canvas.paste(self._labels(dead, FONT // 2, "lm").transpose(Image.Transpose.ROTATE_90), (margin, 0))
        return np.asarray(canvas)

    def _labels(self, dead: Sequence[bool], at: int, anchor: str) -> Image.Image:
        """Draw the names of all tokens, one below the other."""
        labels = Image.new("RGB", (self._margin, CELL * len(self._names)), "white")
        draw = ImageDraw.Draw(labels)
        for number, name in enumerate(self._names):
            ink = DEAD if number < len(dead) and dead[number] else INK
            draw.text((at, CELL * (number + 0.5)), name, fill=ink, font=self._font, anchor=anchor)
        return labels
