# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Ground pattern, caption, film and sheet, without a simulator."""

import imageio.v2 as imageio
import numpy as np
import pytest
from umc.rendering import writers as picture
from umc.rendering.writers import View, focal_pixels, paint_ground, sheet, write_caption, write_film, write_still
from umc.utils.errors import UmcError

WIDTH, HEIGHT = 160, 90


def straight_down(height=4.0):
    """A camera nearly above the origin, and the depth image of flat ground."""
    view = View(np.array([0.001, 0.0, height]), np.array([0.0, 0.0, 0.0]))
    return view, np.full((HEIGHT, WIDTH), height, dtype=np.float32)


def flat_ground(view):
    """Depth of flat ground, by intersecting each pixel's ray with z = 0; what looks at the sky is 0."""
    along = view.ground_points(np.ones((HEIGHT, WIDTH), dtype=np.float32))[..., 2] - view.eye[2]
    with np.errstate(divide="ignore"):
        depth = -view.eye[2] / along
    return np.where(along < 0, depth, 0.0).astype(np.float32)


def test_the_middle_of_the_picture_is_the_target():
    view = View(np.array([2.0, -1.0, 1.5]), np.array([0.5, 0.25, 0.0]))
    points = view.ground_points(flat_ground(view))
    middle = points[HEIGHT // 2 - 1 : HEIGHT // 2 + 1, WIDTH // 2 - 1 : WIDTH // 2 + 1].mean(axis=(0, 1))
    np.testing.assert_allclose(middle, view.target, atol=0.02)


def test_right_in_the_picture_is_right_of_the_camera_and_up_is_farther():
    view = View(np.array([0.0, -2.0, 1.0]), np.array([0.0, 0.0, 0.0]))
    points = view.ground_points(flat_ground(view))
    assert points[60, 120, 0] > points[60, 40, 0]
    assert points[50, 80, 1] > points[80, 80, 1]


def test_a_pixel_covers_what_the_lens_says():
    view, depth = straight_down(height=4.0)
    points = view.ground_points(depth)
    spacing = np.linalg.norm(points[45, 81] - points[45, 80])
    assert spacing == pytest.approx(4.0 / focal_pixels(WIDTH), rel=1e-3)


def test_tiles_alternate_every_half_metre_and_only_on_the_ground():
    view, depth = straight_down(height=4.0)
    gray = np.full((HEIGHT, WIDTH, 3), 100, dtype=np.uint8)
    painted = paint_ground(gray, depth, view)
    x, y = (view.ground_points(depth)[..., axis] for axis in (0, 1))
    inside = (np.floor(x / 0.5) == 1) & (np.floor(y / 0.5) == 0)
    beside = (np.floor(x / 0.5) == 0) & (np.floor(y / 0.5) == 0)
    assert len(np.unique(painted[inside])) == len(np.unique(painted[beside])) == 1
    assert painted[inside][0, 0] < painted[beside][0, 0]
    # half a metre above the ground stands something else
    raised = depth.copy()
    raised[:, :80] = 3.5
    assert (paint_ground(gray, raised, view)[:, :80] == 100).all()


def test_a_ring_lies_at_its_radius_around_its_centre():
    view, depth = straight_down(height=4.0)
    gray = np.full((HEIGHT, WIDTH, 3), 100, dtype=np.uint8)
    painted = paint_ground(gray, depth, view, rings=(0.5,), center=(0.3, 0.1))
    on_ring = (painted == picture.RING_COLOR).all(axis=-1)
    points = view.ground_points(depth)[on_ring]
    away = np.hypot(points[:, 0] - 0.3, points[:, 1] - 0.1)
    assert on_ring.sum() > 50
    assert np.abs(away - 0.5).max() < 0.06


def test_the_sky_stays_as_it_is():
    view = View(np.array([0.0, -2.0, 1.0]), np.array([0.0, 0.0, 0.9]))
    gray = np.full((HEIGHT, WIDTH, 3), 100, dtype=np.uint8)
    depth = flat_ground(view)
    painted = paint_ground(gray, depth, view, rings=(1.0, 2.0))
    assert (depth == 0).any()
    assert (painted[depth == 0] == 100).all()


def test_a_caption_is_dark_text_and_red_in_an_alarm():
    gray = np.full((270, 480, 3), 128, dtype=np.uint8)
    plain, alarm = write_caption(gray, ["fault", "text"]), write_caption(gray, ["fault", "text"], alarm=True)
    assert (plain[:60].min(axis=-1) < 60).any()
    redness = alarm[..., 0].astype(int) - alarm[..., 1]
    assert redness.max() > 100
    assert (plain[..., 0].astype(int) - plain[..., 1]).max() < 30
    assert (plain[200:] == 128).all()


def test_the_sheet_shows_the_first_and_the_last_frame():
    frames = [np.full((20, 30, 3), number, dtype=np.uint8) for number in range(101)]
    page = sheet(frames)
    assert page[5, 5, 0] == 0
    assert page[-5, -5, 0] == 100
    assert page.shape == (2 * 20 + picture.SHEET_GAP, 3 * 30 + 2 * picture.SHEET_GAP, 3)
    assert sheet(frames[:1]).shape == (20, 30, 3)
    assert sheet(frames[:4])[-5, -5, 0] == 255


def test_the_film_is_h264_with_every_frame(tmp_path):
    path = tmp_path / "films" / "walk.mp4"
    frames = [np.full((90, 160, 3), 20 * number, dtype=np.uint8) for number in range(10)]
    write_film(path, frames, fps=25)
    reader = imageio.get_reader(path)
    data = reader.get_meta_data()
    assert (data["codec"], data["size"], data["fps"]) == ("h264", (160, 90), 25.0)
    assert data["pix_fmt"].startswith("yuv420p")
    read = np.stack(list(reader.iter_data()))
    assert len(read) == 10
    assert abs(float(read[9].mean()) - 180) < 6
    assert [file.name for file in path.parent.iterdir()] == ["walk.mp4"]


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    frame = np.zeros((90, 160, 3), dtype=np.uint8)
    for write in (lambda path: write_film(path, [frame], 25), lambda path: write_still(path, frame)):
        with pytest.raises(UmcError, match="choose another folder"):
            write(tmp_path / "file" / "walk.mp4")
