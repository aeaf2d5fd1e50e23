# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A study in plain values: ``report.json`` and the CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from umc.evaluation.breakdown import SliceScore
from umc.evaluation.estimates import Estimates
from umc.evaluation.metrics import COUNTS, EPISODE_COLUMNS, Outcome, metrics_of
from umc.evaluation.report.paper import departures, paper_tables, read_paper
from umc.evaluation.statistics import LEVEL, wilson
from umc.evaluation.study import PolicyResult, Study, drawn_faults
from umc.utils.io import without_nan

SCHEMA = 3
"""Version of the layout of ``report.json``; 2 had ``judged`` for ``evaluated``."""

DEFINITION = (
    "reached@k: moved beyond k meters (horizontally) from where it stood at onset and did not fall before the end; "
    "failed: fell after onset; both divided by the robots that stood at onset. Robots that fell before onset or whose "
    "physics became non-finite are left out and counted. The average weighs scenarios equally."
)

DIGITS = 6
"""Digits that CSV files keep."""


def study_content(estimates: Estimates, parts: Mapping[str, Sequence[SliceScore]]) -> dict[str, Any]:
    """Return the content of ``report.json``."""
    study, groups = estimates.study, estimates.groups
    places = {**{str(name): place for place, name in enumerate(study.protocol.scenarios)}, "all": None}
    policies = [
        {
            "label": result.label,
            "group": result.group,
            "about": dict(result.about),
            **_figures(estimates, partial(estimates.policy, number)),
            "counts": {name: estimates.counts(number, place) for name, place in places.items()},
            "breakdown": [_part(one) for one in parts[result.label]],
            **_detections(study, result),
        }
        for number, result in enumerate(study.policies)
    ]
    names = list(groups)
    return {
        "schema": SCHEMA,
        "kind": "faults",
        "about": dict(study.about),
        "definition": DEFINITION,
        "protocol": study.protocol.describe(),
        "departures_from_paper": departures(study),
        "step_dt_s": study.step_dt,
        "joints": list(study.joint_names),
        "feet": list(study.feet),
        "faults_drawn": {str(name): drawn for name, drawn in drawn_faults(study).items()},
        "statistics": {
            "level": LEVEL,
            "resamples": estimates.resamples,
            "seed": estimates.seed,
            "robots": estimates.num_robots,
            "too_few_for_bootstrap": estimates.too_few,
        },
        "metrics": {metric.key: metric.describe() for metric in estimates.metrics},
        "policies": policies,
        "groups": [
            {
                "name": name,
                "policies": [study.policies[number].label for number in members],
                **_figures(estimates, partial(estimates.group, name)),
            }
            for name, members in groups.items()
        ],
        "differences": [
            {
                "first": names[0],
                "second": second,
                **_figures(estimates, partial(estimates.difference, names[0], second)),
            }
            for second in names[1:]
        ],
        "paper": {
            "source": read_paper()["source"],
            "tables": [asdict(table) for table in paper_tables(study.protocol)],
        },
        "versions": dict(study.about.get("versions", {})),
    }


def robots_csv(study: Study) -> str:
    """One line per robot and policy."""
    kinds = sorted({kind for result in study.policies for kind in result.run.severity or {}})
    head = ["policy", "group", "scenario", "setting", "seed", "onset_step", "member", "outcome", "faulty_joints"]
    head += ["feet_at_onset"]
    rows: list[list[Any]] = [head + [*EPISODE_COLUMNS] + [f"severity_{kind}" for kind in kinds]]
    cells = study.protocol.cells
    for result in study.policies:
        run, episodes = result.run, result.run.episodes
        joints = [_names(study.joint_names, row) for row in run.joints.tolist()]
        stances = [""] * len(joints) if run.stance is None else [_names(study.feet, row) for row in run.stance.tolist()]
        columns = [getattr(episodes, field).tolist() for field in EPISODE_COLUMNS.values()]
        columns += [
            run.severity[kind].tolist() if run.severity and kind in run.severity else [None] * len(joints)
            for kind in kinds
        ]
        for row, (cell, member, onset, outcome) in enumerate(
            zip(run.cell.tolist(), run.member.tolist(), run.onset.tolist(), episodes.outcome.tolist(), strict=True)
        ):
            setting, scenario = cells[cell]
            line = [result.label, result.group, scenario, setting.name, setting.seed, onset, member]
            line += [Outcome(outcome).name.lower(), joints[row], stances[row]]
            rows.append(line + [_number(column[row]) for column in columns])
    return _csv(rows)


def cells_csv(study: Study) -> str:
    """One line per policy, setting and scenario."""
    metrics = metrics_of(study.protocol.radii)
    rates = [metric.key for metric in metrics if metric.rate]
    means = [metric.key for metric in metrics if not metric.rate]
    head = ["policy", "group", "scenario", "setting", "seed", "onset_step", "perlin_seed", *COUNTS]
    head += [f"{key.replace('@', '_')}{end}" for key in rates for end in ("", "_low", "_high")]
    rows: list[list[Any]] = [head + means]
    for result in study.policies:
        for cell, (setting, scenario) in enumerate(study.protocol.cells):
            score = study.score(result, result.run.cell == cell)
            row: list[Any] = [result.label, result.group, scenario, setting.name, setting.seed, setting.onset]
            row += ["" if setting.perlin_seed is None else setting.perlin_seed]
            row += score.counts.values()
            for share in (score[key] for key in rates):
                found = None if share is None else wilson(round(share * score.evaluated), score.evaluated)
                row += ["", "", ""] if found is None else [_number(one) for one in (found.value, found.low, found.high)]
            rows.append(row + [_number(score[key]) for key in means])
    return _csv(rows)


def _figures(estimates: Estimates, figure: Any) -> dict[str, Any]:
    """Return the figures of all metrics, on average and by scenario."""

    def at(place: int | None) -> dict[str, Any]:
        found = {metric.key: figure(metric.key, place) for metric in estimates.metrics}
        return {key: None if one is None else without_nan(asdict(one)) for key, one in found.items()}

    scenarios = estimates.study.protocol.scenarios
    return {"average": at(None), "scenarios": {str(name): at(place) for place, name in enumerate(scenarios)}}


def _detections(study: Study, result: PolicyResult) -> dict[str, Any]:
    """Return what a detector reported by scenario; nothing without one."""
    found = {str(name): study.detection_score(result, name) for name in study.protocol.scenarios}
    return {"detector": {name: one.describe() for name, one in found.items() if one}} if any(found.values()) else {}


def _part(one: SliceScore) -> dict[str, Any]:
    slice_ = one.slice
    return {
        "by": slice_.by,
        "name": slice_.name,
        "kind": slice_.kind or None,
        "value": slice_.value,
        "scenario": one.scenario,
        "score": one.score.describe(),
        "rates": {key: None if rate is None else asdict(rate) for key, rate in one.rates.items()},
    }


def _names(names: Sequence[str], flags: Sequence[bool]) -> str:
    return " ".join(name for name, on in zip(names, flags, strict=True) if on)


def _number(value: float | None) -> str | int:
    if value is None or value != value:  # NaN
        return ""
    return value if isinstance(value, int) else f"{value:.{DIGITS}g}"


def _csv(rows: Sequence[Sequence[Any]]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()
