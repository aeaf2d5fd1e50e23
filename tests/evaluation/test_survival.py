# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Kaplan-Meier curves: a textbook's, and robots' own cases."""

import pytest
import torch
from umc.evaluation.metrics import Episodes, Outcome
from umc.evaluation.survival import kaplan_meier


def episodes(steps, outcomes):
    nothing = torch.zeros(len(steps))
    names = ("distance", "speed_before_onset", "height_after_onset", "speed_after_onset")
    names += ("error_before_onset", "error_after_onset", "energy_after_onset", "recovery")
    return Episodes(torch.tensor(outcomes), steps_after_onset=torch.tensor(steps), **dict.fromkeys(names, nothing))


def test_the_remission_times_of_freireich_give_the_published_curve():
    # Freireich et al. 1963, 6-MP; a minus is a patient still in remission. A fall at step n leaves n - 1 steps.
    weeks = [6, 6, 6, -6, 7, -9, 10, -10, -11, 13, 16, -17, -19, -20, 22, 23, -25, -32, -32, -34, -35]
    fell = [week > 0 for week in weeks]
    steps = [week - 1 if down else -week for week, down in zip(weeks, fell, strict=True)]
    curve = kaplan_meier(episodes(steps, [int(Outcome.FAILED if down else Outcome.UP) for down in fell]), 1.0)
    found = dict(zip(curve.time.tolist(), curve.standing.tolist(), strict=True))
    published = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448, 35: 0.448}
    assert {week: found[week] for week in published} == pytest.approx(published, abs=6e-4)
    at = curve.time.tolist().index(6)
    # log(-log) intervals as R's survfit prints them
    assert (curve.low[at], curve.high[at]) == pytest.approx((0.620, 0.952), abs=1e-3)
    assert curve.at_risk[at] == 21


def test_robots_that_are_not_judged_do_not_count():
    outcomes = [int(Outcome.UP), int(Outcome.FAILED), int(Outcome.FELL_BEFORE_ONSET), int(Outcome.NON_FINITE)]
    curve = kaplan_meier(episodes([10, 4, 0, 0], outcomes), 0.02)
    assert curve.standing.tolist() == [1.0, 0.5, 0.5]
    assert curve.time.tolist() == pytest.approx([0.0, 0.1, 0.2])
    assert kaplan_meier(episodes([0], [int(Outcome.NO_ONSET)]), 0.02) is None
    assert kaplan_meier(episodes([5], [int(Outcome.UP)]), 0.02, torch.tensor([False])) is None


def test_a_fall_in_the_first_step_shows():
    curve = kaplan_meier(episodes([0, 0, 8], [1, 1, 0]), 0.5)
    assert (curve.time[1], curve.standing[1]) == (0.5, pytest.approx(1 / 3))


def test_where_all_stand_or_none_does_the_band_closes():
    curve = kaplan_meier(episodes([5, 5], [0, 0]), 1.0)
    assert curve.low.tolist() == curve.high.tolist() == [1.0, 1.0]
    curve = kaplan_meier(episodes([5, 5], [1, 1]), 1.0)
    assert (curve.standing[-1], curve.low[-1], curve.high[-1]) == (0.0, 0.0, 0.0)
