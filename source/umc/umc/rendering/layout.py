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

from umc.rendering.colors import FAULT_COLOR, rgb
from umc.rendering.writers import Frame

Color = tuple[int, int, int]

INK, PALE, PAPER = (25, 28, 33), (104, 112, 122), (255, 255, 255)
"""Colors of texts, of texts that matter less, and of the page."""

ALARM = rgb(FAULT_COLOR)
"""Color of faults and falls."""

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
    distance: float
    """Greatest distance so far from the start or, after the fault, from the place of the fault [m]."""


@dataclass
class Take:
    """One policy's part of a film."""

    name: str
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
    steps: int
    """Length of the film [env steps]."""
    step_dt: float
    """Duration of an env step [s]."""
    onset: int | None
    """Env step of the fault; None if nothing fails."""
    mark: Color | None = None
    """Color of faulty joints; None if nothing fails."""

    def failing(self, moment: Moment) -> bool:
        """Return whether the fault is on at a moment."""
        return self.onset is not None and moment.step >= self.onset


def columns_of(count: int) -> int:
    """Return how many panels stand in a row: all of up to three, else about as many as there are rows."""
    return count if count <= MAX_COLUMNS else math.ceil(math.sqrt(count))


def compose(takes: Sequence[Take], heading: Heading, index: int) -> Frame:
    """Create a page, of even width and height, of one frame of all takes."""
    columns, (height, width) = columns_of(len(takes)), takes[0].frames[0].shape[:2]
    page = _Page(heading, columns, width, width * max(columns, 2) / REFERENCE_WIDTH)
    row = page.line + height + page.gap
    bottom = page.header + -(-len(takes) // columns) * row
    page.open(bottom + page.margin + len(takes) * page.bar_row + round(1.6 * page.small))
    page.write_header(takes[0], index)
    for number, take in enumerate(takes):
        page.add_panel(take, index, (number % columns, page.header + number // columns * row))
    page.draw_time_line(takes, index, bottom)
    return np.asarray(page.image)


def storyboard(
    takes: Sequence[Take], heading: Heading, still_width: int = STORY_STILL_WIDTH, stills: int = STORY_STILLS
) -> Frame:
    """Create a page of stills, ``still_width`` [px] wide, from start to end: a row for each policy."""
    moments, (height, width) = takes[0].moments, takes[0].frames[0].shape[:2]
    picks = story_picks([moment.step for moment in moments], heading.onset, stills)
    page = _Page(heading, len(picks), still_width, still_width * 4 / REFERENCE_WIDTH)
    row = page.line + round(height * still_width / width) + page.gap
    page.open(page.header + page.line + len(takes) * row)
    page.write_header(takes[0], len(moments) - 1, "; meters count from there")
    for column, index in enumerate(picks):
        color = ALARM if heading.failing(moments[index]) else INK
        time = f"{moments[index].step * heading.step_dt:.2f} s"
        page.write((column * (still_width + page.gap) + page.margin, page.header), time, page.text, color)
        for number, take in enumerate(takes):
            page.add_panel(take, index, (column, page.header + page.line + number * row), story=True)
    return np.asarray(page.image)


def story_picks(steps: Sequence[int], onset: int | None, count: int = STORY_STILLS) -> list[int]:
    """Choose frames by their env steps: evenly spread, and the last one before the fault among them."""
    picks = sorted({round(number) for number in np.linspace(0, len(steps) - 1, min(count, len(steps)))})
    healthy = [number for number, step in enumerate(steps) if onset is not None and step < onset]
    if healthy and len(picks) > 2:
        # it replaces the nearest inner pick
        nearest = min(range(1, len(picks) - 1), key=lambda place: abs(picks[place] - healthy[-1]))
        picks[nearest] = healthy[-1]
    return sorted(set(picks))


def tick_seconds(length: float) -> float:
    """Return the time [s] between two numbers on a time line of a length [s]."""
    return next((step for step in TICKS if length / step <= MAX_TICKS), TICKS[-1])


class _Page:
    """A page of panels; ``unit`` is the size of its letters and spaces relative to those of the reference."""

    def __init__(self, heading: Heading, columns: int, panel_width: int, unit: float) -> None:
        self.heading, self.panel_width = heading, panel_width
        self.title, self.text, self.small = (max(round(size * unit), 7) for size in (TITLE, TEXT, SMALL))
        self.gap, self.margin = (max(round(size * unit), 2) for size in (GAP, MARGIN))
        self.line = round(1.45 * self.text)
        self.header = round(1.5 * self.title) + self.line
        self.bar = max(round(0.8 * self.small), 4)
        self.bar_row = self.bar + max(self.small // 2, 3)
        self.width = columns * (panel_width + self.gap) - self.gap

    def open(self, height: int) -> None:
        self.image = Image.new("RGB", (self.width + self.width % 2, height + height % 2), PAPER)
        self.draw = ImageDraw.Draw(self.image)

    def write(self, place: tuple[float, float], words: str, size: int, color: Color, anchor: str = "la") -> None:
        self.draw.text(place, words, fill=color, font=_font(size), anchor=anchor)

    def write_header(self, take: Take, index: int, note: str = "") -> None:
        """Write the scenario, the faulty joints and the meaning of their color."""
        heading, top, right = self.heading, self.header - self.line, self.width - self.margin
        failing = heading.failing(take.moments[index])
        free = right - self.margin
        fits = (size for size in range(self.title, self.small, -1) if _width(heading.title, size) <= free)
        size = next(fits, self.small)
        place = (self.margin, self.margin // 2 + self.title // 2)
        self.write(place, _fit(heading.title, free, size), size, ALARM if failing else INK, "lm")
        if heading.onset is None:
            return
        if heading.mark is not None:
            right -= _width(LEGEND, self.small)
            self.write((right, top), LEGEND, self.small, PALE)
            right, edge = right - round(1.4 * self.small), top + self.small // 5
            self.draw.rectangle((right, edge, right + self.small, edge + self.small), fill=heading.mark)
        onset = f"{heading.onset * heading.step_dt:.1f} s"
        joints = ", ".join(name.removesuffix("_joint") for name in take.joints)
        joints = joints or ("IMU" if heading.mark is None else "-")  # no joint where the simulation ended before
        words = (f"failed at {onset}: {joints}" if failing else f"healthy until {onset}") + note
        words = _fit(words, right - 2 * self.margin, self.small)
        self.write((self.margin, top), words, self.small, ALARM if failing else PALE)

    def add_panel(self, take: Take, index: int, place: tuple[int, int], story: bool = False) -> None:
        """Add a picture at a column and row [px], below the policy's name and how far it came or how it failed."""
        column, top = place
        left, picture = column * (self.panel_width + self.gap), Image.fromarray(take.frames[index])
        if picture.width != self.panel_width:
            height = round(picture.height * self.panel_width / picture.width)
            picture = picture.resize((self.panel_width, height), Image.Resampling.LANCZOS)
        self.image.paste(picture, (left, top + self.line))
        words, color = _state_words(take, self.heading, index, story)
        size, name = (self.small, "" if column else take.name) if story else (self.text, take.name)
        free = self.panel_width - 3 * self.margin - _width(words, size)
        self.write((left + self.margin, top), _fit(name, free, self.text), self.text, INK)
        right = left + self.panel_width - self.margin
        self.write((right, top + self.text - size), words, size, color, "ra")

    def draw_time_line(self, takes: Sequence[Take], index: int, top: int) -> None:
        """Draw a bar for each policy, the fault and the time."""
        heading, bar, now = self.heading, self.bar, takes[0].moments[index].step
        # a single panel has its name above it
        names = [_fit(take.name, self.width / 5, self.small) if len(takes) > 1 else "" for take in takes]
        left = 2 * self.margin + max(_width(name, self.small) for name in names)
        right = self.width - 2 * self.margin - _width("00 s", self.small) // 2
        bottom = top + self.margin + len(takes) * self.bar_row

        def place(step: float) -> float:
            return left + (right - left) * min(step / heading.steps, 1.0)

        for number, (take, name) in enumerate(zip(takes, names, strict=True)):
            y = top + self.margin + number * self.bar_row
            self.write((self.margin, y + bar / 2), name, self.small, INK, "lm")
            self.draw.rectangle((left, y, right, y + bar), fill=AHEAD)
            self.draw.rectangle((left, y, place(now), y + bar), fill=WALKING)
            if take.ended is not None and now >= take.ended:
                end = place(take.ended)
                self.draw.rectangle((end, y, place(now), y + bar), fill=FALLEN)
                self.draw.rectangle((end - bar / 3, y, end + bar / 3, y + bar), fill=ALARM)
        tick = tick_seconds(heading.steps * heading.step_dt)
        count = int(heading.steps * heading.step_dt / tick) + 1
        marks = [(number * tick / heading.step_dt, f"{number * tick:g} s", PALE) for number in range(count)]
        if heading.onset is not None:
            x = place(heading.onset)
            # its word replaces numbers that stand too close
            near = 0.6 * _width("fault 00 s", self.small)
            marks = [mark for mark in marks if abs(place(mark[0]) - x) > near] + [(heading.onset, "fault", ALARM)]
            self.draw.line((x, top, x, bottom), fill=ALARM, width=max(bar // 3, 2))
        for step, word, color in marks:
            self.draw.line((place(step), bottom + bar - self.bar_row, place(step), bottom), fill=color)
            self.write((place(step), bottom), word, self.small, color, "ma")
        self.draw.line((place(now), top, place(now), bottom), fill=INK, width=max(bar // 6, 1))


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


def _state_words(take: Take, heading: Heading, index: int, short: bool) -> tuple[str, Color]:
    """Say how far a robot came or how it failed, and in which color."""
    moment = take.moments[index]
    if take.failed is not None and moment.step >= take.failed:
        return f"simulation failed at {take.failed * heading.step_dt:.1f} s", ALARM
    failing = heading.failing(moment)
    words = f"{moment.distance:.1f} m" + (" since the fault" if failing and not short else "")
    if take.fell is not None and moment.step >= take.fell:
        return f"{words}, fell at {take.fell * heading.step_dt:.1f} s", ALARM
    return words, INK if failing else PALE
