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

from tools.results_page.acceptance import best_and_baseline, is_baseline, main_rates, paper_mark
from tools.results_page.page import RobotResults

COLORS = {"UMC": "#0072B2", "baseline": "#D55E00", "paper": "#222222"}
"""Of the best UMC policy, the best baseline, and the paper."""


@matplotlib.rc_context(STYLE)
def overview(results: Sequence[RobotResults]) -> Figure:
    """Draw reached and failed of every section: the best UMC policy, the best baseline, the paper."""
    figure = Figure(figsize=(8.4, 0.9 + 0.55 * len(results)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for row, one in enumerate(results):
        best = best_and_baseline(one.study)
        for axis, paper in zip(axes, paper_mark(one.study, best[0]) or (), strict=False):
            axis.plot(paper, row, "|", color=COLORS["paper"], markersize=15, markeredgewidth=2)
        for place, result in enumerate(best):
            name = "baseline" if is_baseline(result) else "UMC"
            for axis, found in zip(axes, main_rates(one.study, result), strict=True):
                if found is not None:
                    _dot(axis, found, row + (0.13 if place else -0.13), name)
    titles = ("reached 3 m (Solo8: 1.5 m) after the fault ↑", "failed ↓")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, loc="left")
        axis.set_xlim(0, 100)
        axis.set_xlabel("robots [%], mean over the eight scenarios")
        axis.grid(axis="x")
    axes[0].set_yticks(range(len(results)), [one.title for one in results])
    axes[0].set_ylim(len(results) - 0.5, -0.5)
    marks = [Line2D([], [], color=COLORS[name], marker="o", linestyle="") for name in ("UMC", "baseline")]
    marks.append(Line2D([], [], color=COLORS["paper"], marker="|", markersize=12, markeredgewidth=2, linestyle=""))
    names = ["UMC (ours)", "normal training (no faults)", "the paper's UMC, same network or its best"]
    figure.legend(marks, names, loc="outside lower center", ncols=3)
    return figure


def section_bars(one: RobotResults) -> Figure:
    """Draw the rates of the best UMC policy and the best baseline by scenario, and the paper's averages."""
    best = best_and_baseline(one.study)
    figure = scenario_bars(Estimates(replace(one.study, policies=tuple(best))))
    for axis, value in zip(figure.axes, paper_mark(one.study, best[0]) or (), strict=False):
        place = len(one.study.protocol.scenarios) + 0.25
        axis.plot([place - 0.45, place + 0.45], [value, value], color=COLORS["paper"], linestyle="--", linewidth=1.4)
        axis.annotate("paper", (place + 0.47, value), fontsize=7.5, va="center", annotation_clip=False)
    return figure


def _dot(axis: Axes, found: Interval, row: float, name: str) -> None:
    axis.plot([100 * found.low, 100 * found.high], [row, row], color=COLORS[name], linewidth=1.6)
    axis.plot(100 * found.value, row, "o", color=COLORS[name], markersize=6)
