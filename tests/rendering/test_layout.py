# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Panels, captions, time line and storyboard, on made-up robots of one color each."""

import numpy as np
import pytest
from umc.rendering.layout import (
    ALARM,
    FALLEN,
    STORY_STILLS,
    WALKING,
    Heading,
    Moment,
    Take,
    columns_of,
    compose,
    story_picks,
    storyboard,
    tick_seconds,
)

GREEN, VIOLET = (10, 200, 30), (120, 20, 220)
FRAMES, WIDTH, HEIGHT = 20, 320, 220
ONSET = 20
"""Env step of the fault; frames are 2 steps apart, so it is frame 9 that shows it first."""


def made_up(name, color, fell=None, failed=None):
    take = Take(name, onset=ONSET, joints=("FL_hip_joint",), fell=fell, failed=failed)
    for number in range(FRAMES):
        take.frames.append(np.full((HEIGHT, WIDTH, 3), color, dtype=np.uint8))
        take.moments.append(Moment(2 * (number + 1), 0.1 * number))
    return take


def heading(onset=ONSET, mark=ALARM):
    return Heading("A1, scenario 6: weak motors", 2 * FRAMES, 0.02, onset, mark)


def count(image, color, tolerance=6):
    return int((np.abs(image.astype(int) - color).max(axis=-1) <= tolerance).sum())


def parts(page):
    """Header with captions, panels and footer of a page of one row, separated by the panels' color."""
    green = np.abs(page.astype(int) - GREEN).max(axis=-1) <= 6
    rows = np.flatnonzero(green.sum(axis=1) > WIDTH // 2)
    return page[: rows[0]], page[rows[0] : rows[-1] + 1], page[rows[-1] + 1 :]


def test_every_policy_has_its_panel_in_its_place_and_four_stand_two_and_two():
    page = compose([made_up("NM", GREEN), made_up("UMC", VIOLET)], heading(), 0)
    _, panels, _ = parts(page)
    assert panels.shape[0] == HEIGHT
    assert (panels[:, :WIDTH] == GREEN).all()
    assert (panels[:, -WIDTH:] == VIOLET).all()
    assert page.shape[0] % 2 == page.shape[1] % 2 == 0
    assert [columns_of(number) for number in (1, 2, 3, 4, 5)] == [1, 2, 3, 2, 3]
    page = compose([made_up("", color) for color in (GREEN, VIOLET, VIOLET, GREEN)], heading(), 0)
    assert count(page, GREEN) == count(page, VIOLET) == 2 * WIDTH * HEIGHT


def test_the_title_and_the_fault_line_turn_red_with_the_fault():
    takes = [made_up("NM", GREEN), made_up("UMC", VIOLET)]
    before, at = (parts(compose(takes, heading(), number))[0] for number in (8, 9))
    # the square of the legend is red all the time
    assert count(at, ALARM) > count(before, ALARM) + 100
    healthy = parts(compose(takes, heading(onset=None, mark=None), 19))[0]
    assert count(healthy, ALARM) == 0


def test_the_time_line_fills_and_stops_where_a_robot_fell():
    up, down = made_up("NM", GREEN), made_up("UMC", VIOLET, fell=30)
    early, late, end = (parts(compose([up, down], heading(), number))[2] for number in (4, 13, 19))
    assert 0 < count(early, WALKING) < count(late, WALKING) < count(end, WALKING)
    assert count(late, FALLEN) < 30  # step 28: it is still up; edges of letters are gray, too
    assert count(end, FALLEN) > 500
    both_up = parts(compose([up, made_up("UMC", VIOLET)], heading(), 19))[2]
    assert count(both_up, WALKING) > count(end, WALKING)
    # the bar of the robot that fell ends at 30 of 40 steps: a quarter of its way is gray
    row = end[(np.abs(end.astype(int) - FALLEN).max(axis=-1) <= 6).sum(axis=1).argmax()]
    gray, blue = count(row[None], FALLEN), count(row[None], WALKING)
    assert gray / (gray + blue) == pytest.approx(0.25, abs=0.05)


def test_a_fall_and_a_failed_simulation_are_said_from_their_frame_on():
    def captions(take, number):
        return count(parts(compose([take], heading(onset=None, mark=None), number))[0], ALARM)

    for take in (made_up("NM", GREEN, fell=30), made_up("NM", GREEN, failed=30)):
        assert captions(take, 13) == 0
        assert captions(take, 14) > 50
    assert captions(made_up("NM", GREEN), 19) == 0


def test_a_long_name_gives_way_to_the_distance():
    short, long = (made_up(name, GREEN, fell=10) for name in ("", "a policy with a very long name " * 3))
    one, other = (parts(compose([take, take], heading(), 19))[0] for take in (short, long))
    changed = np.flatnonzero((one != other).any(axis=(0, 2)))
    left = changed[changed < WIDTH]
    words = np.flatnonzero((np.abs(one[-20:, :WIDTH].astype(int) - ALARM).max(axis=-1) <= 6).any(axis=0))
    assert left.max() < words[0]


def test_the_scale_of_the_time_line_has_round_steps():
    assert [tick_seconds(length) for length in (0.6, 2.4, 10.0, 15.0, 1e4)] == [0.1, 0.5, 1.0, 2.0, 50.0]


def test_a_storyboard_shows_begin_and_end_and_the_last_healthy_frame():
    steps = [2 * (number + 1) for number in range(FRAMES)]
    picks = story_picks(steps, ONSET)
    assert picks == sorted(set(picks))
    assert (picks[0], picks[-1], len(picks)) == (0, FRAMES - 1, STORY_STILLS)
    assert 8 in picks  # step 18; step 20 has the fault
    assert story_picks(steps, 24) == [0, 4, 8, 10, 15, 19]  # frame 10 shows step 22, and 11 has given way
    assert story_picks(steps, None) == [0, 4, 8, 11, 15, 19]
    assert story_picks([2], 1) == [0]
    assert story_picks([2, 4], 3) == [0, 1]


def test_a_storyboard_has_a_row_for_each_policy():
    one, other = made_up("NM", GREEN), made_up("UMC", VIOLET)
    for number in range(9, FRAMES):  # the fault is seen in the lower row's pictures
        other.frames[number] = np.full((HEIGHT, WIDTH, 3), (240, 240, 0), dtype=np.uint8)
    page = storyboard([one, other], heading(), still_width=WIDTH)
    area = WIDTH * HEIGHT
    seen = [count(page, color) / area for color in (GREEN, VIOLET, (240, 240, 0))]
    healthy = sum(number < 9 for number in story_picks([2 * (number + 1) for number in range(FRAMES)], ONSET))
    assert seen == pytest.approx([6, healthy, 6 - healthy], abs=0.01)
    lower = page[-HEIGHT:]
    assert count(lower, GREEN) == 0
    assert count(lower, VIOLET) > 0
