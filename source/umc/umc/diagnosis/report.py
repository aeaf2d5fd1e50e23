# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The report of a diagnosis: numbers as JSON, tables as Markdown, pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from umc.diagnosis import figures
from umc.diagnosis.faults import KindRange
from umc.diagnosis.figures import KNOWN, WITHIN, Events
from umc.diagnosis.recording import Recording
from umc.evaluation.report import write_all
from umc.evaluation.report.plots import COLORS, FAINT, STYLE, image
from umc.evaluation.report.renderers import percent
from umc.evaluation.statistics import Interval, poisson_rate
from umc.utils.console import markdown_table

NAMES = ("sensor faults", "joint faults")
MOTION = "joint faults that change the joint's motion"
ANY_REPORT = (
    "kinds and severities that were not in the training. Any report of the joint counts, whatever kind it names; "
    "joints with another fault are left out, and joint faults that do not change the joint's motion within a second."
)


def content(
    recording: Recording, every: Events, about: Mapping[str, Any], held_out: Sequence[KindRange] = ()
) -> dict[str, Any]:
    """Return all figures of a diagnosis in plain values, given its events.

    ``held_out`` is what the detector has not learned.
    """
    dt = recording.step_dt
    known = figures.learned(every, recording, held_out)
    events, others = every.where(known), every.where(~known)
    felt = events.where((events.fault == 1) & events.hinders)
    count, minutes = figures.alarms(recording)
    return {
        "about": dict(about),
        "robot_minutes": recording.starts.size * dt / 60.0,
        "false_alarms": {"count": count, "healthy_minutes": minutes, "per_minute": count / max(minutes, 1e-9)},
        "right_joint": _interval(figures.right_joint(recording)),
        "joint_fault_of_sensor_fault": _interval(
            figures.found_within(events.where((events.fault == 0) & events.alone), WITHIN[-1], dt, "other_delay")
        ),
        "found": {
            "sensor faults": _rates(events.where(events.fault == 0), dt),
            MOTION: _rates(felt, dt),
            f"{MOTION}, sensor works": _rates(felt.where(felt.alone), dt),
            f"{MOTION}, sensor faulty": _rates(felt.where(~felt.alone), dt),
            "other joint faults": _rates(events.where((events.fault == 1) & ~events.hinders), dt),
        },
        "groups": [
            {
                "by": by,
                "group": name,
                **_rates(some.where(some.hinders), dt),
                "without_effect": _unfelt(some),
            }
            for by, name, some in figures.groups(events, recording.joint_names)
        ],
        "not_learned": [
            {"kind": kind, **_detected(some.where(some.hinders & some.alone), dt), "without_effect": _unfelt(some)}
            for _, kind, some in figures.by_kind(others, recording.kinds)
            if len(some)
        ],
        "kinds": {name: list(recording.kinds[fault]) for fault, name in enumerate(NAMES)},
        "confusion": {
            name: figures.confusion(every, fault, len(recording.kinds[fault])).tolist()
            for fault, name in enumerate(NAMES)
        },
        "roc": {name: figures.roc(recording, events, fault) for fault, name in enumerate(NAMES)},
    }


def _unfelt(events: Events) -> int:
    return int((~events.hinders).sum())


def _rates(events: Events, step_dt: float, report: str = "delay") -> dict[str, Any]:
    waits = figures.delays(events, step_dt, report)
    middle = float(np.median(waits)) if len(waits) else math.inf
    return {
        "count": len(events),
        "found_within_s": {f"{t:g}": _interval(figures.found_within(events, t, step_dt, report)) for t in WITHIN},
        "median_delay_s": middle if math.isfinite(middle) else None,
    }


def _detected(events: Events, step_dt: float) -> dict[str, Any]:
    """Return how faults are found that have no name: as any fault of their joint, and of any joint of the robot."""
    rates = _rates(events, step_dt, "joint_delay")
    robot = figures.found_within(events, WITHIN[-1], step_dt, "robot_delay")
    return {**rates, "any_joint_within_1_s": _interval(robot)}


def _interval(found: Interval | None) -> list[float] | None:
    return None if found is None else [found.value, found.low, found.high]


def write_report(recording: Recording, about: Mapping[str, Any], out: Path, held_out: Sequence[KindRange] = ()) -> Path:
    """Write ``diagnosis.json``, ``diagnosis.md`` and pictures; return the Markdown file."""
    events = figures.find_events(recording)
    found = content(recording, events, about, held_out)
    files = {
        "diagnosis.json": f"{json.dumps(found, indent=1, allow_nan=False)}\n".encode(),
        "delays.png": image(_delays(events, recording), "png"),
        "roc.png": image(_roc(found["roc"]), "png"),
        "confusion.png": image(_confusion(found["confusion"], found["kinds"]), "png"),
        "diagnosis.md": markdown(found).encode(),
    }
    write_all(out, files)
    return out / "diagnosis.md"


def markdown(found: Mapping[str, Any]) -> str:
    """Return the tables of a diagnosis."""
    about, alarms = found["about"], found["false_alarms"]
    lines = ["# Diagnosis", "", *(f"- {name}: {value}" for name, value in about.items()), ""]
    rate = poisson_rate(alarms["count"], alarms["healthy_minutes"]) or Interval(0.0, 0.0, math.inf)
    right = _percent(found["right_joint"])
    lines += [
        f"{found['robot_minutes']:.0f} robot-minutes. False alarms of healthy robots: {alarms['count']} in "
        f"{alarms['healthy_minutes']:.0f} minutes, one in {_minutes(rate.value)} "
        f"[{_minutes(rate.high)}, {_minutes(rate.low)}]."
        + (right and f" The first joint reported after an onset is a faulty one in {right}."),
        "",
        f"Joints whose sensor alone is faulty and of which a joint fault is reported, too, within {WITHIN[-1]:g} s: "
        f"{_percent(found['joint_fault_of_sensor_fault']) or 'there were none'}.",
        "",
        "Found within a time after the onset, of faults that lasted so long or were found before:",
        "",
        *_table("", [(name, rates) for name, rates in found["found"].items()]),
    ]
    others = [(one["kind"], one) for one in found["not_learned"]]
    if others:
        lines += ["", f"Not learned: {ANY_REPORT}", "", *_table("kind", others, robot=True)]
    for by in ("kind", "severity", "joint", "speed"):
        rows = [(one["group"], one) for one in found["groups"] if one["by"] == by and one["count"]]
        if rows:
            effect = "; joint faults that change the joint's motion within a second, and sensor faults"
            lines += ["", f"By {by}{effect}:", "", *_table(by, rows)]
    lines += ["", "![Delays](delays.png)", "", "![ROC](roc.png)", "", "![Confusion](confusion.png)", ""]
    return "\n".join(lines)


def _table(head: str, rows: Sequence[tuple[str, Mapping[str, Any]]], robot: bool = False) -> list[str]:
    """Return the lines of a table; ``robot`` adds what is found of any joint of the robot."""
    heads = [head, "faults", *(f"{t:g} s" for t in WITHIN), "median delay [s]", *(["any joint, 1 s"] if robot else [])]
    cells: list[list[str]] = []
    for name, rates in rows:
        middle, within = rates["median_delay_s"], map(_percent, rates["found_within_s"].values())
        never = "never" if rates["count"] else ""
        cells.append([name, str(rates["count"]), *within, never if middle is None else f"{middle:.2f}"])
        if robot:
            cells[-1].append(_percent(rates["any_joint_within_1_s"]))
    return markdown_table(heads, cells, numbers=True)


def _percent(found: Sequence[float] | None) -> str:
    return "" if found is None else percent(Interval(*found))


def _minutes(rate: float) -> str:
    return "never" if rate <= 0.0 else f"{1.0 / rate:.1f} min"


@matplotlib.rc_context(STYLE)
def _delays(events: Events, recording: Recording) -> Figure:
    """Draw which part of the faults of each kind is found by a time."""
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for fault, (axis, kinds) in enumerate(zip(axes, recording.kinds, strict=True)):
        for number, kind in enumerate(kinds):
            mine = events.where((events.fault == fault) & (events.kind == number) & events.hinders)
            waits = np.sort(figures.delays(mine, recording.step_dt))
            if len(waits):
                part = 100.0 * np.arange(1, len(waits) + 1) / len(waits)
                color = COLORS[number % len(COLORS)]
                axis.step(waits, part, where="post", color=color, label=f"{kind} ({len(waits)})")
        axis.set(xlim=(0.0, 2.0 * WITHIN[-1]), ylim=(0, 104), title=NAMES[fault], xlabel="time since onset [s]")
        axis.grid(True)
        if axis.lines:
            axis.legend(loc="lower right", fontsize=7)
    axes[0].set_ylabel("found [%]")
    return figure


@matplotlib.rc_context(STYLE)
def _roc(rates: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """Draw what is found against false alarms, threshold by threshold."""
    figure = Figure(figsize=(4.6, 3.2), layout="constrained")
    axis = figure.subplots()
    for color, (name, points) in zip(COLORS, rates.items(), strict=False):
        axis.plot([one[1] for one in points], [100 * one[2] for one in points], "o-", color=color, ms=3, label=name)
    axis.axvline(0.1, color=FAINT, linestyle=":", linewidth=1)
    axis.set_xscale("symlog", linthresh=0.01)
    axis.set(xlim=(0.0, None), ylim=(0, 104), xlabel="false alarms of a healthy robot [1/min]")
    axis.set_ylabel(f"found within {WITHIN[-1]:g} s [%]")
    axis.grid(True)
    axis.legend(loc="lower right")
    return figure


@matplotlib.rc_context(STYLE)
def _confusion(tables: Mapping[str, Sequence[Sequence[int]]], kinds: Mapping[str, Sequence[str]]) -> Figure:
    """Draw which kind is taken for which."""
    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    axes = figure.subplots(1, 2)
    for axis, (name, table), known in zip(axes, tables.items(), KNOWN, strict=True):
        rows = np.array(table, dtype=float)
        part = 100.0 * rows / np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
        axis.imshow(part, cmap="Blues", vmin=0.0, vmax=100.0, aspect="auto")
        for (row, column), value in np.ndenumerate(part):
            axis.text(column, row, f"{value:.0f}", ha="center", va="center", color="white" if value > 50 else "black")
        axis.set_xticks(range(len(known) + 1), [*known, "none"], rotation=30, ha="right")
        axis.set_yticks(range(len(kinds[name])), kinds[name])
        axis.set(
            title=f"{name}, {figures.CONFUSION_AFTER_S:g} s after the onset [%]", xlabel="predicted", ylabel="true"
        )
    return figure
