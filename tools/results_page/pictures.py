# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the results page: all robots at a glance, and each section by scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from umc.evaluation.estimates import Estimates
from umc.evaluation.report.plots import STYLE, scenario_bars
from umc.evaluation.statistics import Interval

from tools.results_page.acceptance import best_and_baseline, is_baseline, main_rates, paper_marks
from tools.results_page.page import RobotResults

COLORS = {"UMC": "#0072B2", "baseline": "#D55E00", "paper": "#222222"}
"""Of the best UMC policy, the best baseline, and the paper."""

PAPER = {"mlp": ("s", "the paper's UMC, MLP"), "transformer": ("^", "the paper's UMC, transformer")}
"""Marker and name of the paper's policies, by agent."""

ORDER = ("a1", "go2", "g1", "h1", "solo8")
"""Robots as in the README's table; others follow."""


@matplotlib.rc_context(STYLE)
def overview(results: Sequence[RobotResults]) -> Figure:
    """Draw reached and failed of every section: the best UMC policy, the best baseline, the paper."""
    results = sorted(results, key=lambda one: (*ORDER, one.robot).index(one.robot))
    figure = Figure(figsize=(8.4, 0.9 + 0.6 * len(results)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.08})
    for row, one in enumerate(results):
        for result in best_and_baseline(one.study):
            name, aside = ("baseline", 0.22) if is_baseline(result) else ("UMC", -0.22)
            for axis, found in zip(axes, main_rates(one.study, result), strict=True):
                if found is not None:
                    _dot(axis, found, row + aside, name)
        for agent, rates in paper_marks(one.study).items():
            for axis, rate in zip(axes, rates, strict=True):
                _paper_mark(axis, agent, rate, row)
    titles = ("reached 3 m (Solo8: 1.5 m) after the fault ↑", "failed ↓")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, loc="left")
        axis.set_xlim(0, 100)
        axis.set_xlabel("robots [%], mean over the eight scenarios")
        axis.grid(axis="x")
    axes[0].set_yticks(range(len(results)), [one.title for one in results])
    axes[0].set_ylim(len(results) - 0.5, -0.5)
    marks = [Line2D([], [], color=COLORS[name], marker="o", linestyle="") for name in ("UMC", "baseline")]
    marks += map(_paper_handle, PAPER)
    names = ["UMC (ours)", "normal training (no faults)", *(name for _, name in PAPER.values())]
    figure.legend(marks, names, loc="outside lower center", ncols=4)
    return figure


@matplotlib.rc_context(STYLE)
def section_bars(one: RobotResults) -> Figure:
    """Draw the rates of the best UMC policy and the best baseline by scenario, and the paper's averages."""
    figure = scenario_bars(Estimates(replace(one.study, policies=tuple(best_and_baseline(one.study)))))
    marks = paper_marks(one.study)
    for number, (agent, rates) in enumerate(marks.items()):
        for axis, rate in zip(figure.axes, rates, strict=True):
            _paper_mark(axis, agent, len(one.study.protocol.scenarios) + 0.78 + 0.15 * number, rate)
    if marks:
        handles = [_paper_handle(agent) for agent in marks]
        figure.axes[0].legend(handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.2)
    return figure


def _paper_mark(axis: Axes, agent: str, x: float, y: float) -> None:
    axis.plot(x, y, PAPER[agent][0], color=COLORS["paper"], markerfacecolor="white", clip_on=False)


def _paper_handle(agent: str) -> Line2D:
    marker, name = PAPER[agent]
    return Line2D([], [], color=COLORS["paper"], markerfacecolor="white", linestyle="", marker=marker, label=name)


def _dot(axis: Axes, found: Interval, row: float, name: str) -> None:
    low, high = 100 * (found.value - found.low), 100 * (found.high - found.value)
    look = {"color": COLORS[name], "markersize": 4.5, "linewidth": 1.6, "capsize": 3.0}  # caps: H1's is short
    axis.errorbar(100 * found.value, row, xerr=[[low], [high]], fmt="o", **look)
