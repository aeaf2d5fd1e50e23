# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of some of the robots: by setting, onset, joint, severity and stance at onset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch

from umc.evaluation.estimates import RobotTable
from umc.evaluation.metrics import Score
from umc.evaluation.protocol import ScenarioId
from umc.evaluation.statistics import Interval
from umc.evaluation.study import PolicyResult, Study
from umc.faults import find_scenario, is_scenario

SEVERITY_BINS = 6
"""Most parts that a severity which varies is cut into; each holds as many robots as the next."""

SAME = 1e-6
"""Severities that differ by less, relative to the largest, are one: they are 32-bit floats."""


@dataclass(frozen=True)
class Slice:
    """Some of a policy's robots."""

    by: str
    """What they have in common: ``setting``, ``onset``, ``joint``, ``severity``, ``stance``."""
    name: str
    """Which one of these."""
    rows: torch.Tensor
    """Which robots they are. Shape is (num_envs,)."""
    value: float | None = None
    """A number to draw it at: onset [s], or severity."""
    kind: str = ""
    """Kind of the fault that the severity belongs to."""


@dataclass(frozen=True)
class SliceScore:
    """Figures of a slice."""

    slice: Slice
    scenario: ScenarioId | None
    """Scenario in which it was looked at; None for the average over the scenarios in which the slice has robots."""
    score: Score
    rates: dict[str, Interval | None]
    """Rates by metric, with intervals."""


def scenario_name(scenario: ScenarioId) -> str:
    """Name a scenario by its kinds of faults, such as ``range + blind``; ``healthy`` if it has none.

    One of a protocol's own is named by its name.
    """
    if not is_scenario(scenario):
        return str(scenario).replace("_", " ")
    kinds = list(find_scenario(scenario).kinds)
    blind = "dead" in kinds
    words = [
        {"rom": "range", "effort": "torque", "velocity": "speed"}.get(kind, kind).replace("_", " ") for kind in kinds
    ]
    others = [word for word in words if word != "dead"]
    return " + ".join(others + (["blind"] if others else ["dead sensor"]) * blind) or "healthy"


def scenario_title(scenario: ScenarioId) -> str:
    """Return number and name of a scenario, ``3: torque + blind``; the name alone of one that is called so."""
    name = scenario_name(scenario)
    return name if name == str(scenario).replace("_", " ") else f"{scenario}: {name}"


def slices(study: Study, result: PolicyResult) -> Iterator[Slice]:
    """Yield settings, onsets, joints, and severities and stances where they were recorded and vary."""
    run, settings = result.run, study.protocol.settings
    if len(settings) > 1:
        for setting in settings:
            yield Slice("setting", setting.name, study.setting_rows(result, setting))
    onsets = sorted(set(run.onset.tolist()))
    if len(onsets) > 1:
        for onset in onsets:
            yield Slice("onset", f"step {onset}", run.onset == onset, onset * study.step_dt)
    for number, name in enumerate(study.joint_names):
        yield Slice("joint", name, run.joints[:, number])
    for kind, severity in (run.severity or {}).items():
        yield from _severities(kind, severity)
    if run.stance is not None:
        yield from _stances(study.feet, run.stance, run.joints.any(dim=1))


def break_down(study: Study, result: PolicyResult) -> list[SliceScore]:
    """Evaluate every slice, averaged as the paper does; joints and severities in every scenario, too."""
    table, found = RobotTable(study, result), []
    scenario_rows = {None: torch.ones_like(result.run.cell, dtype=torch.bool)}
    scenario_rows |= {one: study.scenario_rows(result, one) for one in study.protocol.scenarios}
    for chosen in slices(study, result):
        apart = study.protocol.scenarios if chosen.by in ("joint", "severity") else ()
        for scenario in (None, *apart):
            rows = chosen.rows & scenario_rows[scenario]
            if bool(rows.any()):
                found.append(SliceScore(chosen, scenario, table.score(rows), table.rates(rows)))
    return found


def _severities(kind: str, severity: torch.Tensor) -> Iterator[Slice]:
    """One slice for each of few values, else bins that hold about as many robots each."""
    severity = severity.double()
    known = severity[severity.isfinite()]
    slack = SAME * float(known.abs().max()) if len(known) else 0.0
    distinct: list[float] = []
    for value in known.unique().tolist():
        if not distinct or value - distinct[-1] > slack:
            distinct.append(value)
    if len(distinct) < 2:
        return
    if len(distinct) <= SEVERITY_BINS:
        edges = [(value - slack, value + slack, f"{value:.3g}") for value in distinct]
    else:
        cuts = torch.quantile(known, torch.linspace(0.0, 1.0, SEVERITY_BINS + 1, dtype=torch.float64)).tolist()
        edges = [(low, high, f"{low:.3g} to {high:.3g}") for low, high in pairwise(sorted(set(cuts)))]
    for low, high, name in edges:
        closed = len(distinct) <= SEVERITY_BINS or high == edges[-1][1]
        rows = (severity >= low) & ((severity <= high) if closed else (severity < high))
        if bool(rows.any()):
            yield Slice("severity", name, rows, float(severity[rows].mean()), kind)


def _stances(feet: tuple[str, ...], stance: torch.Tensor, broken: torch.Tensor) -> Iterator[Slice]:
    """Yield the robots by the feet that were on the ground at onset."""
    for pattern in stance.unique(dim=0):
        down = [foot for foot, on in zip(feet, pattern.tolist(), strict=True) if on]
        yield Slice("stance", " + ".join(down) or "in the air", (stance == pattern).all(dim=1) & broken)
