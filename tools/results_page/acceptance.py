# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What UMC has to do better than normal training, and whether it does: met or missed, with the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import torch
from umc.evaluation.estimates import Estimates
from umc.evaluation.metrics import Episodes, Outcome
from umc.evaluation.protocol import Scenario
from umc.evaluation.report.paper import paper_tables
from umc.evaluation.statistics import Interval
from umc.evaluation.study import EpisodeBatch, PolicyResult, Study
from umc.rl.agents import AGENTS, AgentSpec, agent_spec

HARD = (2, 3, 4)
"""Scenarios in which a joint fails and its sensor is dead."""

HEALTHY = 8
"""Scenario in which nothing breaks."""

POINTS = 0.20
"""By how much UMC's rates have to be better [-]."""

HEALTHY_POINTS = 0.03
"""By how much UMC's rates may be worse where nothing breaks [-]."""

PAPERS_ROWS = {"transformer": "Trf-UMC (Ours)"}
"""Agents that have to meet a row of the paper's main table."""

RESAMPLES = 200
"""Bootstrap resamples: the bars need rates alone, whose intervals are Wilson's."""


ENDS = ("failed", "sunk", "stayed", "walked")
"""What :func:`ends` tells apart."""


@dataclass(frozen=True)
class Bar:
    """One demand."""

    robot: str
    pair: str
    """Who is compared with whom."""
    demand: str
    """What is asked."""
    first: str
    """UMC's figure, in words."""
    second: str
    """What it is compared with."""
    met: bool | None
    """None where it was not measured."""

    @property
    def verdict(self) -> str:
        """Met, missed or not measured."""
        return {True: "met", False: "**missed**", None: "not measured"}[self.met]


def radius_of(robot: str) -> float:
    """Radius of the bars [m]; Solo8's protocol has half the paper's radii."""
    return 1.5 if robot == "solo8" else 3.0


def bars_of(study: Study) -> list[Bar]:
    """Hold a study against the bars."""
    found: list[Bar] = []
    for first, second in pairs(study):
        found += _against(study, first, second)
    for result in study.policies:
        if _agent(result).name in PAPERS_ROWS and result.about.get("stage") == 2:
            found += _paper_bar(study, result, PAPERS_ROWS[_agent(result).name])
    return found


def pairs(study: Study) -> list[tuple[PolicyResult, PolicyResult]]:
    """UMC's policies of Stage 2 with the baseline of the same network."""
    found = []
    for result in study.policies:
        baselines = [one for one in study.policies if _agent(one).name == f"nm_{_agent(result).name}"]
        same = [one for one in baselines if one.about.get("seed") == result.about.get("seed")]
        if result.about.get("stage") == 2 and f"nm_{_agent(result).name}" in AGENTS and baselines:
            found.append((result, (same or baselines)[0]))
    return found


def only(study: Study, scenarios: Sequence[Scenario]) -> Study:
    """A part of a study."""
    before, kept = study.protocol.scenarios, list(scenarios)
    place = torch.full((len(before),), -1)
    for number, scenario in enumerate(kept):
        place[before.index(scenario)] = number

    def part(run: EpisodeBatch) -> EpisodeBatch:
        rows = place[run.cell % len(before)] >= 0
        return EpisodeBatch(
            Episodes(**{field.name: getattr(run.episodes, field.name)[rows] for field in fields(Episodes)}),
            (run.cell // len(before) * len(kept) + place[run.cell % len(before)])[rows],
            run.member[rows],
            run.onset[rows],
            run.joints[rows],
            None if run.severity is None else {kind: values[rows] for kind, values in run.severity.items()},
            None if run.stance is None else run.stance[rows],
        )

    protocol = replace(study.protocol, scenarios=tuple(kept))
    return replace(study, protocol=protocol, policies=tuple(replace(one, run=part(one.run)) for one in study.policies))


def rate(study: Study, result: PolicyResult, metric: str, scenarios: Sequence[Scenario]) -> Interval | None:
    """A rate of one policy, averaged over scenarios."""
    if any(scenario not in study.protocol.scenarios for scenario in scenarios):
        return None
    if metric != "failed" and metric not in {f"reached@{radius:g}" for radius in study.protocol.radii}:
        return None
    part = only(replace(study, policies=(result,)), scenarios)
    return Estimates(part, RESAMPLES).policy(0, metric)


def ends(study: Study, result: PolicyResult, scenarios: Sequence[Scenario], low: float) -> dict[str, float] | None:
    """Shares of the robots that stood at onset, averaged over scenarios; they sum up to 1."""
    episodes = result.run.episodes
    up, failed = episodes.outcome == Outcome.UP, episodes.outcome == Outcome.FAILED
    sunk = up & (episodes.height_after_onset < low)
    walked = up & ~sunk & (episodes.distance > study.protocol.radii[0])
    groups = (failed, sunk, up & ~sunk & ~walked, walked)
    shares = []
    for scenario in scenarios:
        if scenario not in study.protocol.scenarios:
            return None
        rows = study.scenario_rows(result, scenario) & (up | failed)
        if not rows.any():
            return None
        shares.append([float(group[rows].double().mean()) for group in groups])
    return {name: sum(column) / len(shares) for name, column in zip(ENDS, zip(*shares, strict=True), strict=True)}


def _against(study: Study, first: PolicyResult, second: PolicyResult) -> list[Bar]:
    robot, pair = study.protocol.robot, f"{first.label} against {second.label}"
    reached = f"reached@{radius_of(robot):g}"

    def bar(demand: str, metric: str, scenarios: Sequence[Scenario], test: Callable[..., bool]) -> Bar:
        ours, theirs = (rate(study, one, metric, scenarios) for one in (first, second))
        met = None if ours is None or theirs is None else test(ours, theirs)
        return Bar(robot, pair, demand, percent(ours), percent(theirs), met)

    def fails_less(ours: Interval, theirs: Interval) -> bool:
        enough = theirs.value - ours.value >= POINTS or ours.value <= theirs.value / 2
        return ours.value < theirs.value and enough and ours.high < theirs.low

    def reaches_more(ours: Interval, theirs: Interval) -> bool:
        return ours.value - theirs.value >= POINTS and ours.low > theirs.high

    hard = f"scenarios {HARD[0]} to {HARD[-1]}"
    return [
        bar(f"{hard}: fails less, by 20 points or half, intervals apart", "failed", HARD, fails_less),
        bar(f"{hard}: {reached} 20 points more often, intervals apart", reached, HARD, reaches_more),
        bar(
            f"scenario {HEALTHY}: {reached} at most 3 points less",
            reached,
            [HEALTHY],
            lambda ours, theirs: theirs.value - ours.value <= HEALTHY_POINTS,
        ),
        bar(
            f"scenario {HEALTHY}: fails at most 3 points more",
            "failed",
            [HEALTHY],
            lambda ours, theirs: ours.value - theirs.value <= HEALTHY_POINTS,
        ),
    ]


def _paper_bar(study: Study, result: PolicyResult, row: str) -> list[Bar]:
    protocol = study.protocol
    reached = f"reached@{radius_of(protocol.robot):g}"
    for table in paper_tables(protocol):
        if row not in table.rows:
            continue
        values = table.rows[row]
        place = [f"reached@{radius:g}" for radius in table.radii].index(reached)
        wanted = (values[place] / 100, values[-1] / 100)
        found = [rate(study, result, metric, protocol.scenarios) for metric in (reached, "failed")]
        met = None
        if found[0] is not None and found[1] is not None:
            met = found[0].value >= wanted[0] and found[1].value <= wanted[1]
        demand = f"all scenarios: {reached} and failed as good as the paper's"
        ours = f"{percent(found[0])}, failed {percent(found[1])}"
        theirs = f"{values[place]:g}%, failed {values[-1]:g}%"
        return [Bar(protocol.robot, f"{result.label} against the paper's {row}", demand, ours, theirs, met)]
    return []


def percent(found: Interval | None) -> str:
    """A rate and its interval in percent."""
    if found is None:
        return "-"
    return f"{100 * found.value:.0f}% [{100 * found.low:.0f}, {100 * found.high:.0f}]"


def _agent(result: PolicyResult) -> AgentSpec:
    """The agent of a policy; one that is none of UMC's pairs with nobody."""
    name = str(result.about.get("agent", ""))
    return agent_spec(name) or AgentSpec(name, name, "unknown")
