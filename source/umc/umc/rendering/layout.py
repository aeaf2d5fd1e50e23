# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Page of a film: title, a panel for each policy, time line; and the storyboard. No simulator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from umc.rendering.colors import FAULT_COLOR, SENSOR_COLOR, rgb
from umc.rendering.writers import Frame

Color = tuple[int, int, int]

INK, PALE, PAPER = (25, 28, 33), (104, 112, 122), (255, 255, 255)
"""Colors of texts, of texts that matter less, and of the page."""

ALARM, SENSOR = rgb(FAULT_COLOR), rgb(SENSOR_COLOR)
"""Colors of faults and falls, and of dead sensors."""

WALKING, FALLEN, AHEAD = (52, 104, 168), (176, 182, 190), (228, 232, 237)
"""Colors of the time line: robot is up, has fallen, time to come."""

LEGEND = "faulty joint"

REFERENCE_WIDTH = 640
"""Width of the page that the sizes below are meant for [px]; they grow with the page."""

TITLE, TEXT, SMALL, GAP, MARGIN = 15, 13, 11, 4, 6
"""Heights of letters, white between two panels and around texts at that width [px]."""

MAX_COLUMNS = 3
"""Panels side by side; four make two rows."""

STORY_STILLS, STORY_STILL_WIDTH = 6, 300
"""Stills in a row of the storyboard, and their width [px]."""

TICKS, MAX_TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0), 10
"""Steps of the time line's scale [s], and numbers on it."""


@dataclass(frozen=True)
class Moment:
    """What a caption says about a robot at one frame."""

    step: int
    """Env step."""
    distance: float
    """Greatest distance so far from the start or, after the fault, from the place of the fault [m]."""


@dataclass
class Take:
    """One policy's part of a film."""

    name: str
    """What the film calls it."""
    frames: list[Frame] = field(default_factory=list)
    """Pictures without captions."""
    moments: list[Moment] = field(default_factory=list)
    """One for each frame."""
    onset: int | None = None
    """First env step in which a fault was on."""
    joints: tuple[str, ...] = ()
    """Joints that were faulty then."""
    fell: int | None = None
    """Env step of the fall."""
    failed: int | None = None
    """Env step at which the simulation itself failed."""

    @property
    def ended(self) -> int | None:
        """Env step at which the robot stops walking."""
        return min((step for step in (self.fell, self.failed) if step is not None), default=None)


@dataclass(frozen=True)
class Heading:
    """What all panels have in common."""

    title: str
    """Scenario in words."""
    steps: int
    """Length of the film [env steps]."""
    step_dt: float
    """Duration of an env step [s]."""
    onset: int | None
    """Env step of the fault; None if nothing fails."""
    mark: Color | None = None
    """Color of faulty joints; None if nothing fails."""

    def failing(self, moment: Moment) -> bool:
        """Whether the fault is on at a moment."""
        return self.onset is not None and moment.step >= self.onset


def columns_of(count: int) -> int:
    """Return how many panels stand in a row: all of up to three, else about as many as there are rows."""
    return count if count <= MAX_COLUMNS else math.ceil(math.sqrt(count))


def compose(takes: Sequence[Take], heading: Heading, index: int) -> Frame:
    """Create a page, of even width and height, of one frame of all takes."""
    columns, panel_width = columns_of(len(takes)), takes[0].frames[0].shape[1]
    sizes = _Sizes(panel_width * max(columns, 2) / REFERENCE_WIDTH)
    panels = [_panel(take, heading, index, sizes) for take in takes]
    height, width = panels[0].height + sizes.gap, columns * (panel_width + sizes.gap) - sizes.gap
    header, footer = _header(takes[0], heading, index, width, sizes), _time_line(takes, heading, index, width, sizes)
    bottom = header.height + -(-len(takes) // columns) * height
    page = Image.new("RGB", (_even(width), _even(bottom + footer.height)), PAPER)
    page.paste(header, (0, 0))
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        page.paste(panel, (column * (panel_width + sizes.gap), header.height + row * height))
    page.paste(footer, (0, bottom))
    return np.asarray(page)


def storyboard(takes: Sequence[Take], heading: Heading, still_width: int = STORY_STILL_WIDTH) -> Frame:
    """Create a page of stills, ``still_width`` [px] wide, from start to end: a row for each policy."""
    sizes = _Sizes(still_width * 4 / REFERENCE_WIDTH)
    moments = takes[0].moments
    picks = story_picks([moment.step for moment in moments], heading.onset)
    height, width = takes[0].frames[0].shape[:2]
    still_height, page_width = round(height * still_width / width), len(picks) * (still_width + sizes.gap) - sizes.gap
    header = _header(takes[0], heading, len(moments) - 1, page_width, sizes, "; meters count from there")
    row = sizes.line + still_height + sizes.gap
    page = Image.new("RGB", (page_width, header.height + sizes.line + len(takes) * row), PAPER)
    page.paste(header, (0, 0))
    draw = ImageDraw.Draw(page)
    for column, index in enumerate(picks):
        left, top = column * (still_width + sizes.gap), header.height
        color = ALARM if heading.failing(moments[index]) else INK
        time = f"{moments[index].step * heading.step_dt:.2f} s"
        draw.text((left + sizes.margin, top), time, fill=color, font=_font(sizes.text))
        for number, take in enumerate(takes):
            top = header.height + sizes.line + number * row
            still = Image.fromarray(take.frames[index]).resize((still_width, still_height), Image.Resampling.LANCZOS)
            page.paste(still, (left, top + sizes.line))
            state = _state_words(take, heading, index, short=True)
            name = take.name if column == 0 else ""
            _caption(draw, (left, top, still_width), name, state, sizes, sizes.small)
    return np.asarray(page)


def story_picks(steps: Sequence[int], onset: int | None, count: int = STORY_STILLS) -> list[int]:
    """Choose frames by their env steps: evenly spread, and the last one before the fault among them."""
    picks = sorted({round(number) for number in np.linspace(0, len(steps) - 1, min(count, len(steps)))})
    healthy = [number for number, step in enumerate(steps) if onset is not None and step < onset]
    if healthy and len(picks) > 2:
        # it replaces the nearest inner pick
        nearest = min(range(1, len(picks) - 1), key=lambda place: abs(picks[place] - healthy[-1]))
        picks[nearest] = healthy[-1]
    return sorted(set(picks))


class _Sizes:
    """Sizes in pixels on a page that is ``unit`` times as wide as the reference."""

    def __init__(self, unit: float) -> None:
        self.title, self.text, self.small = (max(round(letter * unit), 7) for letter in (TITLE, TEXT, SMALL))
        self.gap, self.margin = max(round(GAP * unit), 2), max(round(MARGIN * unit), 2)
        self.line = round(1.45 * self.text)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _width(text: str, size: int) -> int:
    return math.ceil(_font(size).getlength(text))


def _fit(text: str, width: float, size: int) -> str:
    """Shorten a text to a width."""
    if _width(text, size) <= width:
        return text
    while text and _width(text + "...", size) > width:
        text = text[:-1].rstrip(" ,")
    return text + "..." if text else ""


def _even(value: int) -> int:
    return value + value % 2


def _state_words(take: Take, heading: Heading, index: int, short: bool = False) -> tuple[str, Color]:
    """Say how far a robot came or how it failed, and in which color."""
    moment = take.moments[index]
    if take.failed is not None and moment.step >= take.failed:
        return f"simulation failed at {take.failed * heading.step_dt:.1f} s", ALARM
    failing = heading.failing(moment)
    words = f"{moment.distance:.1f} m" + (" since the fault" if failing and not short else "")
    if take.fell is not None and moment.step >= take.fell:
        return f"{words}, fell at {take.fell * heading.step_dt:.1f} s", ALARM
    return words, INK if failing else PALE


def _caption(
    draw: ImageDraw.ImageDraw,
    place: tuple[int, int, int],
    name: str,
    state: tuple[str, Color],
    sizes: _Sizes,
    letters: int,
) -> None:
    """Write a name, shortened if need be, and a state right-aligned; the place is left, top and width [px]."""
    (left, top, width), (words, color) = place, state
    free = width - 3 * sizes.margin - _width(words, letters)
    draw.text((left + sizes.margin, top), _fit(name, free, sizes.text), fill=INK, font=_font(sizes.text))
    right = (left + width - sizes.margin, top + sizes.text - letters)
    draw.text(right, words, fill=color, font=_font(letters), anchor="ra")


def _panel(take: Take, heading: Heading, index: int, sizes: _Sizes) -> Image.Image:
    """Draw the caption and picture of one policy."""
    picture = Image.fromarray(take.frames[index])
    panel = Image.new("RGB", (picture.width, sizes.line + picture.height), PAPER)
    state = _state_words(take, heading, index)
    _caption(ImageDraw.Draw(panel), (0, 0, picture.width), take.name, state, sizes, sizes.text)
    panel.paste(picture, (0, sizes.line))
    return panel


def _header(take: Take, heading: Heading, index: int, width: int, sizes: _Sizes, note: str = "") -> Image.Image:
    """Draw the scenario, the faulty joints and the meaning of their color."""
    top, right = round(1.5 * sizes.title), width - sizes.margin
    page = Image.new("RGB", (width, top + sizes.line), PAPER)
    draw = ImageDraw.Draw(page)
    failing = heading.failing(take.moments[index])
    free = width - 2 * sizes.margin
    fits = (size for size in range(sizes.title, sizes.small, -1) if _width(heading.title, size) <= free)
    letters = next(fits, sizes.small)
    place, title = (sizes.margin, sizes.margin // 2 + sizes.title // 2), _fit(heading.title, free, letters)
    draw.text(place, title, fill=ALARM if failing else INK, font=_font(letters), anchor="lm")
    if heading.onset is None:
        return page
    font = _font(sizes.small)
    if heading.mark is not None:
        right -= _width(LEGEND, sizes.small)
        draw.text((right, top), LEGEND, fill=PALE, font=font)
        right, edge = right - round(1.4 * sizes.small), top + sizes.small // 5
        draw.rectangle((right, edge, right + sizes.small, edge + sizes.small), fill=heading.mark)
    onset = f"{heading.onset * heading.step_dt:.1f} s"
    joints = ", ".join(name.removesuffix("_joint") for name in take.joints)
    words = (f"failed at {onset}: {joints}" if failing else f"healthy until {onset}") + note
    words = _fit(words, right - 2 * sizes.margin, sizes.small)
    draw.text((sizes.margin, top), words, fill=ALARM if failing else PALE, font=font)
    return page


def tick_seconds(length: float) -> float:
    """Return the time [s] between two numbers on a time line of a length [s]."""
    return next((step for step in TICKS if length / step <= MAX_TICKS), TICKS[-1])


def _time_line(takes: Sequence[Take], heading: Heading, index: int, width: int, sizes: _Sizes) -> Image.Image:
    """Draw a bar for each policy, the fault and the time."""
    font, bar, space = _font(sizes.small), max(round(0.8 * sizes.small), 4), max(sizes.small // 2, 3)
    bottom = sizes.margin + len(takes) * (bar + space)
    page = Image.new("RGB", (width, bottom + round(1.6 * sizes.small)), PAPER)
    draw = ImageDraw.Draw(page)
    # a single panel has its name above it
    names = [_fit(take.name, width / 5, sizes.small) if len(takes) > 1 else "" for take in takes]
    left = 2 * sizes.margin + max(_width(name, sizes.small) for name in names)
    right = width - 2 * sizes.margin - _width("00 s", sizes.small) // 2

    def place(step: float) -> float:
        return left + (right - left) * min(step / heading.steps, 1.0)

    now = takes[0].moments[index].step
    for number, (take, name) in enumerate(zip(takes, names, strict=True)):
        y = sizes.margin + number * (bar + space)
        draw.text((sizes.margin, y + bar / 2), name, fill=INK, font=font, anchor="lm")
        draw.rectangle((left, y, right, y + bar), fill=AHEAD)
        draw.rectangle((left, y, place(now), y + bar), fill=WALKING)
        if take.ended is not None and now >= take.ended:
            end = place(take.ended)
            draw.rectangle((end, y, place(now), y + bar), fill=FALLEN)
            draw.rectangle((end - bar / 3, y, end + bar / 3, y + bar), fill=ALARM)
    length = heading.steps * heading.step_dt
    tick = tick_seconds(length)
    marks = [
        (number * tick / heading.step_dt, f"{number * tick:g} s", PALE) for number in range(int(length / tick) + 1)
    ]
    if heading.onset is not None:
        x = place(heading.onset)
        # its word replaces numbers that stand too close
        near = 0.6 * _width("fault 00 s", sizes.small)
        marks = [mark for mark in marks if abs(place(mark[0]) - x) > near] + [(heading.onset, "fault", ALARM)]
        draw.line((x, 0, x, bottom), fill=ALARM, width=max(bar // 3, 2))
    for step, word, color in marks:
        draw.line((place(step), bottom - space, place(step), bottom), fill=color)
        draw.text((place(step), bottom), word, fill=color, font=font, anchor="ma")
    draw.line((place(now), 0, place(now), bottom), fill=INK, width=max(bar // 6, 1))
    return page
