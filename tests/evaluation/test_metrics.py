# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Each rule of the paper's metrics, on trajectories whose answer is known."""

import math
from dataclasses import fields

import pytest
import torch
from umc.evaluation.metrics import NOT_RECOVERED, EpisodeRecorder, Episodes, Outcome, Step, check_radii, score
from umc.utils.errors import UmcError

DT = 0.02
ONSET = 5


def record(paths, onset=ONSET, **values):
    """Record envs along paths of points (x, y) [m] after steps 1, 2, ...

    ``speed``, ``height``, ``error`` and ``work`` are numbers, or one for each step; ``fell``, ``non_finite`` and
    ``timed_out`` are the steps of these events, or one for each env.
    """
    points = torch.tensor(paths, dtype=torch.float)
    count, steps = points.shape[:2]

    def value(name, default):
        found = torch.as_tensor(values.get(name, default), dtype=torch.float)
        return found.expand(steps)[number - 1].expand(count)

    def event(name):
        return torch.as_tensor(values.get(name, 0)).expand(count) == number

    recorder = EpisodeRecorder(torch.as_tensor(onset).expand(count))
    for number in range(1, steps + 1):
        means = (value("speed", 0.5), value("height", 0.3))
        events = (event("fell"), event("non_finite"), event("timed_out"))
        recorder.record(Step(points[:, number - 1], *means, *events, value("error", 0.0), value("work", 0.0)))
    return recorder.episodes()


def straight(steps, per_step=0.5):
    return [(per_step * step, 0.0) for step in range(1, steps + 1)]


def walk(speeds, **values):
    """Record an env that walks straight ahead with the given speeds [m/s] in steps 1, 2, ..."""
    x = torch.tensor(speeds).cumsum(0) * DT
    return record([[(float(one), 0.0) for one in x]], speed=speeds, **values)


def test_distance_counts_from_where_each_robot_stood_at_its_onset_not_from_the_start():
    episodes = record([straight(11)])  # 2.5 m when the fault sets in, 5.5 m at the end
    assert episodes.distance.item() == pytest.approx(3.0)
    assert score(episodes, (1, 2, 3, 4), DT).reached == (1.0, 1.0, 0.0, 0.0)
    assert record([straight(8, 1.0)] * 2, onset=[2, 6]).distance.tolist() == [6.0, 2.0]


@pytest.mark.parametrize(
    ("after", "radii", "reached"),
    [
        ([(1.0, 0)], (1,), (0.0,)),  # a radius has to be passed, not touched
        ([(1.001, 0)], (1,), (1.0,)),
        ([(3, 4)], (4.9, 5.1), (1.0, 0.0)),  # distance is horizontal and straight
        ([(2.5, 0), (0, 0)], (1, 2, 3), (1.0, 1.0, 0.0)),  # a robot that comes back keeps what it reached
    ],
)
def test_a_radius_is_reached_by_the_greatest_distance(after, radii, reached):
    assert score(record([[(0, 0)] * ONSET + after]), radii, DT).reached == reached


@pytest.mark.parametrize(
    ("events", "outcome", "reached", "failed"),
    [
        ({}, Outcome.UP, 1.0, 0.0),
        ({"fell": 20}, Outcome.FAILED, 0.0, 1.0),  # a fall after onset takes back every radius
        ({"fell": ONSET + 1}, Outcome.FAILED, 0.0, 1.0),
        ({"fell": ONSET}, Outcome.FELL_BEFORE_ONSET, None, None),
        ({"timed_out": 15}, Outcome.UP, 1.0, 0.0),
        ({"timed_out": 3}, Outcome.NO_ONSET, None, None),
        ({"fell": 11, "non_finite": 11}, Outcome.NON_FINITE, None, None),
    ],
)
def test_outcomes_and_who_counts(events, outcome, reached, failed):
    path = straight(20)
    if "non_finite" in events:
        path[events["non_finite"] - 1] = (math.nan, math.nan)
    episodes = record([path], **events)
    result = score(episodes, (1,), DT)
    assert episodes.outcome.item() == outcome
    assert torch.isfinite(episodes.distance).all()
    assert (result.reached, result["failed"], result.evaluated) == ((reached,), failed, int(failed is not None))
    excluded = ("fell_before_onset", "non_finite", "no_onset")
    left_out = [name for name in excluded if result.counts[name]]
    assert left_out == ([] if failed is not None else [outcome.name.lower()])


def test_the_state_after_the_end_of_an_episode_is_not_read():
    """The environment resets a fallen env at once; what it does then belongs to another episode."""
    episodes = record([[*straight(7), (100.0, 0.0), (200.0, 0.0)]], fell=8)
    assert episodes.distance.item() == pytest.approx(1.0)
    assert episodes.steps_after_onset.item() == 2
    assert record([straight(27)], timed_out=12).distance.item() == pytest.approx(3.0)


def test_means_before_and_after_onset_take_their_own_steps():
    episodes = record(
        [[(0.0, 0.0), (0.0, 0.0), (0.1, 0.0), (0.2, 0.0)]], onset=2,
        speed=[1.0, 2.0, 50.0, 52.0], height=[9.0, 9.0, 0.2, 0.4], error=[0.1, 0.1, 0.3, 0.5], work=[100, 100, 2, 4],
    )  # fmt: skip
    found = score(episodes, (1,), DT)
    wanted = {
        "speed_before_onset": 1.5, "speed_after_onset": 51.0, "height_after_onset": 0.3, "error_before_onset": 0.1,
        "error_after_onset": 0.4, "distance": 0.2, "energy_per_metre": 6 / 0.2, "survival": 2 * DT,
    }  # fmt: skip
    assert {key: found[key] for key in wanted} == pytest.approx(wanted)
    # a robot that falls in its first step with the fault has none after it
    result = score(record([straight(10)], fell=ONSET + 1), (1,), DT)
    assert (result.evaluated, result["failed"], result["survival"]) == (1, 1.0, 0.0)
    assert [result[key] for key in ("height_after_onset", "speed_after_onset", "error_after_onset")] == [None] * 3


def test_rates_share_the_robots_that_stood_at_onset():
    """Four envs: one walks 3 m, one stays, one falls after onset, one before."""
    walks, stays = straight(8), [(0.0, 0.0)] * 8
    episodes = record([walks, stays, walks, walks], onset=2, fell=[0, 0, 8, 1])
    result = score(episodes, (1, 2), DT)
    assert result.counts == {"envs": 4, "evaluated": 3, "fell_before_onset": 1, "non_finite": 0, "no_onset": 0}
    assert (*result.reached, result["failed"]) == pytest.approx((1 / 3,) * 3)
    some = score(episodes, (1, 2), DT, torch.tensor([False, True, True, False]))
    assert (some.evaluated, some.reached, some["failed"]) == (2, (0.0, 0.0), 0.5)


@pytest.mark.parametrize("radii", [(), (0, 1), (1, 1), (2, 1), (-1, 1), (math.nan,)])
def test_radii_have_to_be_positive_and_increasing(radii):
    with pytest.raises(UmcError, match="radii must be positive and increasing"):
        check_radii(radii)


def test_recovery_is_the_last_time_that_the_averaged_speed_was_low():
    # the average decays to 0.5 (1 - 1/25)^50 = 0.065 and comes back to 0.4 after n steps: 0.435 (24/25)^n = 0.1
    back = math.floor(50 + math.log(0.1 / (0.5 - 0.5 * (24 / 25) ** 50)) / math.log(24 / 25))
    episodes = walk([0.5] * 100 + [0.0] * 50 + [0.5] * 200, onset=100)
    assert episodes.recovery.item() == back
    assert score(episodes, (1,), DT)["recovery_time"] == pytest.approx(back * DT)
    never_slow = score(walk([0.5] * 50), (1,), DT)
    assert (never_slow["recovered"], never_slow["recovery_time"]) == (1.0, 0.0)


def test_a_robot_that_is_slow_at_the_end_or_falls_has_not_recovered():
    slow_at_the_end = walk([0.5] * 100 + [0.0] * 50, onset=100)
    for episodes in (slow_at_the_end, walk([0.5] * 60, fell=60)):
        assert episodes.recovery.item() == NOT_RECOVERED
        result = score(episodes, (1,), DT)
        assert (result["recovered"], result["recovery_time"]) == (0.0, None)


def test_energy_per_metre_is_all_work_over_all_distance():
    fast, idle = walk([1.0] * 15, work=1.0), walk([0.0] * 15, work=1.0)
    both = Episodes(**{
        field.name: torch.cat([getattr(one, field.name) for one in (fast, idle)]) for field in fields(fast)
    })  # fmt: skip
    assert score(both, (1,), DT)["energy_per_metre"] == pytest.approx(20.0 / (10 * DT))
    assert score(idle, (1,), DT)["energy_per_metre"] is None


@pytest.mark.parametrize("ahead", [1.0, -1.0])
def test_a_robot_that_is_to_walk_backwards_recovers_as_one_that_walks_ahead(ahead):
    keeps, stops = walk([0.5 * ahead] * 300, onset=100), walk([0.5 * ahead] * 100 + [0.0] * 200, onset=100)
    assert (keeps.recovery.item(), stops.recovery.item()) == (0, NOT_RECOVERED)
