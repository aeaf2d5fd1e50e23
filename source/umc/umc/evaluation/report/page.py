# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The HTML page of a report: everything in one file, without network and without scripts."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from umc.evaluation.estimates import Estimates
from umc.evaluation.metrics import main_rates
from umc.evaluation.report.paper import departures
from umc.evaluation.report.renderers import Table, percent, printed, render
from umc.evaluation.report.screen import healthy_falls
from umc.evaluation.report.tables import TOO_FEW
from umc.utils.naming import display_name

MANY_LEFT_OUT = 0.05
"""Share of robots left out above which the summary says so."""

FEW_ROBOTS = 30
"""Robots of a scenario below which the summary says so: an interval of a rate is then about 35 points wide."""

FEW_SEEDS = 5
"""Training seeds below which the summary says so: the interval is wide and rests on the shape of the scatter."""

SECTIONS = {
    "summary": "Summary",
    "method": "What the figures mean",
    "conditions": "Conditions",
    "pictures": "Pictures",
    "tables": "Tables",
    "differences": "Differences between policies",
    "parts": "Broken down",
    "reproduce": "How to reproduce this report",
}

TITLES = {
    "num_envs": "robots of a cell in the original",
    "steps": "episode [env steps]",
    "num_joints": "faulty joints, from and to",
    "settings": "settings (onset in env steps)",
    "command": "command x [m/s], y [m/s], yaw [rad/s]",
    "radii": "radii [m]",
    "track": "terrain track [m]",
    "draws": "draws of number and joints",
    "noise": "observations as noisy as in the training",
    "push": "pushes of up to [m/s]",
}
"""What the page calls fields of the protocol."""


def summary(estimates: Estimates) -> tuple[list[str], list[str]]:
    """State the findings in a few sentences, and the reasons to read them with care."""
    study, groups = estimates.study, estimates.groups
    rates = main_rates(study.protocol.radii)
    found = []
    for name in groups:
        shown = [(estimates.group(name, rate.key), rate) for rate in rates]
        if any(figure is None for figure, _ in shown):
            found.append(f"{name}: no robot stood at onset.")
            continue
        found.append(f"{name}: " + "; ".join(f"{percent(figure)} {rate.meaning}" for figure, rate in shown) + ".")
    first, *others = groups
    for second in others:
        words = []
        for rate in rates:
            one = estimates.difference(first, second, rate.key)
            if one is not None:
                value, low, high = (printed(100 * one, 0, "+") for one in (one.value, one.low, one.high))
                words.append(f"{rate.title} {value} points")
                if not math.isnan(one.p):
                    p = "p < 0.001" if one.p < 0.001 else f"p = {one.p:.3f}"
                    words[-1] += f" [{low}, {high}], {p}"
        if words:
            found.append(f"{second} against {first}, same robots: {'; '.join(words)}.")
    return found, _cautions(estimates)


def _cautions(estimates: Estimates) -> list[str]:
    study, found = estimates.study, []
    found += [str(study.about[key]) for key in ("note", "detector") if study.about.get(key)]
    if study.about.get("quick"):
        found.append("This is a quick run: its episodes are far too short for figures.")
    if estimates.too_few:
        found.append(TOO_FEW)
    found += healthy_falls(study)
    for number, result in enumerate(study.policies):
        counts = estimates.counts(number)
        left_out = counts["envs"] - counts["evaluated"]
        if left_out > MANY_LEFT_OUT * counts["envs"]:
            words = f"{left_out} of {counts['envs']} robots are left out; see the table of robots evaluated."
            found.append(f"{result.label}: {words}")
        few = min(estimates.counts(number, place)["evaluated"] for place in range(len(study.protocol.scenarios)))
        if few < FEW_ROBOTS:
            found.append(f"{result.label}: as few as {few} robots were evaluated in a scenario; look at the intervals.")
    alone = [name for name, members in estimates.groups.items() if len(members) == 1]
    if alone:
        found.append(
            f"One training each ({', '.join(alone)}): intervals over robots say nothing about another training."
        )
    for name, members in estimates.groups.items():
        if 1 < len(members) < FEW_SEEDS:
            found.append(f"{name}: {len(members)} trainings, which know little of what another would bring.")
    return found


def html_page(
    estimates: Estimates,
    tables: Sequence[Table],
    pictures: Sequence[tuple[str, bytes, str]],
    files: Mapping[str, str],
) -> str:
    """Render the page."""
    study = estimates.study
    protocol, about = study.protocol, study.about
    findings, cautions = summary(estimates)
    main, *rest = tables
    differences = [table for table in rest if table.key.startswith("difference_")]
    slices = [table for table in rest if table.key.startswith("by_")]
    empty = [name for name, some in (("differences", differences), ("parts", slices)) if not some]
    conditions = {**asdict(protocol), "settings": "; ".join(setting.name for setting in protocol.settings)}
    return render(
        "report.html",
        title=f"{display_name(protocol.robot)} under faults: {', '.join(estimates.groups)}",
        sections={key: name for key, name in SECTIONS.items() if key not in empty},
        protocol=protocol,
        num_robots=len(study.policies[0].run.cell),
        policies=study.policies,
        findings=findings,
        cautions=cautions,
        main=main,
        others=[table for table in rest if table not in differences and table not in slices],
        differences=differences,
        slices=slices,
        conditions={TITLES.get(key, key): value for key, value in conditions.items()},
        departures=departures(study),
        run={key: value for key, value in about.items() if key not in ("command_line", "versions", "note", "detector")},
        # each an image of its own: ids inside several drawings in one document would collide
        pictures=[
            {"name": name, "caption": caption, "data": base64.b64encode(svg).decode()}
            for name, svg, caption in pictures
        ],
        command=about.get("command_line"),
        versions=about.get("versions", {}),
        files=files,
    )
