# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of some of the robots: by setting, onset, joint, severity and stance at onset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from umc.evaluation.estimates import average_rate, row_numbers, sums_of
from umc.evaluation.metrics import Score, average, metrics_of
from umc.evaluation.protocol import Scenario
from umc.evaluation.statistics import Interval
from umc.evaluation.study import PolicyResult, Study
from umc.faults import find_scenario

SEVERITY_BINS = 6
"""Most parts that a severity which varies is cut into; each holds as many robots as the next."""

SAME = 1e-6
"""Severities that differ by less, relative to the largest, are one: they are 32-bit floats."""


@dataclass(frozen=True)
class Slice:
    """Some of a policy's robots."""

    by: str
    """What they have in common: ``scenario``, ``setting``, ``onset``, ``joint``, ``severity``, ``stance``."""
    name: str
    """Which one of these."""
    rows: torch.Tensor
    """Where they stand. Shape is (num_envs,)."""
    value: float | None = None
    """A number to draw it at: onset [s], or severity."""
    kind: str = ""
    """Kind of the fault that the severity belongs to."""


@dataclass(frozen=True)
class Part:
    """Figures of a slice."""

    slice: Slice
    scenario: Scenario | None
    """Scenario in which it was looked at; None for the average over the scenarios in which the slice has robots."""
    score: Score
    rates: dict[str, Interval | None]
    """Rates by metric, with intervals."""


def scenario_name(scenario: Scenario) -> str:
    """What happens in a scenario, in a few words."""
    kinds = list(find_scenario(scenario).kinds)
    blind = "dead" in kinds
    words = [{"rom": "range", "effort": "torque", "velocity": "speed"}.get(kind, kind) for kind in kinds]
    others = [word for word in words if word != "dead"]
    return " + ".join(others + (["blind"] if others else ["dead sensor"]) * blind) or "healthy"


def slices(study: Study, result: PolicyResult) -> Iterator[Slice]:
    """All slices of a policy's robots, scenarios left out."""
    run, settings = result.run, study.protocol.settings
    if len(settings) > 1:
        for setting in settings:
            yield Slice("setting", setting.name, study.setting_rows(result, setting))
    onsets = sorted(set(run.onset.tolist()))
    if len(onsets) > 1:
        for onset in onsets:
            yield Slice("onset", f"step {onset}", run.onset == onset, onset * study.step_dt)
    broken = _broken(study, result)
    for number, name in enumerate(study.joint_names):
        yield Slice("joint", name, run.joints[:, number] & broken)
    for kind, severity in (run.severity or {}).items():
        yield from _severities(kind, severity)
    if run.stance is not None:
        yield from _stances(study.feet, run.stance, broken)


def part(study: Study, result: PolicyResult, chosen: Slice, scenario: Scenario | None = None) -> Part:
    """Figures of a slice."""
    rows = chosen.rows
    wanted = study.protocol.scenarios if scenario is None else (scenario,)
    each = [study.score(result, rows & study.scenario_rows(result, one)) for one in wanted]
    metrics = metrics_of(study.protocol.radii)
    numerators, denominators = sums_of(result.run.episodes, metrics, study.step_dt)
    numbers = row_numbers(study, result)
    shape = (len(study.protocol.scenarios), int(numbers["robot"].max(initial=-1)) + 1)
    keep = rows.numpy() & np.isin(numbers["scenario"], [study.protocol.scenarios.index(one) for one in wanted])
    place = (numbers["scenario"][keep], numbers["robot"][keep])
    rates = {}
    for column, metric in enumerate(metrics):
        if metric.rate:
            did, judged = np.zeros(shape), np.zeros(shape)
            np.add.at(did, place, numerators[keep, column])
            np.add.at(judged, place, denominators[keep, column])
            rates[metric.key] = average_rate(did, judged)
    return Part(chosen, scenario, average(each), rates)


def break_down(study: Study, result: PolicyResult) -> list[Part]:
    """Figures of every slice, averaged as the paper does, and of joints in every scenario."""
    found = []
    for chosen in slices(study, result):
        if not bool(chosen.rows.any()):
            continue
        found.append(part(study, result, chosen))
        if chosen.by in ("joint", "severity"):
            for scenario in study.protocol.scenarios:
                if bool((chosen.rows & study.scenario_rows(result, scenario)).any()):
                    found.append(part(study, result, chosen, scenario))
    return found


def _broken(study: Study, result: PolicyResult) -> torch.Tensor:
    """Robots whose scenario has faults: a healthy one may have joints dealt to it that never fail."""
    faulty = torch.tensor([bool(find_scenario(scenario).kinds) for scenario in study.protocol.scenarios])
    return faulty[result.run.cell % len(study.protocol.scenarios)]


def _severities(kind: str, severity: torch.Tensor) -> Iterator[Slice]:
    known = severity[severity.isfinite()].double()
    if not len(known) or float(known.max() - known.min()) <= SAME * float(known.abs().max()):
        return
    distinct = _merged(known.unique(), SAME * float(known.abs().max()))
    if len(distinct) <= SEVERITY_BINS:
        slack = SAME * float(known.abs().max())
        edges = [(value - slack, value + slack, f"{value:.3g}") for value in distinct]
    else:
        cuts = torch.quantile(known, torch.linspace(0.0, 1.0, SEVERITY_BINS + 1, dtype=torch.float64)).tolist()
        edges = [(low, high, f"{low:.3g} to {high:.3g}") for low, high in pairwise(cuts)]
    for number, (low, high, name) in enumerate(edges):
        last = number == len(edges) - 1 or len(distinct) <= SEVERITY_BINS
        rows = (severity.double() >= low) & ((severity.double() <= high) if last else (severity.double() < high))
        if bool(rows.any()):
            yield Slice("severity", name, rows, float(severity[rows].double().mean()), kind)


def _merged(values: torch.Tensor, slack: float) -> list[float]:
    """Sorted values without those that differ by rounding only."""
    found: list[float] = []
    for value in values.tolist():
        if not found or value - found[-1] > slack:
            found.append(value)
    return found


def _stances(feet: tuple[str, ...], stance: torch.Tensor, broken: torch.Tensor) -> Iterator[Slice]:
    """Robots by the feet that were on the ground at onset."""
    for pattern in stance.unique(dim=0):
        down = [foot for foot, on in zip(feet, pattern.tolist(), strict=True) if on]
        yield Slice("stance", " + ".join(down) or "in the air", (stance == pattern).all(dim=1) & broken)
