# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""GIFs: rare colours stay, time runs true, a big film gets coarser, a failure leaves what was there."""

import numpy as np
import pytest
from PIL import Image, ImageSequence
from umc.rendering.gif import LADDER, palette_of, write_gif

RED = (219, 33, 28)
SIZE = (60, 90)


def gray_with_a_red_dot(number, share):
    """Many grays and four red pixels, which a median cut would drop."""
    height, width = (round(side * share) for side in SIZE)
    ramp = np.linspace(0, 255, width).astype(np.uint8)
    frame = np.repeat(np.tile(np.roll(ramp, number), (height, 1))[..., None], 3, axis=2)
    frame[10:12, 10:12] = RED
    return frame


def noise(number, share):
    height, width = (round(side * share) for side in SIZE)
    return np.random.default_rng(number).integers(0, 255, (height, width, 3), dtype=np.uint8)


def test_a_small_film_is_written_as_fine_as_can_be(tmp_path):
    path = tmp_path / "new" / "walk.gif"
    rung = write_gif(path, 20, gray_with_a_red_dot, 25.0, keep=(RED,))
    assert rung == LADDER[0]
    with Image.open(path) as image:
        assert (image.size, image.n_frames, image.info["loop"]) == ((90, 60), 10, 0)
        seconds = sum(frame.info["duration"] for frame in ImageSequence.Iterator(image)) / 1000
        image.seek(7)
        assert image.convert("RGB").getpixel((11, 11)) == RED
    assert seconds == pytest.approx(20 / 25)
    assert [file.name for file in path.parent.iterdir()] == ["walk.gif"]


def test_a_small_palette_keeps_the_colours_that_matter():
    frames = [gray_with_a_red_dot(number, 1.0) for number in range(3)]
    with_red, without = (palette_of(frames, 16, keep).getpalette() for keep in ((RED,), ()))
    assert [tuple(with_red[at : at + 3]) for at in range(0, 48, 3)].count(RED) == 1
    assert RED not in [tuple(without[at : at + 3]) for at in range(0, len(without), 3)]


def test_a_big_film_gets_coarser_until_it_fits(tmp_path):
    path = tmp_path / "noise.gif"
    sizes = []
    for most in (10**9, 40_000, 1):
        rung = write_gif(path, 24, noise, 25.0, most_bytes=most)
        sizes.append(path.stat().st_size)
        assert path.stat().st_size <= most or rung == LADDER[-1]
    assert sizes[0] > sizes[1] > sizes[2]
    with Image.open(path) as image:
        assert image.size[0] == round(90 * LADDER[-1].width)
        seconds = sum(frame.info["duration"] for frame in ImageSequence.Iterator(image)) / 1000
    assert seconds == pytest.approx(24 / 25, abs=0.05)  # fewer frames, not a faster walk


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "walk.gif"
    path.write_bytes(b"old")

    def fails(number, share):
        if number == 10:
            raise KeyboardInterrupt
        return noise(number, share)

    with pytest.raises(KeyboardInterrupt):
        write_gif(path, 20, fails, 25.0)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["walk.gif"]
