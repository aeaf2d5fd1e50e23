# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""All figures of a study with their intervals, and the tests of what differs between policies.

Every metric is a sum over robots divided by another, so that one bootstrap serves all: robots are drawn anew within
each fault seed, and a robot that is drawn is drawn in all scenarios and settings of its seed and under all policies at
once, since it starts the same and has the same faulty joints in all of them. That keeps pairs together and does not
take one robot in eight scenarios for eight robots.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from umc.evaluation.metrics import Metric, Score, counts_of, mean_of_known, metrics_of, ratios, sums_of
from umc.evaluation.protocol import ScenarioId
from umc.evaluation.statistics import (
    MIN_ROBOTS,
    RESAMPLES,
    Difference,
    Floats,
    Interval,
    difference,
    matched,
    over_seeds,
    percentiles,
    resampled,
    wilson_of_mean,
)
from umc.evaluation.study import PolicyResult, Study
from umc.utils.errors import UmcError

ROUNDING = 1e-24
"""Variance of a rate that is rounding, not scatter."""


class RobotTable:
    """Numerators and denominators of metrics by scenario and robot of a policy.

    A robot is a seed and a member, which decide its start and its faulty joints. It counts several times in a scenario
    if several settings have its seed.
    """

    def __init__(self, study: Study, result: PolicyResult, metrics: Sequence[Metric] | None = None) -> None:
        self.study, self.episodes = study, result.run.episodes
        self.metrics = metrics_of(study.protocol.radii) if metrics is None else metrics
        seeds = torch.tensor([setting.seed for setting, _ in study.protocol.cells])
        names = np.stack([seeds[result.run.cell].numpy(), result.run.member.numpy()], axis=1)
        self.robots, robot = np.unique(names, axis=0, return_inverse=True)
        """Seed and member of every robot, sorted. Shape is (num_robots, 2)."""
        self._place = (result.run.cell % len(study.protocol.scenarios)).numpy(), robot.reshape(-1)
        self._rows = sums_of(self.episodes, self.metrics, study.step_dt)

    def sums(self, select: torch.Tensor | None = None) -> tuple[Floats, Floats]:
        """Return numerators and denominators; shapes are (num_scenarios, num_robots, num_metrics)."""
        rows = slice(None) if select is None else select.numpy()
        found = []
        for values in self._rows:
            table = np.zeros((len(self.study.protocol.scenarios), len(self.robots), len(self.metrics)))
            np.add.at(table, tuple(place[rows] for place in self._place), values[rows])
            found.append(table)
        return found[0], found[1]

    def score(self, select: torch.Tensor | None = None) -> Score:
        """Average the metrics of all or selected robots as the paper does: scenarios that have any weigh the same."""
        numerators, denominators = (sums.sum(axis=1) for sums in self.sums(select))
        values = mean_of_known(ratios(numerators, denominators))
        return Score.of(counts_of(self.episodes, select), (metric.key for metric in self.metrics), values)

    def rates(
        self, select: torch.Tensor | None = None, scenarios: Sequence[ScenarioId] | None = None
    ) -> dict[str, Interval | None]:
        """Return the rates by key, averaged over those of ``scenarios`` that have such robots."""
        known = self.study.protocol.scenarios
        numerators, denominators = self.sums(select)
        places = [known.index(scenario) for scenario in (known if scenarios is None else scenarios)]
        return {
            metric.key: average_rate(numerators[places, :, column], denominators[places, :, column])
            for column, metric in enumerate(self.metrics)
            if metric.rate
        }


def too_few_robots(study: Study) -> bool:
    """Return whether a fault seed has too few robots for a bootstrap."""
    seeds = torch.tensor([setting.seed for setting, _ in study.protocol.cells])
    run = study.policies[0].run
    robots = torch.stack((seeds[run.cell], run.member), dim=1).unique(dim=0)
    return int(robots[:, 0].unique(return_counts=True)[1].min()) < MIN_ROBOTS


class Estimates:
    """Figures, intervals and differences of a study; UmcError if two policies have one name, or a run a robot twice."""

    def __init__(self, study: Study, resamples: int = RESAMPLES, seed: int = 0) -> None:
        labels = [result.label for result in study.policies]
        if not labels or len(set(labels)) != len(labels):
            raise UmcError(f"a report needs policies with different labels, not {labels}; give --labels")
        self.study = study
        self.resamples, self.seed = resamples, seed
        self.metrics = metrics_of(study.protocol.radii)
        self._index = {metric.key: number for number, metric in enumerate(self.metrics)}
        _check_pairs(study)
        tables = [RobotTable(study, result) for result in study.policies]
        strata = tables[0].robots[:, 0]
        self.num_robots = len(strata)
        """Different robots: one start and one set of faulty joints each."""
        self.too_few = too_few_robots(study)
        """Whether a fault seed has too few robots for bootstrapped intervals and p-values, which are then NaN."""

        sums = [np.stack(table.sums()) for table in tables]
        self._numerators, self._denominators = np.stack(sums, axis=1)
        # policy by policy: in one product of all, two equal policies would differ by their columns' rounding
        columns = [one.transpose(2, 0, 1, 3).reshape(self.num_robots, -1) for one in sums]
        drawn = np.stack([resampled(one, strata, resamples, seed) for one in columns])
        drawn = drawn.reshape(len(labels), -1, 2, len(study.protocol.scenarios), len(self.metrics))
        self._replicates = _with_average(ratios(*drawn.transpose(2, 0, 3, 4, 1)))
        self._values = _with_average(ratios(self._numerators.sum(axis=2), self._denominators.sum(axis=2)))

    @property
    def groups(self) -> dict[str, list[int]]:
        """Policies of each group, by number, in the order in which they first appear."""
        found: dict[str, list[int]] = {}
        for number, name in enumerate(group_names(self.study)):
            found.setdefault(name, []).append(number)
        return found

    def counts(self, number: int, scenario: int | None = None) -> dict[str, int]:
        """Return the robots of one policy by :data:`umc.evaluation.metrics.COUNTS`, in a scenario or in all."""
        result, known = self.study.policies[number], self.study.protocol.scenarios
        rows = None if scenario is None else self.study.scenario_rows(result, known[scenario])
        return counts_of(result.run.episodes, rows)

    def policy(self, number: int, metric: str, scenario: int | None = None) -> Interval | None:
        """Return a figure of one policy; ``scenario`` is its place in the protocol, None the average."""
        column, place = self._index[metric], -1 if scenario is None else scenario
        value = float(self._values[number, place, column])
        if not np.isfinite(value):
            return None
        if not self.metrics[column].rate:
            return self._percentiles(value, self._replicates[number, place, column], self._few([number], place, column))
        rows = slice(None) if scenario is None else slice(scenario, scenario + 1)
        return average_rate(self._numerators[number, rows, :, column], self._denominators[number, rows, :, column])

    def group(self, name: str, metric: str, scenario: int | None = None) -> Interval | None:
        """Return a figure of a group: the mean over its training seeds."""
        members = self.groups[name]
        if len(members) == 1:
            return self.policy(members[0], metric, scenario)
        column, place = self._index[metric], -1 if scenario is None else scenario
        values = self._values[members, place, column]
        if not np.isfinite(values).any():
            return None
        found = self._percentiles(
            float(mean_of_known(values)),
            over_seeds(self._replicates[members, place, column], self.seed),
            self._few(members, place, column),
        )
        if math.isnan(found.low) or not self.metrics[column].rate:
            return found
        return Interval(found.value, max(found.low, 0.0), min(found.high, 1.0))

    def difference(self, first: str, second: str, metric: str, scenario: int | None = None) -> Difference | None:
        """Return by how much a group's figure exceeds another's, over the same robots."""
        column, place = self._index[metric], -1 if scenario is None else scenario
        groups = [self.groups[first], self.groups[second]]
        figures = [float(mean_of_known(self._values[members, place, column])) for members in groups]
        if not np.isfinite(figures).all():
            return None
        one, other = (self._replicates[members, place, column] for members in groups)
        if self._files(groups[0]) == self._files(groups[1]):  # such as one policy with two detectors
            replicates = over_seeds(other - one, self.seed)
        else:  # other seeds are drawn for the second group than for the first: trainings are not paired
            replicates = over_seeds(other, self.seed + 1) - over_seeds(one, self.seed)
        found = difference(figures[0], figures[1], replicates, self.num_robots)
        few = self._few(groups[0] + groups[1], place, column)
        return replace(found, low=math.nan, high=math.nan, p=math.nan) if few else found

    def _files(self, members: Sequence[int]) -> list[str | int]:
        """Return what tells the files of some policies apart."""
        return [self.study.policies[number].about.get("sha256", number) for number in members]

    def _few(self, members: Sequence[int], place: int, column: int) -> bool:
        """Return whether a figure of one of some policies that have it has too few robots for a bootstrap."""
        rows = slice(None) if place < 0 else slice(place, place + 1)
        counts = (self._denominators[members, rows, :, column].sum(axis=1) > 0).sum(axis=-1)
        return self.too_few or 0 < int(counts[counts > 0].min(initial=MIN_ROBOTS)) < MIN_ROBOTS

    def _percentiles(self, value: float, replicates: Floats, few: bool) -> Interval:
        return Interval(value, math.nan, math.nan) if few else percentiles(value, replicates)


def group_names(study: Study) -> list[str]:
    """Return what reports call the group of every policy: its group, or its own label where it is alone."""
    size = Counter(result.group for result in study.policies)
    several = {group for group, count in size.items() if count > 1}
    return [one.label if size[one.group] == 1 and one.label not in several else one.group for one in study.policies]


def average_rate(numerators: Floats, denominators: Floats) -> Interval | None:
    """Return a rate averaged over scenarios, each weighing the same, with Wilson's interval for robots that repeat.

    Robots that did it, and that were evaluated; shapes are (num_scenarios, num_robots).
    """
    count = denominators.sum(axis=1)
    numerators, denominators, count = numerators[count > 0], denominators[count > 0], count[count > 0]
    if not len(count):
        return None
    rates = numerators.sum(axis=1) / count
    influence = ((numerators - rates[:, None] * denominators) / count[:, None]).sum(axis=0) / len(count)
    units = int((denominators.sum(axis=0) > 0).sum())
    variance = float((influence**2).sum())
    return wilson_of_mean(float(rates.mean()), variance if variance > ROUNDING else 0.0, units)


def _check_pairs(study: Study) -> None:
    """Make sure that all policies were run on the same robots in the same scenarios."""
    keys = [torch.stack([result.run.cell, result.run.member], dim=1).numpy() for result in study.policies]
    for result, key in zip(study.policies, keys, strict=True):
        both, _ = matched(keys[0], key)
        if not len(both) == len(keys[0]) == len(key):
            raise UmcError(
                f"{result.label} and {study.policies[0].label} did not run on the same robots; evaluate them in one run"
            )


def _with_average(values: Floats) -> Floats:
    """Add the average over scenarios, the second axis, as one more of them."""
    return np.concatenate([values, mean_of_known(values, axis=1)[:, None]], axis=1)
