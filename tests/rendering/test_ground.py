# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What pixels show, meter lines and the mark of the fault."""

import numpy as np
import pytest
from umc.rendering.ground import (
    DARK,
    FADE_FROM,
    FADE_TO,
    LIGHT,
    LINE_COLOR,
    LINE_PIXELS,
    LINE_WIDTH,
    ONSET_COLOR,
    Track,
    View,
    crossings,
    focal_pixels,
    paint_ground,
)


def color_of(gray, lit, along, across, depth, width, onset_at):
    """Color of one pixel of the ground, in plain words."""
    fade = np.clip((FADE_TO - depth) / (FADE_TO - FADE_FROM), 0.0, 1.0)
    middle = (np.array(LIGHT) + DARK) / 2
    color = middle + fade * (np.array(DARK if (np.floor(along) + np.floor(across)) % 2 == 1 else LIGHT) - middle)
    line = max(LINE_WIDTH, LINE_PIXELS * depth / focal_pixels(width))
    if abs(along - np.round(along)) < line / 2:
        color = color + fade * (LINE_COLOR - color)
    if abs(along - onset_at) < line:
        color = np.array(ONSET_COLOR)
    return (color * min(gray / max(lit, 1.0), 1.0)).astype(np.uint8)


def test_every_pixel_has_its_color_to_the_bit():
    view, size = View(np.array([0.3, -2.0, 1.0]), np.array([0.5, 0.2, 0.3])), 60
    track = Track(np.array([0.1, 0.2]), 0.3)
    depth = view.ground_points(np.ones((40, size), dtype=np.float32))[..., 2] - 1.0
    depth = np.where(depth < 0.0, -1.0 / depth, 0.0).astype(np.float32)
    ground = (depth > 0.0) & (depth < 40.0)
    ground[20:30, 20:30] = False
    frame = np.random.default_rng(1).integers(90, 200, (40, size, 3), dtype=np.uint8)
    points = view.ground_points(depth)
    along, across, gray = track.along(points), track.across(points), frame.mean(axis=-1)
    lit = np.percentile(gray[ground], 90)
    expected = frame.copy()
    for row, column in np.argwhere(ground):
        at = row, column
        expected[at] = color_of(gray[at], lit, along[at], across[at], depth[at], size, 0.7)
    image = paint_ground(frame, depth, points, ground, track, onset_at=0.7)
    numbers = slice(28, None)  # they are text
    np.testing.assert_array_equal(image[: numbers.start], expected[: numbers.start])
    assert (image[numbers] == expected[numbers]).mean() > 0.9
    text = image[(image != expected).any(axis=-1)]
    assert (text == LIGHT).all(axis=-1).any()  # a light edge, to be read on rough ground
    before = paint_ground(frame, depth, points, ground, track)  # the line of the fault appears with it
    assert (before[: numbers.start] != image[: numbers.start]).any()
    sky = np.zeros_like(ground)
    np.testing.assert_array_equal(paint_ground(frame, depth, points, sky, track, onset_at=0.7), frame)


def test_numbers_stand_at_their_lines():
    along = np.linspace(-0.5, 2.6, 311)
    ground = np.ones(311, dtype=bool)
    found = crossings(along, ground)
    assert [meter for meter, _ in found] == [0, 1, 2]
    assert [along[column] for _, column in found] == pytest.approx([0, 1, 2], abs=0.011)
    ground[140:160] = False  # a leg stands on the line of 1 m
    assert [meter for meter, _ in crossings(along, ground)] == [0, 2]


def flat_ground(view):
    """Depth of flat ground, by intersecting each pixel's ray with z = 0; what looks at the sky is 0."""
    along = view.ground_points(np.ones((90, 160), dtype=np.float32))[..., 2] - view.eye[2]
    with np.errstate(divide="ignore"):
        depth = -view.eye[2] / along
    return np.where(along < 0, depth, 0.0).astype(np.float32)


def test_a_view_finds_the_place_of_a_pixel():
    view = View(np.array([2.0, -1.0, 1.5]), np.array([0.5, 0.25, 0.0]))
    points = view.ground_points(flat_ground(view))
    np.testing.assert_allclose(points[44:46, 79:81].mean(axis=(0, 1)), view.target, atol=0.02)
    view = View(np.array([0.0, -2.0, 1.0]), np.array([0.0, 0.0, 0.9]))
    points = view.ground_points(flat_ground(view))
    assert points[60, 120, 0] > points[60, 40, 0]  # right of the camera
    assert points[60, 80, 1] > points[80, 80, 1]  # farther away
    assert np.isnan(points[0]).all()  # sky
    above = View(np.array([0.001, 0.0, 4.0]), np.zeros(3)).ground_points(np.full((90, 160), 4.0, dtype=np.float32))
    assert np.linalg.norm(above[45, 81] - above[45, 80]) == pytest.approx(4.0 / focal_pixels(160), rel=1e-3)


def test_a_track_counts_ahead_and_to_the_left():
    track, point = Track(np.array([0.3, 0.5]), np.pi / 2), np.array([0.1, 2.0, 5.0])
    assert (track.along(point), track.across(point)) == pytest.approx((1.5, 0.2))
