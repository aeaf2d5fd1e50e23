# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""MP4, GIF and PNG: what is in them, how a GIF gets small, what a failure leaves."""

import imageio.v2 as imageio
import numpy as np
import pytest
from PIL import Image, ImageSequence
from umc.rendering import writers
from umc.rendering.writers import GIF_QUALITIES, write_gif, write_mp4, write_png
from umc.utils.errors import UmcError

RED = (219, 33, 28)
WIDTH, HEIGHT = 90, 60


def walk(count=20, until=None):
    """Grays that move, and four red pixels; fails at frame ``until``."""
    ramp = np.linspace(0, 255, WIDTH).astype(np.uint8)
    for number in range(count):
        if number == until:
            raise KeyboardInterrupt
        frame = np.repeat(np.tile(np.roll(ramp, number), (HEIGHT, 1))[..., None], 3, axis=2)
        frame[10:12, 10:12] = RED
        yield frame


def noise(count=24):
    return (np.random.default_rng(number).integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8) for number in range(count))


def seconds(image):
    return sum(frame.info["duration"] for frame in ImageSequence.Iterator(image)) / 1000


def test_a_film_is_h264_with_every_frame(tmp_path):
    path = tmp_path / "films" / "walk.mp4"
    write_mp4(path, (np.full((HEIGHT, WIDTH, 3), 20 * number, dtype=np.uint8) for number in range(10)), fps=25)
    reader = imageio.get_reader(path)
    data = reader.get_meta_data()
    assert (data["codec"], data["size"], data["fps"]) == ("h264", (WIDTH, HEIGHT), 25.0)
    assert data["pix_fmt"].startswith("yuv420p")
    read = np.stack(list(reader.iter_data()))
    assert len(read) == 10
    assert abs(float(read[9].mean()) - 180) < 6
    assert [file.name for file in path.parent.iterdir()] == ["walk.mp4"]


def test_a_gif_runs_at_the_films_speed_and_keeps_rare_colors(tmp_path):
    path = tmp_path / "new" / "walk.gif"
    write_gif(path, walk, 25.0, WIDTH)
    with Image.open(path) as image:
        assert (image.size, image.n_frames, image.info["loop"]) == ((WIDTH, HEIGHT), 10, 0)
        assert seconds(image) == pytest.approx(20 / 25)
        image.seek(7)
        assert np.abs(np.subtract(image.convert("RGB").getpixel((11, 11)), RED)).max() < 12
    assert [file.name for file in path.parent.iterdir()] == ["walk.gif"]


def test_a_big_gif_gets_coarser_until_it_fits(tmp_path, monkeypatch):
    path = tmp_path / "noise.gif"
    sizes = []
    for most in (10**9, 40_000, 1):
        monkeypatch.setattr(writers, "MAX_GIF_BYTES", most)
        write_gif(path, noise, 25.0, WIDTH)
        sizes.append(path.stat().st_size)
    assert sizes[0] > 40_000 >= sizes[1] > sizes[2]
    with Image.open(path) as image:
        assert image.size[0] == pytest.approx(WIDTH * GIF_QUALITIES[-1][2], abs=1)
        assert seconds(image) == pytest.approx(24 / 25, abs=0.05)  # fewer frames, not a faster walk


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_gif(path, lambda: walk(until=10), 25.0, WIDTH),
        lambda path: write_mp4(path, walk(until=10), 25.0),
    ],
)
def test_an_interrupted_film_leaves_the_old_file(tmp_path, write):
    path = tmp_path / "walk.mp4"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write(path)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["walk.mp4"]


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    for write in (lambda path: write_mp4(path, walk(), 25), lambda path: write_png(path, next(walk()))):
        with pytest.raises(UmcError, match="cannot write"):
            write(tmp_path / "file" / "walk.mp4")
