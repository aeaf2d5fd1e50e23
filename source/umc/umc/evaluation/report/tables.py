# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Which tables a report has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from umc.evaluation.breakdown import Part, scenario_name
from umc.evaluation.estimates import Estimates
from umc.evaluation.metrics import Metric, Outcome
from umc.evaluation.report.paper import PaperTable, departures, paper_tables
from umc.evaluation.report.plots import middle
from umc.evaluation.report.renderers import NOTHING, Cell, Row, Table, figure_cell, printed, ranks
from umc.evaluation.statistics import Interval
from umc.faults import SCENARIOS

INTERVALS = "In brackets: 95% intervals."
"""Note of tables with intervals."""

LEFT_OUT = (
    (Outcome.FELL_BEFORE_ONSET, "fell before onset"),
    (Outcome.NON_FINITE, "physics not finite"),
    (Outcome.NO_ONSET, "ended before onset"),
)
"""Why robots are not judged, and what tables call it."""

SMALLEST_P = 0.001
"""Smallest p that tables print; 2,000 resamples tell no smaller ones apart."""

SLICES = {
    "setting": "setting",
    "onset": "onset",
    "joint": "faulty joint",
    "severity": "severity",
    "stance": "feet down at onset",
}
"""Kinds of slices that have a table, and the heads of their first columns."""


def all_tables(estimates: Estimates, parts: Mapping[str, Sequence[Part]], units: Mapping[str, str]) -> list[Table]:
    """Every table of a report."""
    tables = [main_table(estimates), *ablation_tables(estimates)]
    tables += [scenario_table(estimates, group) for group in estimates.groups]
    tables += [left_out_table(estimates), more_table(estimates)]
    groups = list(estimates.groups)
    tables += [difference_table(estimates, groups[0], group, number) for number, group in enumerate(groups[1:], 2)]
    if len(estimates.study.policies) > len(groups):
        tables.append(seed_table(estimates))
    return tables + slice_tables(estimates, parts, units)


def paper_metrics(estimates: Estimates) -> list[Metric]:
    """The paper's columns."""
    return [metric for metric in estimates.metrics if metric.rate and metric.key != "recovered"]


def main_table(estimates: Estimates) -> Table:
    """The paper's main table: methods, averaged over scenarios and settings, ours above the paper's."""
    protocol = estimates.study.protocol
    papers = [table for table in paper_tables(protocol) if table.rows_are == "Methods"]
    eight = len(protocol.scenarios) == len(SCENARIOS)
    title = papers[0].caption if papers and eight else _average_title(estimates)
    notes = [INTERVALS, *(_beside(estimates) if papers else [])]
    return _paper_form(estimates, "main", title, "Methods", list(estimates.groups), papers, notes)


def ablation_tables(estimates: Estimates) -> list[Table]:
    """The paper's ablation tables, if the protocol is theirs."""
    papers = [table for table in paper_tables(estimates.study.protocol) if table.rows_are != "Methods"]
    named = {group for paper in papers for group in estimates.groups if group in paper.rows}
    found = []
    for paper in papers:
        groups = [group for group in estimates.groups if group in paper.rows or group not in named]
        if groups:
            notes = [INTERVALS, *_beside(estimates)]
            found.append(_paper_form(estimates, paper.name, paper.caption, paper.rows_are, groups, [paper], notes))
    return found


def _paper_form(
    estimates: Estimates,
    key: str,
    title: str,
    rows_are: str,
    groups: Sequence[str],
    papers: Sequence[PaperTable],
    notes: list[str],
) -> Table:
    metrics = paper_metrics(estimates)
    header = [f"{metric.key.removeprefix('reached@')} unit" for metric in metrics[:-1]] + ["failed"]
    rows = _rows(metrics, groups, estimates.group)
    for paper in papers:
        for number, (name, values) in enumerate(paper.rows.items()):
            cells = (Cell(f"{value:g}%") for value in values)
            label = Cell(f"{name.removesuffix(' (Ours)')} (paper)")
            rows.append(Row((label, *cells), "paper", rule=number == 0))
        notes += [f"The paper's table: {paper.note}"] if paper.note else []
    better = (0, *(metric.better for metric in metrics))
    return Table(key, title, (rows_are, *header), better, tuple(rows), tuple(notes))


def scenario_table(estimates: Estimates, group: str) -> Table:
    """A group's figures by scenario."""
    metrics, scenarios = paper_metrics(estimates), estimates.study.protocol.scenarios
    rows = []
    for place in [*range(len(scenarios)), None]:
        name = "average" if place is None else f"{scenarios[place]}: {scenario_name(scenarios[place])}"
        figures = [figure_cell(metric, estimates.group(group, metric.key, place)) for metric in metrics]
        judged = str(sum(_count(estimates, number, place, judged=True) for number in estimates.groups[group]))
        last = place is None
        rows.append(Row((Cell(name), Cell(judged), *figures), "average" if last else "", rule=last))
    number = list(estimates.groups).index(group) + 1
    header = ("Scenario", "judged", *(metric.title for metric in metrics))
    better = (0, 0, *(metric.better for metric in metrics))
    title = f"{group}, by scenario"
    return Table(f"scenarios_{number}", title, header, better, tuple(rows), (INTERVALS,))


def left_out_table(estimates: Estimates) -> Table:
    """Who is not judged, and why, each cause on a line of its own."""
    scenarios = estimates.study.protocol.scenarios
    rows = []
    for number, result in enumerate(estimates.study.policies):
        lines = [("judged", [_count(estimates, number, place, judged=True) for place in range(len(scenarios))])]
        lines += [
            (name, [_count(estimates, number, place, outcome) for place in range(len(scenarios))])
            for outcome, name in LEFT_OUT
        ]
        for line, (name, counts) in enumerate(lines):
            cells = [Cell(str(count)) for count in [*counts, sum(counts)]]
            rows.append(Row((Cell(f"{result.label}: {name}"), *cells), rule=line == 0 and number > 0))
    header = ("Robots", *(str(scenario) for scenario in scenarios), "all")
    note = "Rates are shares of the judged robots: those that stood when the fault set in."
    return Table(
        "left_out", "Robots judged and left out, by scenario", header, (0,) * len(header), tuple(rows), (note,)
    )


def more_table(estimates: Estimates) -> Table:
    """What the paper does not measure."""
    groups, shown = list(estimates.groups), paper_metrics(estimates)
    rows = []
    for metric in estimates.metrics:
        if metric not in shown:
            (line,) = _columns([metric], groups, estimates.group)
            name = f"{metric.title}{f' [{metric.unit}]' if metric.unit else ''} {_sign(metric)}".strip()
            rows.append(Row((Cell(name), *line)))
    header = ("Figure", *groups)
    return Table(
        "more", "Further figures, averaged over scenarios", header, (0,) * len(header), tuple(rows), (INTERVALS,)
    )


def difference_table(estimates: Estimates, first: str, second: str, number: int) -> Table:
    """What differs between two groups over the same robots."""
    rows = []
    for metric in estimates.metrics:
        found = estimates.difference(first, second, metric.key)
        if found is None:
            continue
        scale, digits = (100.0, 1) if metric.rate else (1.0, metric.digits + 1)
        value, low, high = (printed(scale * one, digits, "+") for one in (found.value, found.low, found.high))
        p = f"< {SMALLEST_P:g}" if found.p < SMALLEST_P else f"{found.p:.3f}"
        name = f"{metric.title} {_sign(metric)}".strip()
        unit = "points" if metric.rate else metric.unit
        rows.append(Row((Cell(name), Cell(value, f"[{low}, {high}]"), Cell(unit), Cell(p))))
    title = f"{second} minus {first}, averaged over scenarios; {estimates.num_robots} robots, the same for both"
    notes = (f"{INTERVALS} Paired bootstrap; p is two-sided and not corrected for the number of comparisons.",)
    header = ("Metric", "difference", "unit", "p")
    return Table(f"difference_{number}", title, header, (0,) * 4, tuple(rows), notes)


def seed_table(estimates: Estimates) -> Table:
    """Every policy of groups with several training seeds."""
    metrics = paper_metrics(estimates)
    numbers = {result.label: number for number, result in enumerate(estimates.study.policies)}
    rows = _rows(metrics, list(numbers), lambda label, key: estimates.policy(numbers[label], key))
    header = ("Policy", *(metric.title for metric in metrics))
    better = (0, *(metric.better for metric in metrics))
    return Table("policies", "Every policy, averaged over scenarios", header, better, tuple(rows), (INTERVALS,))


def slice_tables(estimates: Estimates, parts: Mapping[str, Sequence[Part]], units: Mapping[str, str]) -> list[Table]:
    """Figures by setting, onset, joint, severity and stance."""
    keys = (middle(estimates.study.protocol.radii), "failed")
    metrics = [metric for metric in estimates.metrics if metric.key in keys]
    labels = list(parts)
    found = []
    for by, head in SLICES.items():
        table = {
            (one.slice.kind, one.slice.name, label): one
            for label, some in parts.items()
            for one in some
            if one.slice.by == by and one.scenario is None
        }
        rows = []
        for kind, name in dict.fromkeys((kind, name) for kind, name, _ in table):
            cells = [Cell(f"{kind} {name} {units.get(kind, '')}".strip() if kind else name.removesuffix("_joint"))]
            for label in labels:
                one = table.get((kind, name, label))
                cells += [Cell(NOTHING if one is None else str(one.score.judged))]
                cells += [figure_cell(metric, None if one is None else one.rates[metric.key]) for metric in metrics]
            rows.append(Row(tuple(cells)))
        if by == "onset" and len(rows) == len(estimates.study.protocol.settings):
            continue  # every setting has its own, so that the table would be that of the settings
        if rows:
            header, better = [head], [0]
            for label in labels:
                prefix = f"{label}: " if len(labels) > 1 else ""
                header += [f"{prefix}judged", *(f"{prefix}{metric.title}" for metric in metrics)]
                better += [0, *(metric.better for metric in metrics)]
            notes = (f"Averaged over the scenarios in which there are such robots. {INTERVALS}",)
            found.append(Table(f"by_{by}", f"By {head}", tuple(header), tuple(better), tuple(rows), notes))
    return found


def _rows(metrics: Sequence[Metric], names: Sequence[str], figure: Callable[[str, str], Interval | None]) -> list[Row]:
    """Lines of figures, the best of each column marked."""
    columns = _columns(metrics, names, figure)
    return [Row((Cell(name), *(column[row] for column in columns))) for row, name in enumerate(names)]


def _columns(
    metrics: Sequence[Metric], names: Sequence[str], figure: Callable[[str, str], Interval | None]
) -> list[list[Cell]]:
    """One metric after the other for all names, the best marked."""
    columns = []
    for metric in metrics:
        found = [figure(name, metric.key) for name in names]
        digits = 2 if metric.rate else metric.digits
        marks = ranks([None if one is None else round(one.value, digits) for one in found], metric.better)
        columns.append([figure_cell(metric, one, rank) for one, rank in zip(found, marks, strict=True)])
    return columns


def _count(
    estimates: Estimates, number: int, place: int | None, outcome: Outcome | None = None, judged: bool = False
) -> int:
    """Robots of a policy with an outcome, in a scenario or in all."""
    study = estimates.study
    result = study.policies[number]
    rows = result.run.episodes.outcome
    hit = (rows == Outcome.UP) | (rows == Outcome.FAILED) if judged else rows == outcome
    return int((hit if place is None else hit & study.scenario_rows(result, study.protocol.scenarios[place])).sum())


def _beside(estimates: Estimates) -> list[str]:
    """What has to be said where our rows stand beside the paper's."""
    left = "; ".join(departures(estimates.study))
    return [f"Rows marked (paper) are the paper's; the others are this evaluation. Not as in the paper: {left}."]


def _average_title(estimates: Estimates) -> str:
    protocol = estimates.study.protocol
    return f"Average performance on {protocol.robot.upper()} over {len(protocol.scenarios)} scenarios"


def _sign(metric: Metric) -> str:
    return {1: "↑", -1: "↓", 0: ""}[metric.better]
