# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What UMC has to do better than normal training, and whether it does, with the figures."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from umc.evaluation.arguments import HEALTHY
from umc.evaluation.estimates import RobotTable
from umc.evaluation.metrics import Episodes, Metric, Outcome, reached_key
from umc.evaluation.protocol import ScenarioId, protocol_for
from umc.evaluation.report.paper import paper_tables
from umc.evaluation.report.renderers import percent
from umc.evaluation.statistics import Interval
from umc.evaluation.study import EpisodeBatch, PolicyResult, Study
from umc.rl.agents import AGENTS, agent_spec

HARD = (2, 3, 4)
"""Scenarios in which a joint fails and its sensor is dead."""

POINTS = 0.20
"""By how much UMC's rates have to be better [-]."""

HEALTHY_POINTS = 0.03
"""By how much UMC's rates may be worse where nothing breaks [-]."""

PAPER_ROWS = {"mlp": "MLP-UMC (Ours)", "transformer": "Trf-UMC (Ours)"}
"""Agents that have to be as good as these rows of the paper's main table."""

BASELINE_ROWS = {"nm_mlp": "MLP-NM", "nm_transformer": "Trf-NM", "body_transformer": "BodyTrf", "mt_ftc": "MT-FTC"}
"""The same of the paper's baselines, which are only shown."""

ENDS = ("failed", "sunk", "stayed", "walked")
"""What :func:`ends` distinguishes."""


@dataclass(frozen=True)
class Criterion:
    """A demand and the figures that it compares."""

    pair: str
    """Labels of the policies that are compared."""
    demand: str
    ours: str
    """UMC's figure."""
    theirs: str
    """Figure that it is compared with."""
    met: bool | None
    """None where it was not measured."""


def acceptance_reached(robot: str) -> str:
    """Return the key of the rate of the criteria; Solo8's protocol has half the paper's radii."""
    return reached_key(1.5 if robot == "solo8" else 3.0)


def criteria_of(study: Study) -> list[Criterion]:
    """Return the criteria of all policies of a study."""
    found: list[Criterion] = []
    for first, second in pairs(study):
        found += _against_baseline(study, first, second)
    return found + paper_criteria(study, "torque limits act")


def paper_criteria(study: Study, reading: str) -> list[Criterion]:
    """Return the criteria of the policies of Stage 2 that have a row in the paper's table, in one of its readings."""
    found, key = [], acceptance_reached(study.protocol.robot)
    for result in study.policies:
        paper = paper_rates(study, result)
        if _agent(result) not in PAPER_ROWS or result.about.get("stage") != 2 or paper is None:
            continue
        reached, failed = main_rates(study, result)
        met = None
        if reached is not None and failed is not None:
            met = reached.value >= paper[0] / 100 and failed.value <= paper[1] / 100
        pair = f"{result.label} against the paper's {PAPER_ROWS[_agent(result)]}"
        demand = f"all scenarios, {reading}: {key} and failed as good as the paper's"
        ours = f"{percent(reached)}, failed {percent(failed)}"
        found.append(Criterion(pair, demand, ours, f"{paper[0]:g}%, failed {paper[1]:g}%", met))
    return found


def paper_rates(study: Study, result: PolicyResult) -> tuple[float, float] | None:
    """Return what the paper's policy of the same network reaches and fails [%]; None where the paper has none.

    It has none of A1 on flat ground.
    """
    return _paper_rates(study, _agent(result))


def paper_marks(study: Study) -> dict[str, tuple[float, float]]:
    """Return what the paper's UMC reaches and fails [%], by agent; empty where the paper has none."""
    found = {agent: _paper_rates(study, agent) for agent in PAPER_ROWS}
    return {agent: rates for agent, rates in found.items() if rates is not None}


def _paper_rates(study: Study, agent: str) -> tuple[float, float] | None:
    protocol = study.protocol
    if bool(protocol.track) != bool(protocol_for(protocol.robot, name=protocol.name).track):
        return None
    for table in paper_tables(protocol):
        row = table.rows.get({**PAPER_ROWS, **BASELINE_ROWS}.get(agent, ""))
        if row is not None:
            known = dict(zip([*map(reached_key, table.radii), "failed"], row, strict=True))
            return known[acceptance_reached(protocol.robot)], known["failed"]
    return None


def inert_reading(study: Study, inert: Study) -> Study:
    """Return a study in which those scenarios that were simulated with torque limits without effect replace its own."""
    protocol, scenarios = study.protocol, inert.protocol.scenarios
    places = torch.tensor([protocol.scenarios.index(one) for one in scenarios])
    policies = []
    for result, other in zip(study.policies, inert.policies, strict=True):
        kept = ~torch.isin(result.run.cell % len(protocol.scenarios), places)
        cell = other.run.cell // len(scenarios) * len(protocol.scenarios) + places[other.run.cell % len(scenarios)]
        run = EpisodeBatch.join([result.run.select(kept), replace(other.run, cell=cell)])
        policies.append(replace(result, run=run))
    return replace(study, protocol=replace(protocol, severity=inert.protocol.severity), policies=tuple(policies))


def pairs(study: Study) -> list[tuple[PolicyResult, PolicyResult]]:
    """Return UMC's policies of Stage 2, each with the strongest baseline."""
    ours = [one for one in study.policies if one.about.get("stage") == 2 and f"nm_{_agent(one)}" in AGENTS]
    baselines = [one for one in best_and_baseline(study) if is_baseline(one)]
    return list(itertools.product(ours, baselines))


def rate(study: Study, result: PolicyResult, metric: str, scenarios: Sequence[ScenarioId]) -> Interval | None:
    """Return a rate of one policy, averaged over scenarios; None if it was not measured."""
    measured = set(scenarios) <= set(study.protocol.scenarios)
    return RobotTable(study, result).rates(None, scenarios).get(metric) if measured else None


def ends(study: Study, result: PolicyResult, scenarios: Sequence[ScenarioId], low: float) -> dict[str, float] | None:
    """Return how the robots that stood at onset end, averaged over scenarios; the shares sum up to 1.

    A robot has sunk if its trunk was on average below ``low`` [m]; it stayed if it did not reach the smallest radius.
    """

    def share(name: str) -> Metric:
        def terms(episodes: Episodes) -> tuple[torch.Tensor, torch.Tensor]:
            up, far = episodes.outcome == Outcome.UP, episodes.distance > study.protocol.radii[0]
            sunk = up & (episodes.height_after_onset < low)
            groups = (episodes.failed, sunk, up & ~sunk & ~far, up & ~sunk & far)
            return groups[ENDS.index(name)], episodes.evaluated

        return Metric(name, name, terms, rate=True)

    if not set(scenarios) <= set(study.protocol.scenarios):
        return None
    shares = RobotTable(study, result, [share(name) for name in ENDS]).rates(None, scenarios)
    return {name: one.value for name, one in shares.items() if one is not None} or None


def _clearly_better(ours: Interval, theirs: Interval, metric: str) -> bool:
    if metric != "failed":
        return ours.value - theirs.value >= POINTS and ours.low > theirs.high
    return (theirs.value - ours.value >= POINTS or ours.value <= theirs.value / 2) and ours.high < theirs.low


def _hardly_worse(ours: Interval, theirs: Interval, metric: str) -> bool:
    more = ours.value - theirs.value
    return (more if metric == "failed" else -more) <= HEALTHY_POINTS


def _against_baseline(study: Study, first: PolicyResult, second: PolicyResult) -> list[Criterion]:
    reached = acceptance_reached(study.protocol.robot)
    hard, healthy = f"scenarios {HARD[0]} to {HARD[-1]}", f"scenario {HEALTHY}"
    criteria = (
        (f"{hard}: fails less, by 20 points or half, intervals apart", "failed", HARD, _clearly_better),
        (f"{hard}: {reached} 20 points more often, intervals apart", reached, HARD, _clearly_better),
        (f"{healthy}: {reached} at most 3 points less", reached, (HEALTHY,), _hardly_worse),
        (f"{healthy}: fails at most 3 points more", "failed", (HEALTHY,), _hardly_worse),
    )
    found = []
    for demand, metric, scenarios, test in criteria:
        ours, theirs = (rate(study, one, metric, scenarios) for one in (first, second))
        met = None if ours is None or theirs is None else test(ours, theirs, metric)
        pair = f"{first.label} against {second.label}"
        found.append(Criterion(pair, demand, percent(ours), percent(theirs), met))
    return found


def is_baseline(result: PolicyResult) -> bool:
    """Whether a policy was trained without faults."""
    return result.about.get("stage") == 1


def main_rates(study: Study, result: PolicyResult) -> list[Interval | None]:
    """Return reached and failed of a policy, averaged over all scenarios; None for a radius that was not measured."""
    keys, scenarios = (acceptance_reached(study.protocol.robot), "failed"), study.protocol.scenarios
    return [rate(study, result, key, scenarios) for key in keys]


def best_and_baseline(study: Study) -> list[PolicyResult]:
    """Return the UMC policy and the baseline that reach farthest; only one where there is no other."""

    def reached(result: PolicyResult) -> float:
        found = main_rates(study, result)[0]
        return -1.0 if found is None else found.value

    found = []
    for baseline in (False, True):
        group = [result for result in study.policies if is_baseline(result) == baseline]
        found += sorted(group, key=reached)[-1:]
    return found


def _agent(result: PolicyResult) -> str:
    """Name of a policy's agent, UMC's or another."""
    name = str(result.about.get("agent", ""))
    spec = agent_spec(name)
    return name if spec is None else spec.name
