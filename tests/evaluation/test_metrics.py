# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Each rule of the paper's metrics, on trajectories whose answer is known."""

import math
from dataclasses import fields

import pytest
import torch
from umc.evaluation.metrics import (
    NOT_RECOVERED,
    EpisodeRecorder,
    Episodes,
    Outcome,
    Step,
    average,
    check_radii,
    score,
)
from umc.utils.errors import UmcError

DT = 0.02
ONSET = 5


def walk(path, fell_at=None, broke_at=None, timed_out_at=None, onset=ONSET, height=0.3, speed=0.5):
    """Records one env along ``path``, a list of (x, y) after steps 1, 2, ...; events are steps."""
    recorder = EpisodeRecorder(torch.tensor([onset]))
    for step, point in enumerate(path, start=1):
        recorder.record(
            Step(
                position=torch.tensor([point], dtype=torch.float),
                forward_velocity=torch.tensor([float(speed)]),
                height=torch.tensor([float(height)]),
                fell=torch.tensor([step == fell_at]),
                non_finite=torch.tensor([step == broke_at]),
                timed_out=torch.tensor([step == timed_out_at]),
            )
        )
    return recorder.episodes()


def straight(steps, per_step=0.5):
    return [(per_step * step, 0.0) for step in range(1, steps + 1)]


def test_distance_counts_from_where_the_robot_stood_at_onset_not_from_the_start():
    episodes = walk(straight(11))  # 2.5 m when the fault sets in, 5.5 m at the end
    assert episodes.distance.item() == pytest.approx(3.0)
    assert score(episodes, (1, 2, 3, 4), DT).reached == (1.0, 1.0, 0.0, 0.0)


def test_a_radius_has_to_be_passed_not_touched():
    touching = walk([(0, 0)] * 5 + [(1.0, 0)])
    passing = walk([(0, 0)] * 5 + [(1.001, 0)])
    assert score(touching, (1,), DT).reached == (0.0,)
    assert score(passing, (1,), DT).reached == (1.0,)


def test_distance_is_horizontal_and_straight():
    episodes = walk([(0, 0)] * 5 + [(3, 4)])
    assert episodes.distance.item() == pytest.approx(5.0)


def test_a_robot_that_comes_back_keeps_what_it_reached():
    episodes = walk([(0, 0)] * 5 + [(2.5, 0), (0, 0)])
    assert score(episodes, (1, 2, 3), DT).reached == (1.0, 1.0, 0.0)


def test_a_fall_after_onset_takes_back_every_radius_and_counts_as_failed():
    result = score(walk(straight(20), fell_at=20), (1, 2), DT)
    assert result.reached == (0.0, 0.0)
    assert result["failed"] == 1.0
    assert result.judged == 1


def test_a_fall_in_the_step_of_onset_is_before_the_fault_and_one_step_later_is_not():
    assert walk(straight(10), fell_at=ONSET).outcome.item() == Outcome.FELL_BEFORE_ONSET
    assert walk(straight(10), fell_at=ONSET + 1).outcome.item() == Outcome.FAILED


def test_a_fall_before_onset_leaves_the_statistics_and_has_its_own_line():
    result = score(walk(straight(20), fell_at=3), (1,), DT)
    assert (result.judged, result.counts["fell_before_onset"]) == (0, 1)
    assert result.reached == (None,)
    assert result["failed"] is None


def test_time_out_is_no_fall():
    result = score(walk(straight(20), timed_out_at=15), (1,), DT)
    assert result["failed"] == 0.0
    assert result.reached == (1.0,)
    assert walk(straight(20), timed_out_at=3).outcome.item() == Outcome.NO_ONSET


def test_broken_physics_is_neither_success_nor_failure():
    path = [*straight(10), (math.nan, math.nan)]
    episodes = walk(path, fell_at=11, broke_at=11)
    result = score(episodes, (1,), DT)
    assert (result.judged, result.counts["non_finite"], result["failed"]) == (0, 1, None)
    assert torch.isfinite(episodes.distance).all()


def test_the_state_after_the_end_of_an_episode_is_not_looked_at():
    """The environment resets a fallen env at once; what it does then belongs to another episode."""
    episodes = walk([*straight(7), (100.0, 0.0), (200.0, 0.0)], fell_at=8)
    assert episodes.distance.item() == pytest.approx(1.0)
    assert episodes.steps_after_onset.item() == 2
    again = walk([*straight(12), *straight(12)], timed_out_at=12, fell_at=15)
    assert again.outcome.item() == Outcome.UP


def test_speed_before_onset_and_height_after_onset_take_their_own_steps():
    recorder = EpisodeRecorder(torch.tensor([2]))
    no = torch.tensor([False])
    for speed, height in ((1.0, 9.0), (2.0, 9.0), (50.0, 0.2), (50.0, 0.4)):
        recorder.record(Step(torch.zeros(1, 2), torch.tensor([speed]), torch.tensor([height]), no, no, no))
    result = score(recorder.episodes(), (1,), DT)
    assert result["speed_before_onset"] == pytest.approx(1.5)
    assert result["height_after_onset"] == pytest.approx(0.3)
    assert result["survival"] == pytest.approx(2 * DT)


def test_rates_share_the_robots_that_stood_at_onset():
    """Four envs in one batch: one walks 3 m, one stays, one falls after onset, one before."""
    recorder = EpisodeRecorder(torch.tensor([2, 2, 2, 2]))
    no = torch.zeros(4, dtype=torch.bool)
    for step in range(1, 9):
        position = torch.tensor([[0.5 * step, 0.0], [0.0, 0.0], [0.5 * step, 0.0], [0.5 * step, 0.0]])
        fell = torch.tensor([False, False, step == 8, step == 1])
        recorder.record(Step(position, torch.full((4,), 0.5), torch.full((4,), 0.3), fell, no, no))
    result = score(recorder.episodes(), (1, 2), DT)
    assert (result.envs, result.judged, result.counts["fell_before_onset"]) == (4, 3, 1)
    assert result.reached == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert result["failed"] == pytest.approx(1 / 3)


def test_onset_differs_between_envs():
    recorder = EpisodeRecorder(torch.tensor([2, 6]))
    no = torch.zeros(2, dtype=torch.bool)
    for step in range(1, 9):
        recorder.record(
            Step(torch.full((2, 2), float(step)) * torch.tensor([1.0, 0.0]), torch.ones(2), torch.ones(2), no, no, no)
        )
    assert recorder.episodes().distance.tolist() == [6.0, 2.0]


def test_the_average_weighs_scenarios_not_robots():
    """One scenario judged one robot (failed), the other three (none failed): the paper's average is 50 %."""
    one = score(walk(straight(20), fell_at=10), (1,), DT)
    three = EpisodeRecorder(torch.full((3,), 2))
    no = torch.zeros(3, dtype=torch.bool)
    for _ in range(4):
        three.record(Step(torch.zeros(3, 2), torch.ones(3), torch.ones(3), no, no, no))
    both = average([one, score(three.episodes(), (1,), DT)])
    assert both["failed"] == pytest.approx(0.5)
    assert both.judged == 4


def test_the_average_passes_over_scenarios_that_judged_nobody():
    empty = score(walk(straight(20), fell_at=2), (1,), DT)
    full = score(walk(straight(20), fell_at=10), (1,), DT)
    assert average([empty, full])["failed"] == 1.0
    assert average([empty])["failed"] is None


def test_select_takes_only_the_chosen_envs():
    recorder = EpisodeRecorder(torch.tensor([1, 1]))
    no = torch.zeros(2, dtype=torch.bool)
    for step in range(1, 4):
        recorder.record(Step(torch.zeros(2, 2), torch.ones(2), torch.ones(2), torch.tensor([step == 3, False]), no, no))
    episodes = recorder.episodes()
    assert score(episodes, (1,), DT, torch.tensor([True, False]))["failed"] == 1.0
    assert score(episodes, (1,), DT, torch.tensor([False, True]))["failed"] == 0.0


@pytest.mark.parametrize("radii", [(), (0, 1), (1, 1), (2, 1), (-1, 1), (math.nan,)])
def test_radii_have_to_be_positive_and_increasing(radii):
    with pytest.raises(UmcError, match="radii must be positive and increasing"):
        check_radii(radii)


def stroll(speeds, onset=ONSET, works=None, errors=None, fell_at=None):
    """Records one env that walks straight ahead with the given speeds [m/s] in steps 1, 2, ..."""
    recorder, x = EpisodeRecorder(torch.tensor([onset])), 0.0
    for step, speed in enumerate(speeds, start=1):
        x += speed * DT
        recorder.record(
            Step(
                position=torch.tensor([[x, 0.0]]),
                forward_velocity=torch.tensor([float(speed)]),
                height=torch.tensor([0.3]),
                fell=torch.tensor([step == fell_at]),
                non_finite=torch.tensor([False]),
                timed_out=torch.tensor([False]),
                velocity_error=torch.tensor([float(errors[step - 1] if errors else 0.0)]),
                work=torch.tensor([float(works[step - 1] if works else 0.0)]),
            )
        )
    return recorder.episodes()


def test_a_robot_that_never_slows_down_recovers_at_once():
    episodes = stroll([0.5] * 50)
    assert episodes.recovery.item() == 0
    result = score(episodes, (1,), DT)
    assert (result["recovered"], result["recovery_time"]) == (1.0, 0.0)


def test_recovery_is_the_last_time_that_the_averaged_speed_was_low():
    speeds = [0.5] * 100 + [0.0] * 50 + [0.5] * 200
    # the average decays to 0.5 (1 - 1/25)^50 = 0.065 and comes back to 0.4 after n steps: 0.435 (24/25)^n = 0.1
    back = 50 + math.log(0.1 / (0.5 - 0.5 * (24 / 25) ** 50)) / math.log(24 / 25)
    episodes = stroll(speeds, onset=100)
    assert episodes.recovery.item() == math.floor(back)
    assert score(episodes, (1,), DT)["recovery_time"] == pytest.approx(math.floor(back) * DT)


def test_a_robot_that_is_slow_at_the_end_or_falls_has_not_recovered():
    slow_at_the_end = stroll([0.5] * 100 + [0.0] * 50, onset=100)
    for episodes in (slow_at_the_end, stroll([0.5] * 60, fell_at=60)):
        assert episodes.recovery.item() == NOT_RECOVERED
        result = score(episodes, (1,), DT)
        assert (result["recovered"], result["recovery_time"]) == (0.0, None)


def test_work_and_errors_count_on_their_own_side_of_the_onset():
    works, errors = [100.0] * ONSET + [2.0] * 10, [0.1] * ONSET + [0.3] * 10
    episodes = stroll([1.0] * (ONSET + 10), works=works, errors=errors)
    assert episodes.energy_after_onset.item() == pytest.approx(20.0)
    assert episodes.error_before_onset.item() == pytest.approx(0.1)
    assert episodes.error_after_onset.item() == pytest.approx(0.3)
    assert episodes.speed_after_onset.item() == pytest.approx(1.0)
    result = score(episodes, (0.1,), DT)
    assert result["distance"] == pytest.approx(10 * DT)
    assert result["energy_per_metre"] == pytest.approx(20.0 / (10 * DT))


def test_energy_per_metre_is_all_work_over_all_distance():
    fast, idle = stroll([1.0] * 15, works=[1.0] * 15), stroll([0.0] * 15, works=[1.0] * 15)
    both = Episodes(**{
        field.name: torch.cat([getattr(one, field.name) for one in (fast, idle)]) for field in fields(fast)
    })  # fmt: skip
    assert score(both, (1,), DT)["energy_per_metre"] == pytest.approx(20.0 / (10 * DT))
    assert score(idle, (1,), DT)["energy_per_metre"] is None


def test_a_robot_that_falls_in_its_first_step_with_the_fault_has_no_height_and_no_speed_after_it():
    result = score(walk(straight(10), fell_at=ONSET + 1), (1,), DT)
    assert (result.judged, result["failed"], result["survival"]) == (1, 1.0, 0.0)
    assert (result["height_after_onset"], result["speed_after_onset"], result["error_after_onset"]) == (
        None,
        None,
        None,
    )
