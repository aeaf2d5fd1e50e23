# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of a study; every function returns a figure that the caller saves."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import chain
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from umc.evaluation.breakdown import SliceScore, scenario_name, scenario_title
from umc.evaluation.estimates import Estimates, group_names
from umc.evaluation.metrics import Episodes, Metric, main_rates, reached_key
from umc.evaluation.statistics import Interval, kaplan_meier
from umc.evaluation.study import Study

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Of policies, in their order; distinguishable for color-blind readers (Okabe and Ito 2008)."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Of policies, for prints in gray."""

INK, FAINT, GRID = "#222222", "#8a8a8a", "#dddddd"
"""Colors of text, of the paper's figures, and of grids."""

STYLE: Any = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
    "legend.frameon": False,
    "svg.hashsalt": "umc",
    "svg.fonttype": "path",
}

POLICY = ("sha256", "model", "reads")
"""Parts of a policy's description that tell it from others."""

ERRORS = {
    "delay": "a fault is found late by [env steps]",
    "missed": "faults of a joint that are missed [-]",
    "false_alarms": "false alarms of a robot [1/min]",
}
"""Errors of a corrupted oracle, and what axes call them."""

SIGNIFICANT = 0.05
"""p below which a difference is drawn filled."""

LABEL_GAP = 4.5
"""Least distance between two labels at the end of the paper's curves [percentage points]."""

SPREAD = 0.05
"""Distance between the marks of the first and of the last policy at the same severity, as a part of the axis [-]."""

PERCENT = (0, 104)
"""Limits of axes in percent; a curve at 100 % is not cut."""

DPI = 130
"""Pixels per inch of PNG files."""


def style(groups: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return color and marker of every group."""
    return {name: (COLORS[n % len(COLORS)], MARKERS[n % len(MARKERS)]) for n, name in enumerate(groups)}


@matplotlib.rc_context(STYLE)
def scenario_bars(estimates: Estimates) -> Figure:
    """Draw the two main rates by scenario, with intervals."""
    scenarios, groups = estimates.study.protocol.scenarios, list(estimates.groups)
    figure = _figure(max(6.5, 1.2 + 0.95 * (len(scenarios) + 1)), 5.0)
    axes = figure.subplots(2, 1, sharex=True)
    titles = [scenario_title(one).split(": ", 1) for one in scenarios]
    names = ["\n".join(_lines(part, 9) for part in parts) for parts in titles]
    places = [*range(len(scenarios)), None]
    for axis, metric in zip(axes, main_rates(estimates.study.protocol.radii), strict=True):
        rates = {one: [estimates.group(one, metric.key, place) for place in places] for one in groups}
        _bars(axis, _title(metric), names, rates)
    _legend(figure, style(groups))
    return figure


@matplotlib.rc_context(STYLE)
def card_bars(readings: Mapping[str, Mapping[str, Any]], keys: Sequence[str]) -> Figure:
    """Draw rates of a card's readings by scenario, with intervals."""
    scenarios = list(next(iter(readings.values()))["scenarios"])
    figure = _figure(8.5, 4.6)
    axes = figure.subplots(2, 1, sharex=True)
    names = [f"{one}\n{_lines(scenario_name(int(one) if one.isdecimal() else one), 9)}" for one in scenarios]
    for axis, key in zip(axes, keys, strict=True):
        rates: dict[str, list[Interval | None]] = {}
        for name, found in readings.items():
            values = [one.get(key) for one in [*found["scenarios"].values(), found["average"]]]
            rates[name] = [None if value is None else Interval(*value) for value in values]
        _bars(axis, key, names, rates)
    axes[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _bars(axis: Axes, title: str, scenarios: Sequence[str], rates: Mapping[str, Sequence[Interval | None]]) -> None:
    """Draw rates of every scenario and of their average, one bar per name."""
    looks = style(list(rates))
    centres = np.array([*range(len(scenarios)), len(scenarios) + 0.25])
    width = 0.8 / len(rates)
    for number, (name, found) in enumerate(rates.items()):
        at = centres + (number - (len(rates) - 1) / 2) * width
        for place, (x, rate) in enumerate(zip(at, found, strict=True)):
            if rate is not None:
                axis.bar(x, 100 * rate.value, 0.9 * width, color=looks[name][0], label=name if place == 0 else None)
                low, high = 100 * (rate.value - rate.low), 100 * (rate.high - rate.value)
                axis.errorbar(x, 100 * rate.value, [[low], [high]], color=INK, linewidth=0.9, capsize=1.8)
    axis.axvline(len(scenarios) - 0.4, color=FAINT, linewidth=0.8, linestyle=":")
    axis.set_ylim(*PERCENT)
    axis.set_ylabel("robots [%]")
    axis.grid(axis="y")
    axis.set_title(title, loc="left")
    axis.tick_params(axis="x", length=0)
    axis.set_xticks(centres, [*scenarios, "average"])


@matplotlib.rc_context(STYLE)
def reached_curves(estimates: Estimates, paper: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the shares that reached each radius, averaged over scenarios, beside the paper's."""
    radii, groups = estimates.study.protocol.radii, list(estimates.groups)
    looks = style(groups)
    figure = _figure(6.5, 3.6)
    axis = figure.subplots()
    label_at = -np.inf
    for name, values in sorted(paper.items(), key=lambda row: row[1][len(radii) - 1]):
        axis.plot(radii, values[: len(radii)], color=FAINT, linewidth=1.0, linestyle="--", zorder=1)
        label_at = max(values[len(radii) - 1], label_at + LABEL_GAP)
        beside = (radii[-1] + 0.03 * (radii[-1] - radii[0]), label_at)
        axis.annotate(f"{name}, paper", beside, fontsize=7, color=FAINT, va="center", annotation_clip=False)
    for group in groups:
        found = [(radius, estimates.group(group, reached_key(radius))) for radius in radii]
        _curve(axis, [(radius, one) for radius, one in found if one is not None], looks[group], 5)
    axis.set_ylim(*PERCENT)
    axis.set_xticks(radii)
    axis.set_xlabel("distance from the place of onset [m]")
    axis.set_ylabel("reached, without a fall [%]")
    axis.grid()
    _legend(figure, looks)
    return figure


def steps_standing(episodes: Episodes, select: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the env steps after onset that the evaluated robots of ``select`` stood, and whether they then fell."""
    rows = episodes.evaluated & select
    fell = episodes.failed[rows]
    # the step of the fall counts, so that a robot that falls in the first one after onset is seen to
    return episodes.steps_after_onset[rows] + fell, fell


@matplotlib.rc_context(STYLE)
def survival_curves(study: Study) -> Figure:
    """Draw the shares that still stand, over the time since onset, in every scenario."""
    scenarios = study.protocol.scenarios
    names = group_names(study)
    looks = style(list(dict.fromkeys(names)))
    bands = len(study.policies) == len(looks)
    columns = min(4, len(scenarios))
    rows = -(-len(scenarios) // columns)
    figure = _figure(2.15 * columns + 0.6, 1.75 * rows + 0.8)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axis, scenario in zip(axes.flat, scenarios, strict=False):
        for name, result in zip(names, study.policies, strict=True):
            steps, fell = steps_standing(result.run.episodes, study.scenario_rows(result, scenario))
            if not len(steps):
                continue
            time, share, low, high = kaplan_meier(steps, fell, study.step_dt)
            color = looks[name][0]
            axis.step(time, 100 * share, where="post", color=color, linewidth=1.3 if bands else 0.9)
            if bands:
                axis.fill_between(time, 100 * low, 100 * high, step="post", color=color, alpha=0.15, linewidth=0)
        axis.set_title(_lines(scenario_title(scenario), 26), loc="left", fontsize=8.5)
        axis.set_ylim(*PERCENT)
        axis.set_xlim(left=0)
        axis.grid()
    for axis in axes.flat[len(scenarios) :]:
        axis.set_visible(False)
    figure.supxlabel("time since onset [s]", fontsize=9)
    figure.supylabel("still standing [%]", fontsize=9)
    _legend(figure, looks)
    return figure


@matplotlib.rc_context(STYLE)
def joint_heatmap(study: Study, name: str, parts: Sequence[Sequence[SliceScore]]) -> Figure:
    """Draw the two main rates by faulty joint and scenario."""
    joints = study.joint_names
    table: dict[tuple[str, int | str | None], list[SliceScore]] = {}
    for one in chain.from_iterable(parts):
        if one.slice.by == "joint":
            table.setdefault((one.slice.name, one.scenario), []).append(one)
    places = [*study.protocol.scenarios, None]
    faulty = [place for place in places if any((joint, place) in table for joint in joints)]
    figure = _figure(3.4 + 0.9 * max(len(faulty), 3), 1.5 + 0.3 * len(joints))
    axes = figure.subplots(1, 2, sharey=True)
    for axis, metric in zip(axes, main_rates(study.protocol.radii), strict=True):
        values = np.full((len(joints), max(len(faulty), 1)), np.nan)
        for row, joint in enumerate(joints):
            for column, place in enumerate(faulty):
                rates = [rate.value for one in table.get((joint, place), []) if (rate := one.rates[metric.key])]
                values[row, column] = 100 * np.mean(rates) if rates else np.nan
        map_ = axis.imshow(values, cmap="YlGnBu" if metric.better > 0 else "YlOrRd", aspect="auto")
        figure.colorbar(map_, ax=axis, pad=0.02, aspect=30).outline.set_visible(False)
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                color = "white" if map_.norm(value) > 0.6 else INK
                axis.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=7.5, color=color)
        axis.set_xticks(range(len(faulty)), ["avg" if place is None else str(place) for place in faulty])
        axis.set_yticks(range(len(joints)), [name.removesuffix("_joint") for name in joints])
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
        axis.axvline(len(faulty) - 1.5, color="white", linewidth=3)
        axis.set_xlabel("scenario")
        axis.set_title(f"{_title(metric)} [%]", loc="left")
    figure.suptitle(f"{name}; each row: robots in which this joint is among the faulty ones", fontsize=9)
    return figure


@matplotlib.rc_context(STYLE)
def severity_sweep(study: Study, parts: Mapping[str, Sequence[SliceScore]], units: Mapping[str, str]) -> Figure | None:
    """Draw the two main rates over the severity; None if it does not vary."""
    found = {
        label: [one for one in some if one.slice.by == "severity" and one.scenario is None]
        for label, some in parts.items()
    }
    kinds = sorted({one.slice.kind for some in found.values() for one in some})
    if not kinds:
        return None
    group_of = {one.label: name for one, name in zip(study.policies, group_names(study), strict=True)}
    looks = style(list(dict.fromkeys(group_of.values())))
    figure = _figure(max(6.5, 3.3 * len(kinds)), 4.6)
    axes = figure.subplots(2, len(kinds), sharex="col", sharey=True, squeeze=False)
    alone = len(study.policies) == len(looks)
    for column, kind in enumerate(kinds):
        at = [one.slice.value or 0.0 for some in found.values() for one in some if one.slice.kind == kind]
        # side by side, since intervals of few robots hide each other
        asides = np.linspace(-0.5, 0.5, len(found)) * SPREAD * np.ptp(at) * (alone and len(found) > 1)
        for row, metric in enumerate(main_rates(study.protocol.radii)):
            axis = axes[row, column]
            for (label, some), aside in zip(found.items(), asides, strict=True):
                points = [(one.slice.value, one.rates[metric.key]) for one in some if one.slice.kind == kind]
                known = sorted((at + aside, rate) for at, rate in points if at is not None and rate is not None)
                look = looks[group_of[label]]
                _curve(axis, known, look, 4.5, band=False)
                if alone:
                    low, high = ([100 * getattr(rate, end) for _, rate in known] for end in ("low", "high"))
                    axis.vlines([at for at, _ in known], low, high, color=look[0], linewidth=1.1, alpha=0.7)
            axis.set_ylim(*PERCENT)
            axis.grid()
            axis.set_title(f"{kind}: {metric.title}", loc="left")
            if column == 0:
                axis.set_ylabel("robots [%]")
        axes[1, column].set_xlabel(f"severity of '{kind}' {units.get(kind, '')}".strip())
    _legend(figure, looks)
    return figure


@matplotlib.rc_context(STYLE)
def paired_differences(estimates: Estimates) -> Figure | None:
    """Draw by how much every other policy differs from the first, by scenario; None if there is one policy."""
    groups, scenarios = list(estimates.groups), estimates.study.protocol.scenarios
    if len(groups) < 2:
        return None
    looks = style(groups)
    figure = _figure(7.4, 1.4 + (0.2 + 0.16 * (len(groups) - 1)) * (len(scenarios) + 1))
    axes = figure.subplots(1, 2, sharey=True)
    rows = [*range(len(scenarios)), None]
    names = [scenario_title(number) for number in scenarios] + ["average"]
    step = 0.7 / (len(groups) - 1)
    for axis, metric in zip(axes, main_rates(estimates.study.protocol.radii), strict=True):
        axis.axvline(0.0, color=INK, linewidth=0.8)
        axis.axhline(len(scenarios) - 0.5, color=FAINT, linewidth=0.8, linestyle=":")
        for number, group in enumerate(groups[1:]):
            color, marker = looks[group]
            for row, place in enumerate(rows):
                found = estimates.difference(groups[0], group, metric.key, place)
                if found is None:
                    continue
                y = row + (number - (len(groups) - 2) / 2.0) * step
                axis.plot([100 * found.low, 100 * found.high], [y, y], color=color, linewidth=1.4)
                face = color if found.p < SIGNIFICANT else "white"
                axis.plot(100 * found.value, y, marker, color=color, markerfacecolor=face, markersize=5)
        axis.set_yticks(range(len(rows)), names)
        axis.tick_params(axis="y", length=0)
        axis.grid(axis="x")
        axis.set_title(f"{metric.title} ({'more' if metric.better > 0 else 'less'} is better)", loc="left")
        axis.set_xlabel(f"minus {groups[0]} [percentage points]")
    axes[0].invert_yaxis()
    _legend(figure, {group: looks[group] for group in groups[1:]})
    return figure


@matplotlib.rc_context(STYLE)
def cost_curves(estimates: Estimates) -> Figure | None:
    """Draw the two main rates over each error of a corrupted oracle that varies; None if none does."""
    varied = varied_errors([str(one.about.get("detection", "")) for one in estimates.study.policies])
    if not varied:
        return None
    policies = [str([one.about.get(key) for key in POLICY]) for one in estimates.study.policies]
    names = dict(zip(policies, estimates.study.policies, strict=True))
    looks = style(list(names))
    figure = _figure(max(6.5, 2.6 * len(varied) + 1.2), 4.6)
    axes = figure.subplots(2, len(varied), sharex="col", sharey=True, squeeze=False)
    for column, ((error, rest), points) in enumerate(varied.items()):
        for row, metric in enumerate(main_rates(estimates.study.protocol.radii)):
            axis = axes[row, column]
            for policy, look in looks.items():
                mine = [(at, number) for number, at in points.items() if policies[number] == policy]
                found = [(at, estimates.policy(number, metric.key)) for at, number in sorted(mine)]
                _curve(axis, [(at, rate) for at, rate in found if rate is not None], look, 4.5)
            axis.set_ylim(*PERCENT)
            axis.grid()
            axis.set_title(metric.title, loc="left")
            if column == 0:
                axis.set_ylabel("robots [%]")
        axes[1, column].set_xlabel(_lines(f"{ERRORS[error]}{rest}", 30))
    if len(looks) > 1:
        _legend(figure, {names[policy].label.partition(",")[0]: look for policy, look in looks.items()})
    return figure


def varied_errors(detections: Sequence[str]) -> dict[tuple[str, str], dict[int, float]]:
    """Return which errors take two values or more among what policies are told, with the value by policy's number.

    Keys are an error and, in words, the others that stay the same. The oracle itself is the one without errors.
    ``detections`` are as ``--detection`` takes them.
    """
    found: dict[tuple[str, str], dict[int, float]] = {}
    for number, text in enumerate(detections):
        source, _, rest = text.partition(":")
        if source != "corrupted_oracle":
            continue
        fields = dict(sorted(part.split("=", 1) for part in rest.split(",") if "=" in part))
        for name in fields.keys() & ERRORS.keys():
            others = "".join(f", {key} {value}" for key, value in fields.items() if key != name)
            found.setdefault((name, others), {})[number] = float(fields[name])
    oracles = [number for number, text in enumerate(detections) if text == "oracle"]
    for (_, rest), points in found.items():
        if not any(f", {name} " in rest for name in ERRORS):
            points |= dict.fromkeys(oracles, 0.0)
    varied = {error: points for error, points in found.items() if len(set(points.values())) > 1}
    return dict(sorted(varied.items(), key=lambda one: (list(ERRORS).index(one[0][0]), one[0][1])))


@matplotlib.rc_context(STYLE)
def image(figure: Figure, form: str) -> bytes:
    """Return a figure as a ``png`` or ``svg`` file without date, so that the same study gives the same file."""
    file = io.BytesIO()
    options: Any = {"dpi": DPI, "metadata": {"Software": None}} if form == "png" else {"metadata": {"Date": None}}
    figure.savefig(file, format=form, **options)
    return file.getvalue()


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def _curve(
    axis: Axes, points: Sequence[tuple[float, Interval]], look: tuple[str, str], size: float, band: bool = True
) -> None:
    """Draw rates with their intervals as a band."""
    at = [x for x, _ in points]
    value, low, high = ([100 * getattr(one, end) for _, one in points] for end in ("value", "low", "high"))
    axis.plot(at, value, color=look[0], marker=look[1], markersize=size)
    if band:
        axis.fill_between(at, low, high, color=look[0], alpha=0.18, linewidth=0)


def _title(metric: Metric) -> str:
    return f"{metric.title}: {metric.meaning}"


def _lines(text: str, width: int) -> str:
    return fill(text, width, break_long_words=False)


def _legend(figure: Figure, looks: Mapping[str, tuple[str, str]]) -> None:
    handles = [Line2D([], [], color=color, marker=marker, label=name) for name, (color, marker) in looks.items()]
    if handles:
        figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 4))
