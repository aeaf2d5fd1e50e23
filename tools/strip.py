# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A walk in a row of stills: ``python -m tools.strip --checkpoint PATH --out walk.png``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from umc.evaluation.session import INTERRUPTED, USAGE_ERROR, parse, prepare
from umc.rendering.film import film_takes, robot_title
from umc.rendering.film_cfg import HEALTHY, FilmCfg
from umc.rendering.layout import INK, PALE, PAPER, Take
from umc.rendering.writers import Frame, write_png
from umc.utils.errors import UmcError

BEGIN, APART, STILLS = 3.0, 0.06, 6
"""Time of the first still, time between two [s], and how many: the robot has come up to its speed, and the strip shows
0.3 s, which is one cycle of the A1 policy that is shipped."""

PANEL = (480, 360)
"""Width and height of what the camera sees [px]."""

KEPT = 0.62
"""Part of its width that a still keeps, around the robot [-]."""

GAP, MARGIN, LETTERS = 4, 8, 18
"""White between stills, around texts, and height of letters [px]."""


def take_strip(argv: Sequence[str]) -> int:
    """Film a walk and writes its strip."""
    from umc.utils.console import quiet

    prog, about = "python -m tools.strip", "Show the walk of a healthy robot in a row of stills."
    if "-h" in argv or "--help" in argv:
        parse(list(argv), prog, about, _add_arguments)
    with quiet():
        options, overrides = parse(list(argv), prog, about, _add_arguments)
        if options.out is None or options.out.suffix.lower() != ".png":
            raise UmcError("--out must name a .png file")
        if len(options.checkpoint or ()) > 1:
            raise UmcError("one walk is shown; give one --checkpoint")
        if options.begin <= 0 or options.apart <= 0 or options.stills < 2:
            raise UmcError("--begin and --apart must be above 0 s, --stills at least 2")
        session = prepare(options, overrides, stage=1)
    options.names, options.num_envs = None, 1
    step_dt = session.env_cfg.sim.dt * session.env_cfg.decimation
    apart, first = max(round(options.apart / step_dt), 1), max(round(options.begin / step_dt), 1)
    steps = [first + number * apart for number in range(options.stills)]
    cfg = FilmCfg(steps=steps[-1] + 1, scenario=HEALTHY, onset=1, size=PANEL)
    protocol = cfg.protocol(session.info.robot, options.seed)
    (take,), step_dt = film_takes(session, protocol, cfg, frozenset(steps))
    info = session.info
    title = f"{robot_title(session)}, {info.model}, stage {info.stage}, iteration {info.iteration}"
    if take.ended is not None:
        print(f"the robot fell at {take.ended * step_dt:.1f} s")
    write_png(options.out, strip(take, title, step_dt))
    print(f"picture: {options.out}", flush=True)
    return 0


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--begin", type=float, default=BEGIN, help=f"time of the first still [s]; {BEGIN} without it")
    add("--apart", type=float, default=APART, help=f"time between two stills [s]; {APART} without it")
    add("--stills", type=int, default=STILLS, help=f"how many; {STILLS} without it")


def strip(take: Take, title: str, step_dt: float) -> Frame:
    """Put stills in a row."""
    height, width = take.frames[0].shape[:2]
    cut = round(width * (1.0 - KEPT) / 2)
    stills = [frame[:, cut : width - cut] for frame in take.frames]
    wide = stills[0].shape[1]
    line = round(1.6 * LETTERS)
    page = Image.new("RGB", (len(stills) * (wide + GAP) - GAP, 2 * line + height), PAPER)
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(LETTERS)
    ends = take.moments[0], take.moments[-1]
    seconds = (ends[1].step - ends[0].step) * step_dt
    speed = (ends[1].distance - ends[0].distance) / seconds
    words = f"{title}: {speed:.2f} m/s over these {seconds:.1f} s"
    draw.text((MARGIN, line / 2), words, fill=INK, font=font, anchor="lm")
    for number, (still, moment) in enumerate(zip(stills, take.moments, strict=True)):
        left = number * (wide + GAP)
        page.paste(Image.fromarray(np.ascontiguousarray(still)), (left, line))
        place = (left + MARGIN, line + height + line / 2)
        draw.text(place, f"{moment.step * step_dt:.2f} s", fill=PALE, font=font, anchor="lm")
    return np.asarray(page)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the strip that the command line asks for."""
    try:
        return take_strip(sys.argv[1:] if argv is None else argv)
    except UmcError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # the teardown of an engine may hang
