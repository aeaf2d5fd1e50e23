# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Confidence intervals: Wilson's of a rate, and seeded bootstraps over robots and training seeds.

Pure NumPy and SciPy. Every random number comes from the ``seed`` that is given, so that a report can be regenerated to
the digit.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri, stdtrit
from scipy.stats import CensoredData, ecdf

from umc.utils.errors import UmcError

LEVEL = 0.95
"""Confidence level of all intervals [-]."""

RESAMPLES = 2000
"""Bootstrap resamples; the ends of a 95 % interval then rest on 50 of them each."""

MIN_ROBOTS = 10
"""Robots of a stratum below which a bootstrap has no interval and no p: too few scatter too little."""

CHUNK = 4_000_000
"""Random draws that are held in memory at once."""

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval; NaN for its ends where there are too few robots."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """Difference of the estimates of two policies, over the same robots."""

    value: float
    """Second minus first."""
    low: float
    high: float
    p: float
    """Two-sided bootstrap p-value of no difference.

    NaN, as ``low`` and ``high``, where there are too few robots.
    """
    count: int
    """Robots that were compared."""


def wilson(successes: float, count: float) -> Interval | None:
    """Return Wilson's score interval of a rate, honest for few robots and rates of 0 and 1; None without robots.

    Raises UmcError if there are more successes than robots, or fewer than none.
    """
    if not 0 <= successes <= count:
        raise UmcError(f"{successes} of {count} is no rate; successes lie between 0 and the count")
    if count == 0:
        return None
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2.0)
    rate, weight = successes / count, z * z / count
    centre = (rate + weight / 2.0) / (1.0 + weight)
    half = z / (1.0 + weight) * math.sqrt(rate * (1.0 - rate) / count + weight / (4.0 * count))
    # rounding must not push an end past the rate that it belongs to
    return Interval(rate, max(0.0, min(centre - half, rate)), min(1.0, max(centre + half, rate)))


def poisson_rate(count: int, duration: float) -> Interval | None:
    """Return the rate of events in a duration, with the exact interval of a Poisson process; None without time."""
    if duration <= 0.0:
        return None
    tail = 0.5 - LEVEL / 2.0
    low = float(chdtri(2 * count, 1.0 - tail)) / 2.0 if count else 0.0
    return Interval(count / duration, low / duration, float(chdtri(2 * count + 2, tail)) / 2.0 / duration)


def wilson_of_mean(rate: float, variance: float, units: int) -> Interval:
    """Return Wilson's interval of a rate that is averaged over scenarios, whose robots are not independent.

    The same robot, with the same faulty joints, goes through all scenarios. The variance says how much the average
    scatters; the number of independent robots that would scatter as much takes the place of the count.
    """
    effective = rate * (1.0 - rate) / variance if variance > 0.0 and 0.0 < rate < 1.0 else float(units)
    found = wilson(rate * effective, effective)
    assert found is not None
    return found


def percentiles(value: float, replicates: Floats) -> Interval:
    """Return the percentile interval of a bootstrap."""
    known = replicates[np.isfinite(replicates)]
    if not len(known):
        return Interval(value, value, value)
    low, high = np.quantile(known, [0.5 - LEVEL / 2.0, 0.5 + LEVEL / 2.0])
    # replicates of 32 bits must not push an end past the value that it belongs to
    return Interval(value, min(float(low), value), max(float(high), value))


def difference(first: float, second: float, replicates: Floats, count: int) -> Difference:
    """Return the interval and p of a difference from a bootstrap."""
    known = replicates[np.isfinite(replicates)]
    found = percentiles(second - first, known)
    beyond = min(int((known <= 0.0).sum()), int((known >= 0.0).sum()))
    p = min(1.0, 2.0 * (beyond + 1) / (len(known) + 1))
    return Difference(found.value, found.low, found.high, p, count)


def draws(
    strata: ArrayLike, resamples: int = RESAMPLES, seed: int = 0, chunk: int = CHUNK
) -> Iterator[NDArray[np.float32]]:
    """Draw robots anew within each of their ``strata``, shape (U,): yield how often every robot is drawn.

    Counts have the shape (b, U), and the b add up to ``resamples``; ``chunk`` draws are held in memory at once.
    """
    rng = np.random.default_rng(seed)
    groups = [np.flatnonzero(np.asarray(strata) == name) for name in np.unique(np.asarray(strata))]
    units = sum(len(group) for group in groups)
    step = max(1, chunk // max(units, 1))
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        counts = np.empty((rows, units), dtype=np.float32)
        for group in groups:
            size = len(group)
            drawn = rng.integers(0, size, (rows, size)) + np.arange(rows)[:, None] * size
            counts[:, group] = np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size)
        yield counts


def resampled(sums: ArrayLike, strata: ArrayLike, resamples: int = RESAMPLES, seed: int = 0) -> Floats:
    """Return sums over the robots of every resample, shape (resamples, K); all columns see the same robots.

    ``sums`` is what every robot adds to each sum, shape (U, K), ``strata`` its stratum, shape (U,).
    """
    columns = np.asarray(sums, dtype=np.float32)
    return np.concatenate([counts @ columns for counts in draws(strata, resamples, seed)])


def bootstrap_mean(values: ArrayLike, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """Return the mean of independent robots' values with its percentile interval."""
    numbers = np.asarray(values, dtype=np.float64)
    return percentiles(float(numbers.mean()), _mean_replicates(numbers, resamples, seed))


def over_seeds(replicates: Floats, seed: int = 0) -> Floats:
    """Turn a bootstrap over robots into one over robots and training seeds.

    One policy fewer is drawn than there are, which makes the scatter between policies come out right on average (Rao
    and Wu 1988). It is then widened as Student's t is against the normal distribution, for few policies tell little
    of their scatter.

    Args:
        replicates: A figure of every policy in every resample of the robots; NaN where it has none. Shape is
            (S, resamples).
        seed: Seed of the draws of policies.

    Returns:
        Mean over the policies drawn, in every resample; NaN where none of those has a figure. Shape is (resamples,).
        A policy without any figure is left out. A policy that is alone keeps its figures.
    """
    replicates = replicates[np.isfinite(replicates).any(axis=1)]
    policies, resamples = replicates.shape
    if policies == 0:
        return np.full(resamples, np.nan)
    if policies == 1:
        return replicates[0]
    rng = np.random.default_rng([seed, policies])
    chosen = rng.integers(0, policies, (policies - 1, resamples))
    figures = replicates[chosen, np.arange(resamples)]
    known = np.isfinite(figures)
    with np.errstate(invalid="ignore"):  # nothing known: 0 / 0
        drawn = np.where(known, figures, 0.0).sum(axis=0) / known.sum(axis=0)
    tail = 0.5 + LEVEL / 2.0
    widening = float(stdtrit(policies - 1, tail)) / NormalDist().inv_cdf(tail)
    middle = float(np.nanmean(replicates))
    return middle + widening * (drawn - middle)


def kaplan_meier(steps: ArrayLike, fell: ArrayLike, step_dt: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the Kaplan-Meier curve of the share of robots that still stand, with log-log intervals.

    Args:
        steps: Env steps after onset that each robot stood, its last one included. Shape is (n,), n > 0.
        fell: Whether it fell at its last step; else its episode ended while it stood. Shape is (n,).
        step_dt: Duration of an env step [s].

    Returns:
        Time since onset [s], share, and lower and upper end of its interval. Each share holds until the next time.
        Shapes are (T,).
    """
    steps, fell = np.asarray(steps), np.asarray(fell, dtype=bool)
    curve = ecdf(CensoredData(uncensored=steps[fell], right=steps[~fell])).sf
    share = curve.probabilities
    with warnings.catch_warnings():  # there is no interval where all stand or all fell
        warnings.simplefilter("ignore", RuntimeWarning)
        found = curve.confidence_interval(confidence_level=LEVEL, method="log-log")
    certain = (share == 1.0) | (share == 0.0)
    low, high = (np.where(certain, share, end.probabilities) for end in (found.low, found.high))
    times = np.append(0.0, curve.quantiles * step_dt)
    return times, np.append(1.0, share), np.append(1.0, low), np.append(1.0, high)


def matched(first: ArrayLike, second: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of the robots that two runs share, from their cells and members; shapes are (n, 2), (m, 2).

    Raises UmcError if a run holds a robot twice.
    """
    keys = [np.asarray(found, dtype=np.int64).reshape(-1, 2) for found in (first, second)]
    stride = 1 + max((int(key[:, 1].max()) for key in keys if len(key)), default=0)
    flat = [key[:, 0] * stride + key[:, 1] for key in keys]
    for found in flat:
        if len(np.unique(found)) != len(found):
            raise UmcError("a run holds the same cell and member twice; join batches whose members differ")
    _, left, right = np.intersect1d(*flat, assume_unique=True, return_indices=True)
    return left, right


def paired_bootstrap(first: ArrayLike, second: ArrayLike, resamples: int = RESAMPLES, seed: int = 0) -> Difference:
    """Return by how much the same robots' values are larger in a second run; :func:`matched` finds their order.

    Raises UmcError if the numbers of robots differ.
    """
    left, right = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if left.shape != right.shape:
        raise UmcError(f"{len(left)} robots cannot be paired with {len(right)}; match them by cell and member first")
    found = _mean_replicates(right - left, resamples, seed)
    return difference(float(left.mean()), float(right.mean()), found, len(left))


def _mean_replicates(numbers: Floats, resamples: int, seed: int) -> Floats:
    return resampled(numbers[:, None], np.zeros(len(numbers)), resamples, seed)[:, 0] / len(numbers)
