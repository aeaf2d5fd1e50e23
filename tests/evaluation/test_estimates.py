# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a study: the same as the metrics', with intervals that know which robots are the same."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_up_results import changed
from made_up_study import average, made_up_study
from umc.evaluation.estimates import Estimates, RobotTable, average_rate
from umc.evaluation.metrics import Outcome
from umc.evaluation.protocol import protocol_for
from umc.evaluation.report.page import summary
from umc.evaluation.report.renderers import NOTHING
from umc.evaluation.report.screen import healthy_falls
from umc.evaluation.report.tables import TOO_FEW, difference_table
from umc.evaluation.statistics import wilson
from umc.utils.errors import UmcError


def test_every_figure_is_that_of_the_metrics():
    study = made_up_study(members=6)
    estimates = Estimates(study, resamples=50)
    for number, result in enumerate(study.policies):
        scores = [study.score(result, study.scenario_rows(result, one)) for one in study.protocol.scenarios]
        mean = RobotTable(study, result).score()
        assert mean.counts == average(scores).counts
        assert mean.values == pytest.approx(average(scores).values)
        for place, score in [*enumerate(scores), (None, average(scores))]:
            for metric in estimates.metrics:
                wanted = score[metric.key]
                found = estimates.policy(number, metric.key, place)
                assert (found is None) == (wanted is None), metric.key
                if found is not None:
                    assert found.value == pytest.approx(wanted, rel=1e-5), (metric.key, place)
                    assert found.low <= found.value <= found.high or not metric.rate


def test_the_average_weighs_scenarios_not_robots():
    """One scenario evaluated one robot, which failed, another three, none failed: the paper's average is 50 %."""
    study = made_up_study(members=1, policies=[("a", 1.0)], protocol=protocol_for("a1", [1, 2, 8]))
    up, failed, gone = Outcome.UP, Outcome.FAILED, Outcome.FELL_BEFORE_ONSET
    outcome = torch.tensor([[failed, up, gone], [gone, up, gone], [gone, up, gone]]).flatten()  # setting, scenario
    result = changed(study.policies[0], outcome=outcome)
    table, (one, _, empty) = RobotTable(study, result), (study.scenario_rows(result, name) for name in (1, 2, 8))
    both = table.score()
    assert (both["failed"], both.evaluated) == (pytest.approx(0.5), 4)
    assert table.score(one | empty)["failed"] == 1.0
    assert table.score(empty)["failed"] is None


def test_a_policy_does_not_differ_from_itself():
    study = made_up_study(members=10, policies=[("a", 1.0)])
    twin = replace(study.policies[0], label="b", group="b")
    estimates = Estimates(replace(study, policies=(*study.policies, twin)), resamples=100)
    for metric in estimates.metrics:
        found = estimates.difference("a", "b", metric.key)
        assert (found.value, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
        assert found.count == 30


def test_a_better_policy_is_better_and_the_order_of_robots_does_not_matter():
    study = made_up_study(members=40, policies=[("weak", 0.0), ("strong", 3.0)])
    run = study.policies[1].run
    mixed = replace(study.policies[1], run=run.select(torch.randperm(len(run.cell))))
    first = Estimates(study, resamples=300)
    second = Estimates(replace(study, policies=(study.policies[0], mixed)), resamples=300)
    found = first.difference("weak", "strong", "failed")
    assert found.high < 0.0
    assert found.p < 0.01
    other = second.difference("weak", "strong", "failed")
    assert (other.value, other.low, other.high) == pytest.approx((found.value, found.low, found.high), abs=1e-6)


def test_fewer_than_ten_robots_of_a_seed_have_no_p_and_no_bootstrapped_interval():
    for members, few in ((9, True), (10, False)):
        study = made_up_study(members=members, policies=[("weak", 0.0), ("strong", 3.0)])
        estimates = Estimates(study, resamples=100)
        found = estimates.difference("weak", "strong", "failed")
        assert found.value < 0.0
        assert [math.isnan(one) for one in (found.low, found.high, found.p)] == [few] * 3
        assert math.isnan(estimates.policy(0, "distance").low) == few
        assert 0.0 < estimates.policy(0, "failed").low < 1.0  # Wilson's needs no bootstrap
        findings, cautions = summary(estimates)
        assert any(", p " in line for line in findings) != few
        assert (TOO_FEW in cautions) == few
        row = difference_table(estimates, "weak", "strong", 2).rows[0]
        assert (row.cells[-1].text == NOTHING) == few


@pytest.mark.parametrize(("robots", "few"), [(9, True), (10, False)])
def test_a_figure_of_fewer_than_ten_robots_has_no_bootstrapped_interval_and_no_p(robots, few):
    study = made_up_study(members=12, policies=[("some", 1.0), ("all", 1.0)])
    run, place = study.policies[0].run, study.protocol.scenarios.index(3)
    stood = (run.cell != place) | (run.member < robots)  # in the first setting
    stood &= (run.cell % 8 != place) | (run.cell < 8)
    outcome = torch.where(stood, torch.where(run.member % 2 == 0, 1, 0), int(Outcome.FELL_BEFORE_ONSET))
    estimates = Estimates(replace(study, policies=(changed(study.policies[0], outcome=outcome), study.policies[1])), 50)
    assert not estimates.too_few
    for first, second in (("some", "all"), ("all", "some")):
        found = estimates.difference(first, second, "failed", place)
        assert [math.isnan(one) for one in (found.value, found.low, found.high, found.p)] == [False, *[few] * 3]
        assert not math.isnan(estimates.difference(first, second, "failed").p)
    assert [math.isnan(estimates.policy(number, "distance", place).low) for number in (0, 1)] == [few, False]
    assert estimates.policy(0, "failed", place).low > 0.0
    both = tuple(replace(one, group="both") for one in estimates.study.policies)
    group = Estimates(replace(study, policies=both), 50)
    for metric in ("distance", "failed"):
        assert math.isnan(group.group("both", metric, place).low) == few
        assert not math.isnan(group.group("both", metric).low)


def test_a_difference_of_few_robots_has_no_p_in_summary_and_table():
    study = made_up_study(members=10, policies=[("a", 1.0), ("b", 1.0)])
    run = study.policies[0].run
    few = torch.where((run.cell >= 8) | (run.member > 8), int(Outcome.FELL_BEFORE_ONSET), int(Outcome.FAILED))
    estimates = Estimates(replace(study, policies=(changed(study.policies[0], outcome=few), study.policies[1])), 50)
    assert not estimates.too_few
    (line,) = [one for one in summary(estimates)[0] if "against" in one]
    assert " points" in line
    assert "nan" not in line
    assert ", p " not in line
    row = difference_table(estimates, "a", "b", 2).rows[0]
    assert (row.cells[1].interval, row.cells[-1].text) == ("", NOTHING)


def test_a_policy_that_falls_without_a_fault_is_named():
    study = made_up_study(members=12, policies=[("astray", -6.0), ("strong", 3.0)])
    (line,) = healthy_falls(study)
    assert line.startswith("astray falls in ")
    assert line in summary(Estimates(study, resamples=100))[1]


def test_policies_of_other_robots_or_of_one_name_are_refused():
    study = made_up_study(members=2, policies=[("a", 1.0), ("b", 1.0)])
    half = replace(study.policies[1], run=study.policies[1].run.select(slice(24)))
    for policies, words in (((study.policies[0], half), "same robots"), ((half, half), "different labels")):
        with pytest.raises(UmcError, match=words):
            Estimates(replace(study, policies=policies))
    with pytest.raises(UmcError, match="different labels"):
        Estimates(replace(study, policies=()))


def test_a_group_is_the_mean_of_its_trainings_and_less_sure_than_each():
    study = made_up_study(members=30, policies=[("a", 1.0)], train_seeds=3)
    estimates = Estimates(study, resamples=400)
    each = [estimates.policy(number, "failed") for number in range(3)]
    found = estimates.group("a", "failed")
    assert found.value == pytest.approx(np.mean([one.value for one in each]))
    assert found.high - found.low > max(one.high - one.low for one in each)
    # a training that never falls; the interval of the two that are left is wide and ends at 0
    never = changed(study.policies[0], outcome=torch.zeros_like(study.policies[0].run.cell))
    found = Estimates(replace(study, policies=(never, study.policies[1])), resamples=200).group("a", "failed")
    assert found.low == 0.0 < found.value < found.high <= 1.0


def test_a_policy_that_is_alone_in_its_group_goes_by_its_own_name():
    study = made_up_study(members=1, policies=[("a", 1.0), ("b", 1.0)])
    named = tuple(replace(one, label=f"my {one.label}") for one in study.policies)
    assert list(Estimates(replace(study, policies=named), resamples=5).groups) == ["my a", "my b"]
    twins = tuple(replace(one, group="both") for one in named)
    assert Estimates(replace(study, policies=twins), resamples=5).groups == {"both": [0, 1]}


def test_a_robot_that_does_the_same_in_every_scenario_counts_once():
    fell = np.arange(40) < 12
    evaluated = np.ones((8, 40))
    same = average_rate(np.repeat(fell[None], 8, axis=0).astype(float), evaluated)
    assert (same.low, same.high) == pytest.approx((wilson(12, 40).low, wilson(12, 40).high))
    rng = np.random.default_rng(1)
    mixed = average_rate(np.stack([rng.permutation(fell) for _ in range(8)]).astype(float), evaluated)
    assert mixed.value == same.value
    assert mixed.high - mixed.low < 0.5 * (same.high - same.low)
    # three robots that fell once each, in other scenarios: what rounding leaves of their scatter is none
    once = np.zeros((8, 3))
    once[1, :2] = once[3, 2] = 1.0
    found, wanted = average_rate(once, np.ones((8, 3))), wilson(3 / 8, 3)
    assert (found.value, found.low, found.high) == pytest.approx((1 / 8, wanted.low, wanted.high))
    # nobody ever fell: 40 robots say so, not 320
    assert average_rate(np.zeros((8, 40)), evaluated).high == pytest.approx(wilson(0, 40).high)
    # a scenario in which nobody stood is left out
    assert average_rate(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 1.0], [0.0, 0.0]])).value == 0.5
    assert average_rate(np.zeros((8, 40)), 0.0 * evaluated) is None


def test_a_robot_in_several_settings_of_one_seed_counts_once_and_is_drawn_within_its_seed():
    study = made_up_study(members=20, policies=[("a", 1.0)])
    run = study.policies[0].run
    # a robot does the same in every setting and scenario; the distance is that of its setting
    outcome = torch.where(run.member < 7, int(Outcome.FAILED), int(Outcome.UP))
    one = changed(study.policies[0], outcome=outcome, distance=1.0 + run.cell // 8)
    study = replace(study, policies=(one,))
    same = tuple(replace(setting, seed=1) for setting in study.protocol.settings)
    together = replace(study, protocol=replace(study.protocol, settings=same))
    for kind, robots in ((study, 60), (together, 20)):
        estimates, expected = Estimates(kind, resamples=50), wilson(7 * robots // 20, robots)
        assert estimates.num_robots == robots
        for place in (2, None):
            found = estimates.policy(0, "failed", place)
            assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
        distance = estimates.policy(0, "distance")
        assert (distance.low, distance.high) == pytest.approx((2.0, 2.0))


def test_an_average_rates_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(2)
    truth = np.array([0.05, 0.2, 0.5, 0.9])
    held, trials = 0, 800
    for _ in range(trials):
        luck = rng.random((1, 50)) * 0.5 + rng.random((4, 50)) * 0.5  # robots are alike, not the same, in scenarios
        order = np.where(luck < 0.5, 2 * luck**2, 1 - 2 * (1 - luck) ** 2)  # uniform again
        found = average_rate((order < truth[:, None]).astype(float), np.ones((4, 50)))
        held += found.low <= truth.mean() <= found.high
    assert 0.93 <= held / trials <= 0.98


def test_a_policy_under_which_nobody_stood_has_no_figures():
    study = made_up_study(members=1, policies=[("a", 1.0), ("b", 1.0)])
    lying = changed(study.policies[1], outcome=torch.full_like(study.policies[1].run.cell, Outcome.FELL_BEFORE_ONSET))
    estimates = Estimates(replace(study, policies=(study.policies[0], lying)), resamples=20)
    assert estimates.group("b", "failed") is None
    assert estimates.difference("a", "b", "failed") is None


def test_trainings_of_two_groups_are_no_pairs():
    """Seed 1 of one recipe has nothing to do with seed 1 of another: equal groups differ by their seeds' luck."""
    study = made_up_study(members=30, policies=[("a", 1.0)], train_seeds=3)
    twins = tuple(replace(one, label=f"{one.label} again", group="b") for one in study.policies)
    both = Estimates(replace(study, policies=(*study.policies, *twins)), resamples=400)
    found = both.difference("a", "b", "failed")
    assert found.value == 0.0
    assert found.low < 0.0 < found.high


def test_the_same_trainings_with_another_detector_are_pairs():
    study = made_up_study(members=30, policies=[("a", 1.0)], train_seeds=3)
    known = tuple(replace(one, about={"sha256": f"{number}"}) for number, one in enumerate(study.policies))
    again = tuple(replace(one, label=f"{one.label} again", group="b") for one in known)
    found = Estimates(replace(study, policies=(*known, *again)), resamples=400).difference("a", "b", "failed")
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)
