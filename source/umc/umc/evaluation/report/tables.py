# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Which tables a report has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from umc.evaluation.breakdown import SliceScore, scenario_title
from umc.evaluation.detections import WITHIN
from umc.evaluation.estimates import Estimates
from umc.evaluation.metrics import METRICS, Metric, main_rates
from umc.evaluation.report.paper import PaperTable, departures, paper_tables
from umc.evaluation.report.renderers import NOTHING, Cell, Row, Table, figure_cell, head, printed, ranks
from umc.evaluation.statistics import MIN_ROBOTS, Interval
from umc.evaluation.study import Study, drawn_faults
from umc.faults import SCENARIOS
from umc.utils.naming import display_name

INTERVALS = f"In brackets: 95% intervals; none of means and differences of fewer than {MIN_ROBOTS} robots."
"""Note of tables with intervals."""

EVALUATED = {
    "evaluated": "evaluated",
    "fell_before_onset": "fell before onset",
    "non_finite": "physics not finite",
    "no_onset": "ended before onset",
}
"""Lines of the table of robots that are evaluated or left out, by their key in the counts."""

PAIRED = "Paired bootstrap; p is two-sided and not corrected for the number of comparisons."
"""Note of tables of differences."""

TOO_FEW = (
    f"Differences and means have no interval and no p: a fault seed has fewer than {MIN_ROBOTS} robots, from which a "
    "bootstrap gives intervals that are too narrow. Rates of one policy have Wilson's intervals."
)
"""What a study of few robots lacks."""

DETECTOR = (
    "A robot is found when one of its faulty joints is reported, as a sensor fault or a joint fault; robots that fell "
    "before a time do not count in its column. Nobody can find a fault that changes nothing, such as a torque limit "
    "that is never reached. False alarms are of robots before their fault, or without one."
)
"""Note of the table of a detector's reports."""

DRAWS = {
    "stratified": "Number and joints are spread evenly over the robots of a cell (protocol.draws=stratified).",
    "independent": "Number and joints are drawn for each robot alone (protocol.draws=independent).",
}
"""Note about how faults are drawn."""

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


def all_tables(
    estimates: Estimates, parts: Mapping[str, Sequence[SliceScore]], units: Mapping[str, str]
) -> list[Table]:
    """Return every table of a report."""
    tables = [main_table(estimates), *ablation_tables(estimates)]
    tables += [scenario_table(estimates, group) for group in estimates.groups]
    tables += [left_out_table(estimates), drawn_table(estimates.study), more_table(estimates)]
    tables += detection_tables(estimates.study)
    groups = list(estimates.groups)
    tables += [difference_table(estimates, groups[0], group, number) for number, group in enumerate(groups[1:], 2)]
    if len(estimates.study.policies) > len(groups):
        tables.append(seed_table(estimates))
    return tables + slice_tables(estimates, parts, units)


def paper_metrics(estimates: Estimates) -> list[Metric]:
    """Return the paper's columns."""
    return [metric for metric in estimates.metrics if metric.rate and metric.key != "recovered"]


def main_table(estimates: Estimates) -> Table:
    """Return the paper's main table: methods, averaged over scenarios and settings, ours above the paper's."""
    protocol = estimates.study.protocol
    papers = [table for table in paper_tables(protocol) if table.rows_are == "Methods"]
    title = f"Average performance on {display_name(protocol.robot)} over {len(protocol.scenarios)} scenarios"
    if papers and len(protocol.scenarios) == len(SCENARIOS):
        title = papers[0].caption
    return _paper_form(estimates, "main", title, list(estimates.groups), papers)


def ablation_tables(estimates: Estimates) -> list[Table]:
    """Return the paper's ablation tables, if the protocol is theirs."""
    papers = [table for table in paper_tables(estimates.study.protocol) if table.rows_are != "Methods"]
    named = {group for paper in papers for group in estimates.groups if group in paper.rows}
    found = []
    for paper in papers:
        groups = [group for group in estimates.groups if group in paper.rows or group not in named]
        if groups:
            found.append(_paper_form(estimates, paper.name, paper.caption, groups, [paper]))
    return found


def _paper_form(
    estimates: Estimates, key: str, title: str, groups: Sequence[str], papers: Sequence[PaperTable]
) -> Table:
    metrics = paper_metrics(estimates)
    names = [f"{metric.key.removeprefix('reached@')} unit" for metric in metrics[:-1]] + ["failed"]
    rows, notes = _rows(metrics, groups, estimates.group), [INTERVALS]
    if papers:
        left = "; ".join(departures(estimates.study))
        notes.append(
            f"Rows marked (paper) are the paper's; the others are this evaluation. Not as in the paper: {left}."
        )
    for paper in papers:
        for number, (name, values) in enumerate(paper.rows.items()):
            cells = (Cell(f"{value:g}%") for value in values)
            label = Cell(f"{name.removesuffix(' (Ours)')} (paper)")
            rows.append(Row((label, *cells), "paper", rule=number == 0))
        notes += [f"The paper's table: {paper.note}"] if paper.note else []
    header = (papers[0].rows_are if papers else "Methods", *map(head, metrics, names))
    return Table(key, title, header, tuple(rows), tuple(notes))


def scenario_table(estimates: Estimates, group: str) -> Table:
    """Return a group's figures by scenario."""
    metrics, scenarios = paper_metrics(estimates), estimates.study.protocol.scenarios
    rows = []
    for place in [*range(len(scenarios)), None]:
        last = place is None
        name = "average" if last else scenario_title(scenarios[place])
        figures = [figure_cell(metric, estimates.group(group, metric.key, place)) for metric in metrics]
        count = sum(estimates.counts(number, place)["evaluated"] for number in estimates.groups[group])
        rows.append(Row((Cell(name), Cell(str(count)), *figures), "average" if last else "", rule=last))
    number = list(estimates.groups).index(group) + 1
    header = ("Scenario", "evaluated", *map(head, metrics))
    return Table(f"scenarios_{number}", f"{group}, by scenario", header, tuple(rows), (INTERVALS,))


def left_out_table(estimates: Estimates) -> Table:
    """Return who is evaluated and who is not, each cause on a line of its own."""
    scenarios = estimates.study.protocol.scenarios
    rows = []
    for number, result in enumerate(estimates.study.policies):
        columns = [estimates.counts(number, place) for place in [*range(len(scenarios)), None]]
        for key, name in EVALUATED.items():
            cells = (Cell(str(counts[key])) for counts in columns)
            rows.append(Row((Cell(f"{result.label}: {name}"), *cells), rule=key == "evaluated" and number > 0))
    header = ("Robots", *map(str, scenarios), "all")
    note = "Rates are shares of the evaluated robots: those that stood when the fault set in."
    return Table("left_out", "Robots evaluated and left out, by scenario", header, tuple(rows), (note,))


def drawn_table(study: Study) -> Table:
    """Return how many joints fail in how many robots, and how often the rarest and the most frequent joint fails."""
    drawn = drawn_faults(study)
    numbers = sorted({number for one in drawn.values() for number in one["robots_by_faulty_joints"]})
    rows = []
    for scenario, one in drawn.items():
        robots, joints = one["robots_by_faulty_joints"], one["robots_by_joint"].values()
        total = sum(robots.values())
        cells = [f"{robots.get(number, 0)} ({robots.get(number, 0) / total:.0%})" for number in numbers]
        failing = [count for count in joints if count] or [0]
        name = scenario_title(scenario)
        rows.append(Row(tuple(map(Cell, (name, *cells, f"{min(failing)} to {max(failing)}")))))
    note = DRAWS[study.protocol.draws]
    header = ("Scenario", *(f"{number} faulty joints" for number in numbers), "robots of a joint that fails")
    return Table("drawn", "Faults drawn: robots by number of faulty joints", header, tuple(rows), (note,))


def more_table(estimates: Estimates) -> Table:
    """Return what the paper does not measure."""
    groups, shown = list(estimates.groups), paper_metrics(estimates)
    rows = []
    for metric in estimates.metrics:
        if metric not in shown:
            name = head(metric, f"{metric.title} [{metric.unit}]" if metric.unit else "")
            rows.append(Row((Cell(name), *_column(metric, groups, estimates.group))))
    title = "Further figures, averaged over scenarios"
    return Table("more", title, ("Figure", *groups), tuple(rows), (INTERVALS,))


def detection_tables(study: Study) -> list[Table]:
    """Return what a detector in the loop reported, for each policy that had one."""
    header = ("Scenario", "robots", *(f"found within {t:g} s" for t in WITHIN), "found before the end")
    header += ("median delay [s]", "faulty joints found", "false alarms [1/min]", "minutes without fault")
    found = []
    for number, result in enumerate(study.policies, 1):
        rows = []
        for scenario in study.protocol.scenarios:
            score = study.detection_score(result, scenario)
            if score is None:
                continue
            alarms = score.false_alarms
            cells = [Cell(scenario_title(scenario)), Cell(str(score.robots))]
            cells += [figure_cell(METRICS[0], one) for one in (*score.within.values(), score.ever)]
            cells += [
                Cell(NOTHING if score.median_delay is None else printed(score.median_delay, 2)),
                Cell(NOTHING if score.joints is None else f"{printed(100 * score.joints, 0)}%"),
                Cell(NOTHING)
                if alarms is None
                else Cell(printed(alarms.value, 2), f"[{printed(alarms.low, 2)}, {printed(alarms.high, 2)}]"),
                Cell(printed(score.healthy_minutes, 1)),
            ]
            rows.append(Row(tuple(cells)))
        if rows:
            title = f"{result.label}: what the detector reported, by scenario"
            found.append(Table(f"detector_{number}", title, header, tuple(rows), (DETECTOR, INTERVALS)))
    return found


def difference_table(estimates: Estimates, first: str, second: str, number: int) -> Table:
    """Return what differs between two groups over the same robots."""
    rows = []
    for metric in estimates.metrics:
        found = estimates.difference(first, second, metric.key)
        if found is None:
            continue
        scale, digits = (100.0, 1) if metric.rate else (1.0, metric.digits + 1)
        value, low, high = (printed(scale * one, digits, "+") for one in (found.value, found.low, found.high))
        p = f"< {SMALLEST_P:g}" if found.p < SMALLEST_P else f"{found.p:.3f}"
        unit = "points" if metric.rate else metric.unit
        interval, p = ("", NOTHING) if math.isnan(found.p) else (f"[{low}, {high}]", p)
        rows.append(Row((Cell(head(metric)), Cell(value, interval), Cell(unit), Cell(p))))
    title = f"{second} minus {first}, averaged over scenarios; {estimates.num_robots} robots, the same for both"
    note = TOO_FEW if estimates.too_few else f"{INTERVALS} {PAIRED}"
    return Table(f"difference_{number}", title, ("Metric", "difference", "unit", "p"), tuple(rows), (note,))


def seed_table(estimates: Estimates) -> Table:
    """Return every policy of groups with several training seeds."""
    metrics = paper_metrics(estimates)
    numbers = {result.label: number for number, result in enumerate(estimates.study.policies)}
    rows = _rows(metrics, list(numbers), lambda label, key: estimates.policy(numbers[label], key))
    title = "Every policy, averaged over scenarios"
    return Table("policies", title, ("Policy", *map(head, metrics)), tuple(rows), (INTERVALS,))


def slice_tables(
    estimates: Estimates, parts: Mapping[str, Sequence[SliceScore]], units: Mapping[str, str]
) -> list[Table]:
    """Return figures by setting, onset, joint, severity and stance."""
    metrics = main_rates(estimates.study.protocol.radii)
    found = []
    for by, first in SLICES.items():
        table = {
            (one.slice.kind, one.slice.name, label): one
            for label, some in parts.items()
            for one in some
            if one.slice.by == by and one.scenario is None
        }
        rows = []
        for kind, name in dict.fromkeys((kind, name) for kind, name, _ in table):
            cells = [Cell(f"{kind} {name} {units.get(kind, '')}".strip() if kind else name.removesuffix("_joint"))]
            for label in parts:
                one = table.get((kind, name, label))
                cells += [Cell(NOTHING if one is None else str(one.score.evaluated))]
                cells += [figure_cell(metric, None if one is None else one.rates[metric.key]) for metric in metrics]
            rows.append(Row(tuple(cells)))
        if by == "onset" and len(rows) == len(estimates.study.protocol.settings):
            continue  # every setting has its own, so that the table would be that of the settings
        if rows:
            header = [first]
            for label in parts:
                prefix = f"{label}: " if len(parts) > 1 else ""
                header += [f"{prefix}evaluated", *(f"{prefix}{head(metric)}" for metric in metrics)]
            note = f"Averaged over the scenarios in which there are such robots. {INTERVALS}"
            found.append(Table(f"by_{by}", f"By {first}", tuple(header), tuple(rows), (note,)))
    return found


def _rows(metrics: Sequence[Metric], names: Sequence[str], figure: Callable[[str, str], Interval | None]) -> list[Row]:
    """Return the lines of figures, the best of each column marked."""
    columns = [_column(metric, names, figure) for metric in metrics]
    return [Row((Cell(name), *(column[row] for column in columns))) for row, name in enumerate(names)]


def _column(metric: Metric, names: Sequence[str], figure: Callable[[str, str], Interval | None]) -> list[Cell]:
    """Return a metric of all names, the best marked."""
    found = [figure(name, metric.key) for name in names]
    digits = 2 if metric.rate else metric.digits
    marks = ranks([None if one is None else round(one.value, digits) for one in found], metric.better)
    return [figure_cell(metric, one, rank) for one, rank in zip(found, marks, strict=True)]
