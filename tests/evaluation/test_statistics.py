# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Intervals: known answers, and how often they hold the truth when an experiment is repeated."""

from dataclasses import astuple

import numpy as np
import pytest
from umc.evaluation.statistics import (
    bootstrap_mean,
    difference,
    draws,
    kaplan_meier,
    matched,
    over_seeds,
    paired_bootstrap,
    percentiles,
    poisson_rate,
    resampled,
    wilson,
)
from umc.utils.errors import UmcError


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"),
    [
        # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_intervals(successes, count, low, high):
    found = wilson(successes, count)
    assert found.value == successes / count
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    with pytest.raises(UmcError, match="no rate"):
        wilson(count + 1, count)


def test_the_mean_of_a_large_sample_has_the_textbook_interval():
    values = np.random.default_rng(2).normal(3.0, 2.0, 4000)
    found = bootstrap_mean(values)
    half = 1.96 * values.std() / np.sqrt(4000)
    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.06 * half)
    assert bootstrap_mean(values, seed=7) == bootstrap_mean(values, seed=7) != bootstrap_mean(values, seed=8)


def test_the_scatter_between_seeds_is_that_of_students_t():
    means = np.array([0.0, 1.0, 5.0])
    found = over_seeds(np.repeat(means[:, None], 40_000, axis=1))
    widening = 4.3027 / 1.95996  # 97.5 % quantiles of t with 2 degrees of freedom and of the normal distribution
    assert found.std() / widening == pytest.approx(means.std(ddof=1) / np.sqrt(3), rel=0.02)
    assert found.mean() == pytest.approx(2.0, abs=0.1)


def test_a_pair_is_the_same_robot_in_whatever_order_it_was_simulated():
    first = [(0, 0), (1, 0), (0, 1), (2, 5)]
    second = [(2, 5), (0, 1), (3, 0), (0, 0)]
    left, right = matched(first, second)
    assert [first[row] for row in left] == [second[row] for row in right] == [(0, 0), (0, 1), (2, 5)]
    with pytest.raises(UmcError, match="twice"):
        matched([(0, 0), (0, 0)], second)


def test_a_pair_says_more_than_two_groups():
    rng = np.random.default_rng(7)
    hardness = rng.normal(0.0, 5.0, 200)  # shared: the same fault meets both
    first, second = hardness, hardness + 0.3 + rng.normal(0.0, 0.5, 200)
    found = paired_bootstrap(first, second)
    assert found.value == pytest.approx(float((second - first).mean()))
    assert found.low < 0.3 < found.high
    assert found.p < 0.01
    assert found.count == 200
    alone = bootstrap_mean(second)
    assert found.high - found.low < 0.2 * (alone.high - alone.low)
    same = paired_bootstrap(first, first)
    assert (same.value, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)
    with pytest.raises(UmcError, match="match them"):
        paired_bootstrap([1.0], [1.0, 2.0])


def test_p_is_small_by_chance_as_often_as_it_says():
    rng = np.random.default_rng(8)
    trials = 600
    small = 0
    for trial in range(trials):
        differences = rng.choice([-1.0, 0.0, 1.0], 100, p=[0.2, 0.6, 0.2])
        small += paired_bootstrap(np.zeros(100), differences, resamples=400, seed=trial).p < 0.05
    assert 0.02 <= small / trials <= 0.08


def test_p_counts_the_other_side_twice_and_is_never_0():
    replicates = np.array([-1.0, *[1.0] * 98, np.nan])
    assert difference(0.0, 1.0, replicates, 5).p == pytest.approx(2 * 2 / 100)
    assert difference(0.0, 1.0, np.ones(99), 5).p == pytest.approx(2 / 100)


def test_every_stratum_keeps_its_size_in_every_resample():
    strata = np.array([0, 1, 0, 1, 1, 2])
    chunks = list(draws(strata, resamples=50, seed=1, chunk=60))
    assert [len(chunk) for chunk in chunks] == [10] * 5
    counts = np.concatenate(chunks)
    assert (counts[:, strata == 0].sum(axis=1) == 2).all()
    assert (counts[:, strata == 1].sum(axis=1) == 3).all()
    assert (counts[:, strata == 2] == 1).all()
    assert counts[:, strata == 1].var() > 0.3


def test_all_columns_see_the_same_robots():
    values = np.random.default_rng(10).random(40)
    sums = resampled(np.stack([values, 2.0 * values, np.ones(40)], axis=1), np.zeros(40), resamples=200)
    np.testing.assert_allclose(sums[:, 1], 2.0 * sums[:, 0], rtol=1e-5)
    assert (sums[:, 2] == 40).all()
    assert sums[:, 0].std() == pytest.approx(np.sqrt(40) * values.std(), rel=0.2)


def test_a_training_without_a_figure_is_left_out_of_the_interval_over_seeds():
    rng = np.random.default_rng(0)
    replicates = rng.normal([[0.4], [0.6], [0.5]], 0.05, (3, 2000))
    three = percentiles(0.5, over_seeds(replicates))
    assert three.high - three.low > 0.2
    replicates[0, 7] = np.nan  # no robot to evaluate in one resample
    found = percentiles(0.5, over_seeds(replicates))
    assert (found.low, found.high) == pytest.approx((three.low, three.high), abs=0.01)
    replicates[0] = np.nan  # a training that never stands: the other two are left
    two = percentiles(0.55, over_seeds(replicates))
    assert (two.low, two.high) == pytest.approx(astuple(percentiles(0.55, over_seeds(replicates[1:])))[1:])
    np.testing.assert_array_equal(over_seeds(replicates[:2]), replicates[1])  # one training: its robots alone
    assert np.isnan(over_seeds(np.full((2, 5), np.nan))).all()
    assert astuple(percentiles(2.0, np.array([np.nan, np.nan]))) == (2.0, 2.0, 2.0)


def test_an_interval_holds_its_value_though_replicates_are_less_precise():
    for value in (0.1, 0.3):  # as a 32-bit float, one is larger and one is smaller
        found = percentiles(value, np.full(20, value, dtype=np.float32))
        assert found.low <= value <= found.high


def test_kaplan_meier_gives_the_published_curve_of_freireich():
    # Freireich et al. 1963, 6-MP; a minus is a patient still in remission
    weeks = np.array([6, 6, 6, -6, 7, -9, 10, -10, -11, 13, 16, -17, -19, -20, 22, 23, -25, -32, -32, -34, -35])
    time, share, low, high = kaplan_meier(abs(weeks), weeks > 0, 1.0)
    found = dict(zip(time.tolist(), share.tolist(), strict=True))
    published = {0: 1.0, 6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448, 35: 0.448}
    assert {week: found[week] for week in published} == pytest.approx(published, abs=6e-4)
    at = time.tolist().index(6)
    # log(-log) intervals as R's survfit prints them
    assert (low[at], high[at]) == pytest.approx((0.620, 0.952), abs=1e-3)


@pytest.mark.parametrize("fell", [False, True])
def test_the_band_of_a_survival_curve_closes_where_all_stand_or_none_does(fell):
    time, share, low, high = kaplan_meier([5, 5], [fell, fell], 0.5)
    assert time.tolist() == [0.0, 2.5]
    assert share.tolist() == low.tolist() == high.tolist() == [1.0, 0.0 if fell else 1.0]


def test_the_interval_of_a_rate_of_events_is_poissons():
    found = poisson_rate(10, 5.0)
    assert (found.value, found.low, found.high) == pytest.approx((2.0, 4.795 / 5, 18.39 / 5), rel=1e-3)  # of tables
    none = poisson_rate(0, 2.0)
    assert (none.value, none.low, none.high) == pytest.approx((0.0, 0.0, 3.689 / 2), rel=1e-3)
    assert poisson_rate(0, 0.0) is None
