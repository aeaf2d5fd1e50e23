# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""All figures of a study with their intervals, and the tests of what differs between policies.

Every metric is a sum over robots divided by another, so that one bootstrap serves all: robots are drawn anew within
each fault seed, and a robot that is drawn is drawn in all scenarios and settings of its seed and under all policies at
once, since it starts the same and has the same faulty joints in all of them. That keeps pairs together and does not
take one robot in eight scenarios for eight robots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from umc.evaluation.metrics import Episodes, Metric, metrics_of
from umc.evaluation.statistics import (
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

Array = NDArray[Any]


def sums_of(episodes: Episodes, metrics: Sequence[Metric], step_dt: float) -> tuple[Floats, Floats]:
    """Stack what every robot adds to numerator and denominator of every metric; shapes are (num_envs, num_metrics)."""
    pairs = [metric.terms(episodes) for metric in metrics]
    scales = [step_dt if metric.in_steps else 1.0 for metric in metrics]
    numerators = torch.stack([above.double() * scale for (above, _), scale in zip(pairs, scales, strict=True)], dim=1)
    denominators = torch.stack([below.double() for _, below in pairs], dim=1)
    return np.nan_to_num(numerators.numpy()), np.nan_to_num(denominators.numpy())


class Estimates:
    """Figures, intervals and differences of a study.

    Args:
        study: The study.
        resamples: Bootstrap resamples.
        seed: Seed of the bootstrap.

    Raises:
        UmcError: If two policies bear one name, or a run holds a robot twice.
    """

    def __init__(self, study: Study, resamples: int = RESAMPLES, seed: int = 0) -> None:
        labels = [result.label for result in study.policies]
        if not labels or len(set(labels)) != len(labels):
            raise UmcError(f"a report needs policies with different labels, not {labels}")
        self.study = study
        self.resamples, self.seed = resamples, seed
        self.metrics = metrics_of(study.protocol.radii)
        self._index = {metric.key: number for number, metric in enumerate(self.metrics)}
        _check_pairs(study)
        units = [_robots(study, result) for result in study.policies]
        robots = np.unique(units[0], axis=0)
        self.num_robots = len(robots)
        """Different robots: one start and one set of faulty joints each."""

        places = [_rows_in(robots, found) for found in units]
        shape = (len(labels), len(study.protocol.scenarios), self.num_robots, len(self.metrics))
        numerators, denominators = np.zeros(shape), np.zeros(shape)
        for policy, result in enumerate(study.policies):
            scenario = (result.run.cell % len(study.protocol.scenarios)).numpy()
            found = sums_of(result.run.episodes, self.metrics, study.step_dt)
            # settings of one seed hold the same robots, which then count several times in a scenario
            np.add.at(numerators[policy], (scenario, places[policy]), found[0])
            np.add.at(denominators[policy], (scenario, places[policy]), found[1])
        self._numerators, self._denominators = numerators, denominators

        columns = np.stack([numerators, denominators]).transpose(3, 0, 1, 2, 4)
        # policy by policy: in one product of all, two equal policies would differ by their columns' rounding
        tables = [columns[:, :, policy].reshape(self.num_robots, -1) for policy in range(len(labels))]
        sums = np.stack([resampled(table, robots[:, 0], resamples, seed) for table in tables], axis=1)
        sums = sums.reshape(-1, len(labels), 2, *columns.shape[3:]).swapaxes(1, 2)
        self._replicates = _with_average(_ratio(sums[:, 0], sums[:, 1]).transpose(1, 2, 3, 0))
        self._values = _with_average(_ratio(numerators.sum(axis=2), denominators.sum(axis=2))[..., None])[..., 0]

    @property
    def groups(self) -> dict[str, list[int]]:
        """Policies of each group, by number, in the order in which they first appear."""
        found: dict[str, list[int]] = {}
        for number, name in enumerate(group_names(self.study)):
            found.setdefault(name, []).append(number)
        return found

    def policy(self, number: int, metric: str, scenario: int | None = None) -> Interval | None:
        """A figure of one policy."""
        column, place = self._index[metric], -1 if scenario is None else scenario
        value = float(self._values[number, place, column])
        if not np.isfinite(value):
            return None
        if not self.metrics[column].rate:
            return percentiles(value, self._replicates[number, place, column])
        rows = slice(None) if scenario is None else slice(scenario, scenario + 1)
        return average_rate(self._numerators[number, rows, :, column], self._denominators[number, rows, :, column])

    def group(self, name: str, metric: str, scenario: int | None = None) -> Interval | None:
        """A figure of a group: the mean over its training seeds."""
        members = self.groups[name]
        if len(members) == 1:
            return self.policy(members[0], metric, scenario)
        column, place = self._index[metric], -1 if scenario is None else scenario
        values = self._values[members, place, column]
        if not np.isfinite(values).any():
            return None
        found = percentiles(float(_mean(values)), over_seeds(self._replicates[members, place, column], self.seed))
        if not self.metrics[column].rate:
            return found
        return Interval(found.value, max(found.low, 0.0), min(found.high, 1.0))

    def difference(self, first: str, second: str, metric: str, scenario: int | None = None) -> Difference | None:
        """By how much a group's figure exceeds another's, over the robots that both met."""
        column, place = self._index[metric], -1 if scenario is None else scenario
        figures, replicates = [], []
        for number, name in enumerate((first, second)):
            members = self.groups[name]
            figures.append(float(_mean(self._values[members, place, column])))
            # other seeds are drawn for the second group than for the first: trainings are not paired
            replicates.append(over_seeds(self._replicates[members, place, column], self.seed + number))
        if not np.isfinite(figures).all():
            return None
        return difference(figures[0], figures[1], replicates[1] - replicates[0], self.num_robots)


def group_names(study: Study) -> list[str]:
    """What reports call the group of every policy: its group, or its own label where it is alone."""
    size = Counter(result.group for result in study.policies)
    several = {group for group, count in size.items() if count > 1}
    return [one.label if size[one.group] == 1 and one.label not in several else one.group for one in study.policies]


def average_rate(numerators: Floats, denominators: Floats) -> Interval | None:
    """A rate averaged over scenarios, each weighing the same, with Wilson's interval for robots that repeat.

    Args:
        numerators: Robots that did it. Shape is (num_scenarios, num_robots).
        denominators: Robots that were judged. Shape is (num_scenarios, num_robots).
    """
    judged = denominators.sum(axis=1)
    numerators, denominators, judged = numerators[judged > 0], denominators[judged > 0], judged[judged > 0]
    if not len(judged):
        return None
    rates = numerators.sum(axis=1) / judged
    influence = ((numerators - rates[:, None] * denominators) / judged[:, None]).sum(axis=0) / len(judged)
    units = int((denominators.sum(axis=0) > 0).sum())
    return wilson_of_mean(float(rates.mean()), float((influence**2).sum()), units)


def row_numbers(study: Study, result: PolicyResult) -> Mapping[str, Array]:
    """Scenario and robot of every row of a run.

    Returns:
        ``scenario``: its place in the protocol; ``robot``: a number that is the same in all scenarios and in settings
        of one seed. Shapes are (num_envs,).
    """
    _, robot = np.unique(_robots(study, result), axis=0, return_inverse=True)
    return {"scenario": (result.run.cell % len(study.protocol.scenarios)).numpy(), "robot": robot.reshape(-1)}


def _robots(study: Study, result: PolicyResult) -> Array:
    """Seed and member of every row, which decide its start and its joints: who it is, whatever it meets."""
    seeds = torch.tensor([setting.seed for setting, _ in study.protocol.cells])
    return np.stack([seeds[result.run.cell].numpy(), result.run.member.numpy()], axis=1)


def _check_pairs(study: Study) -> None:
    """Make sure that all policies met the same robots in the same scenarios."""
    keys = [torch.stack([result.run.cell, result.run.member], dim=1).numpy() for result in study.policies]
    for result, key in zip(study.policies, keys, strict=True):
        both, _ = matched(keys[0], key)
        if not len(both) == len(keys[0]) == len(key):
            raise UmcError(
                f"{result.label} and {study.policies[0].label} did not meet the same robots; evaluate them in one run"
            )


def _rows_in(robots: Array, units: Array) -> Array:
    """Where each unit stands among the sorted robots."""
    stride = 1 + int(robots[:, 1].max())
    return np.searchsorted(robots[:, 0] * stride + robots[:, 1], units[:, 0] * stride + units[:, 1])


def _ratio(numerators: Floats, denominators: Floats) -> Floats:
    """Quotients, NaN where there is nothing to divide by."""
    return np.divide(
        numerators, denominators, out=np.full(numerators.shape, np.nan, numerators.dtype), where=denominators > 0.0
    )


def _mean(values: Floats, axis: int = 0) -> Floats:
    """Mean of what is known, NaN where nothing is."""
    known = np.isfinite(values)
    return _ratio(np.where(known, values, 0.0).sum(axis=axis), known.sum(axis=axis).astype(values.dtype))


def _with_average(values: Floats) -> Floats:
    """Add the average over scenarios, the second axis, as one more of them."""
    return np.concatenate([values, _mean(values, axis=1)[:, None]], axis=1)
