# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Puts several policies side by side: title, a panel for each, a time line; and a storyboard. No simulator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from umc.rendering.colors import FAULT_COLOR, SENSOR_COLOR
from umc.rendering.writers import Frame

Color = tuple[int, int, int]

INK: Color = (25, 28, 33)
"""Of texts."""

PALE: Color = (104, 112, 122)
"""Of texts that matter less."""

PAPER: Color = (255, 255, 255)
"""Of the page."""

ALARM: Color = (round(255 * FAULT_COLOR[0]), round(255 * FAULT_COLOR[1]), round(255 * FAULT_COLOR[2]))
"""Of faults and falls; that of broken joints."""

SENSOR: Color = (round(255 * SENSOR_COLOR[0]), round(255 * SENSOR_COLOR[1]), round(255 * SENSOR_COLOR[2]))
"""Of dead sensors."""

WALKING: Color = (52, 104, 168)
"""Of the time line while a robot is up."""

EMPTY: Color = (228, 232, 237)
"""Of the time line ahead."""

FALLEN: Color = (176, 182, 190)
"""Of the time line after a fall."""

LEGEND = "faulty joint"

REFERENCE_WIDTH = 640
"""Width for which the sizes below are meant [px]; they grow with the page."""

TITLE, TEXT, SMALL = 15, 13, 11
"""Heights of letters at that width [px]."""

GAP = 4
"""White between two panels at that width [px]."""

MARGIN = 6
"""White around texts at that width [px]."""

MOST_IN_A_ROW = 3
"""Panels beside each other; four stand two and two."""

STORY_STILLS = 6
"""Stills in a row of the storyboard."""

STORY_STILL_WIDTH = 300
"""Width of such a still [px]."""

SECONDS_PER_TICK = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
"""Steps of the time line's scale [s]."""

MOST_TICKS = 10
"""Numbers on it."""


@dataclass(frozen=True)
class Moment:
    """What a caption says of a robot at one frame."""

    step: int
    """Env step."""
    distance: float
    """Greatest distance so far from the start or, once the fault has set in, from the place of onset [m]."""


@dataclass
class Take:
    """One policy's part of a clip."""

    name: str
    """What the clip calls it."""
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
    broke: int | None = None
    """Env step at which the simulation itself failed."""

    @property
    def ended(self) -> int | None:
        """Env step after which the robot walks no more."""
        ends = [step for step in (self.fell, self.broke) if step is not None]
        return min(ends, default=None)


@dataclass(frozen=True)
class Heading:
    """What all panels have in common."""

    title: str
    """Scenario in words."""
    steps: int
    """Length of the clip [env steps]."""
    step_dt: float
    """Duration of an env step [s]."""
    onset: int | None
    """Env step of the fault; None if nothing breaks."""
    mark: Color | None = None
    """Colour of faulty joints; None if nothing breaks."""


def columns_of(count: int) -> int:
    """How many panels stand in a row.

    Args:
        count: Number of panels.

    Returns:
        All of up to three, else about as many as there are rows.
    """
    return count if count <= MOST_IN_A_ROW else math.ceil(math.sqrt(count))


def compose(takes: Sequence[Take], heading: Heading, index: int, panel_width: int) -> Frame:
    """Makes one frame of a clip.

    Args:
        takes: The policies.
        heading: What they have in common.
        index: Number of the frame.
        panel_width: Width of a panel [px]; frames are scaled to it.

    Returns:
        The frame, width and height even.
    """
    columns = columns_of(len(takes))
    unit = panel_width * columns / REFERENCE_WIDTH if columns > 1 else panel_width / (REFERENCE_WIDTH / 2)
    size = _Sizes(unit)
    panels = [_panel(take, heading, index, panel_width, size) for take in takes]
    height, width = panels[0].height, columns * (panel_width + size.gap) - size.gap
    rows = -(-len(takes) // columns)
    header = _header(takes, heading, index, width, size)
    footer = _footer(takes, heading, index, width, size)
    body = rows * (height + size.gap)
    page = Image.new("RGB", (_even(width), _even(header.height + body + footer.height)), PAPER)
    page.paste(header, (0, 0))
    for number, panel in enumerate(panels):
        left, top = number % columns * (panel_width + size.gap), number // columns * (height + size.gap)
        page.paste(panel, (left, header.height + top))
    page.paste(footer, (0, header.height + body))
    return np.asarray(page)


def storyboard(takes: Sequence[Take], heading: Heading, still_width: int = STORY_STILL_WIDTH) -> Frame:
    """Stills from begin to end, a row for each policy.

    Args:
        takes: The policies.
        heading: What they have in common.
        still_width: Width of a still [px].

    Returns:
        One image.
    """
    size = _Sizes(still_width / (REFERENCE_WIDTH / 4))
    picks = story_picks([moment.step for moment in takes[0].moments], heading.onset)
    still_height = round(takes[0].frames[0].shape[0] * still_width / takes[0].frames[0].shape[1])
    width = len(picks) * (still_width + size.gap) - size.gap
    header = _header(takes, heading, len(takes[0].moments) - 1, width, size, "metres count from there")
    times = size.line
    row = size.line + still_height + size.gap
    page = Image.new("RGB", (width, header.height + times + len(takes) * row), PAPER)
    page.paste(header, (0, 0))
    draw = ImageDraw.Draw(page)
    for column, index in enumerate(picks):
        left = column * (still_width + size.gap)
        step = takes[0].moments[index].step
        hit = heading.onset is not None and step >= heading.onset
        draw.text(
            (left + size.margin, header.height),
            f"{step * heading.step_dt:.2f} s",
            fill=ALARM if hit else INK,
            font=_font(size.text),
        )
        for number, take in enumerate(takes):
            top = header.height + times + number * row
            page.paste(_scaled(take.frames[index], still_width), (left, top + size.line))
            words, color = _state_words(take, heading, index, short=True)
            name = take.name if column == 0 else ""
            free = still_width - 3 * size.margin - _width(words, size.small)
            draw.text((left + size.margin, top), _fit(name, free, size.text), fill=INK, font=_font(size.text))
            end = left + still_width - size.margin
            draw.text((end, top + size.text - size.small), words, fill=color, font=_font(size.small), anchor="ra")
    return np.asarray(page)


def story_picks(steps: Sequence[int], onset: int | None, count: int = STORY_STILLS) -> list[int]:
    """Which frames a storyboard shows: evenly spread, and the last healthy one among them.

    Args:
        steps: Env step of every frame.
        onset: Env step of the fault; None if nothing breaks.
        count: Number of stills.

    Returns:
        Numbers of frames, increasing.
    """
    last = len(steps) - 1
    picks = sorted({round(number) for number in np.linspace(0, last, min(count, len(steps)))})
    healthy = [number for number, step in enumerate(steps) if onset is not None and step < onset]
    if healthy and len(picks) > 2:
        # the inner pick that is nearest to it gives way
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
def _font(size: int) -> Any:
    return ImageFont.load_default(size)


def _width(text: str, size: int) -> int:
    return math.ceil(_font(size).getlength(text))


def _fit(text: str, width: float, size: int) -> str:
    """The text, or as much of its begin as fits."""
    if _width(text, size) <= width:
        return text
    while text and _width(text + "...", size) > width:
        text = text[:-1].rstrip(" ,")
    return text + "..." if text else ""


def _even(value: int) -> int:
    return value + value % 2


def _scaled(frame: Frame, width: int) -> Image.Image:
    image = Image.fromarray(frame)
    if image.width == width:
        return image
    return image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)


def _state_words(take: Take, heading: Heading, index: int, short: bool = False) -> tuple[str, Color]:
    """How a robot does at a frame, and the colour to say it in."""
    moment = take.moments[index]
    if take.broke is not None and moment.step >= take.broke:
        return f"simulation failed at {take.broke * heading.step_dt:.1f} s", ALARM
    since = heading.onset is not None and moment.step >= heading.onset
    words = f"{moment.distance:.1f} m" + (" since the fault" if since and not short else "")
    if take.fell is not None and moment.step >= take.fell:
        return f"{words}, fell at {take.fell * heading.step_dt:.1f} s", ALARM
    return words, INK if since else PALE


def _panel(take: Take, heading: Heading, index: int, width: int, size: _Sizes) -> Image.Image:
    """Caption and picture of one policy."""
    picture = _scaled(take.frames[index], width)
    panel = Image.new("RGB", (width, size.line + picture.height), PAPER)
    draw = ImageDraw.Draw(panel)
    words, color = _state_words(take, heading, index)
    free = width - 3 * size.margin - _width(words, size.text)
    draw.text((size.margin, 0), _fit(take.name, free, size.text), fill=INK, font=_font(size.text))
    draw.text((width - size.margin, 0), words, fill=color, font=_font(size.text), anchor="ra")
    panel.paste(picture, (0, size.line))
    return panel


def _header(
    takes: Sequence[Take], heading: Heading, index: int, width: int, size: _Sizes, note: str = ""
) -> Image.Image:
    """Scenario, faulty joints and the meaning of colours."""
    page = Image.new("RGB", (width, round(1.5 * size.title) + size.line), PAPER)
    draw = ImageDraw.Draw(page)
    hit = heading.onset is not None and takes[0].moments[index].step >= heading.onset
    color = ALARM if hit else INK
    free = width - 2 * size.margin
    letters = next((letter for letter in range(size.title, size.small, -1) if _width(heading.title, letter) <= free), 0)
    letters = letters or size.small
    middle = size.margin // 2 + size.title // 2
    draw.text((size.margin, middle), _fit(heading.title, free, letters), fill=color, font=_font(letters), anchor="lm")
    if heading.onset is None:
        return page
    top, right = round(1.5 * size.title), width - size.margin
    if heading.mark is not None:
        right -= _width(LEGEND, size.small)
        draw.text((right, top), LEGEND, fill=PALE, font=_font(size.small))
        right -= round(1.4 * size.small)
        edge = top + size.small // 5
        draw.rectangle((right, edge, right + size.small, edge + size.small), fill=heading.mark)
    onset = f"{heading.onset * heading.step_dt:.1f} s"
    joints = ", ".join(name.removesuffix("_joint") for name in takes[0].joints)
    words = f"failed at {onset}: {joints}" if hit else f"healthy until {onset}"
    words = f"{words}; {note}" if note else words
    words = _fit(words, right - 2 * size.margin, size.small)
    draw.text((size.margin, top), words, fill=ALARM if hit else PALE, font=_font(size.small))
    return page


def tick_seconds(length: float) -> float:
    """Step of a time line's scale.

    Args:
        length: Length of the time line [s].

    Returns:
        Time between two numbers [s].
    """
    return next((step for step in SECONDS_PER_TICK if length / step <= MOST_TICKS), SECONDS_PER_TICK[-1])


def _footer(takes: Sequence[Take], heading: Heading, index: int, width: int, size: _Sizes) -> Image.Image:
    """The time line: a bar for each policy, the fault, the time."""
    bar, space = max(round(0.8 * size.small), 4), max(size.small // 2, 3)
    top = size.margin
    bottom = top + len(takes) * (bar + space)
    page = Image.new("RGB", (width, bottom + round(1.6 * size.small)), PAPER)
    draw = ImageDraw.Draw(page)
    # a panel that is alone has its name above it
    names = [_fit(take.name, width / 5, size.small) if len(takes) > 1 else "" for take in takes]
    left = 2 * size.margin + max(_width(name, size.small) for name in names)
    right = width - 2 * size.margin - _width("00 s", size.small) // 2

    def place(step: float) -> float:
        return left + (right - left) * min(step / heading.steps, 1.0)

    now = takes[0].moments[index].step
    for number, (take, name) in enumerate(zip(takes, names, strict=True)):
        y = top + number * (bar + space)
        draw.text((size.margin, y + bar / 2), name, fill=INK, font=_font(size.small), anchor="lm")
        draw.rectangle((left, y, right, y + bar), fill=EMPTY)
        draw.rectangle((left, y, place(now), y + bar), fill=WALKING)
        if take.ended is not None and now >= take.ended:
            draw.rectangle((place(take.ended), y, place(now), y + bar), fill=FALLEN)
            draw.rectangle((place(take.ended) - bar / 3, y, place(take.ended) + bar / 3, y + bar), fill=ALARM)
    length, step = heading.steps * heading.step_dt, tick_seconds(heading.steps * heading.step_dt)
    marks = [
        (number * step / heading.step_dt, f"{number * step:g} s", PALE) for number in range(int(length / step) + 1)
    ]
    if heading.onset is not None:
        # its word takes the place of numbers that stand too close
        near = _width("fault 00 s", size.small)
        marks = [mark for mark in marks if abs(place(mark[0]) - place(heading.onset)) > near * 0.6]
        marks.append((heading.onset, "fault", ALARM))
        x = place(heading.onset)
        draw.line((x, 0, x, bottom), fill=ALARM, width=max(bar // 3, 2))
    for at, word, color in marks:
        draw.line((place(at), bottom - space, place(at), bottom), fill=color)
        draw.text((place(at), bottom), word, fill=color, font=_font(size.small), anchor="ma")
    x = place(now)
    draw.line((x, 0, x, bottom), fill=INK, width=max(bar // 6, 1))
    return page
