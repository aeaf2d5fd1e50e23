# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults are live from onset to reset, and mask and flag tell what the scenario grants."""

import pytest
import torch
from umc.faults import FaultSchedule, FaultState

JOINTS = [f"joint_{index}" for index in range(6)]
LIVE = ("sensor_dead", "rom_limited", "effort_limited", "velocity_limited", "detected")


def state_of(num_envs: int, **kwargs) -> FaultState:
    schedule = FaultSchedule(JOINTS, effort_limit=5.0, velocity_limit=3.0, **kwargs)
    state = FaultState(schedule, num_envs)
    state.begin_episode(torch.arange(num_envs))
    return state


def test_a_fault_is_due_at_its_onset_and_once():
    state = state_of(6, scenario=6, onset=(10, 20))
    onset = state.onset.clone()
    for step in range(1, 30):
        due = state.due(torch.full((6,), step)).nonzero().flatten()
        assert due.tolist() == (onset == step).nonzero().flatten().tolist()
        state.activate(due)
    assert state.active.all()


def test_an_onset_that_was_passed_unseen_is_due_at_once():
    state = state_of(2, scenario=6, onset=10)
    assert state.due(torch.tensor([500, 9])).tolist() == [True, False]


def test_nothing_is_live_before_onset_and_nothing_is_left_after_reset():
    state = state_of(64)
    assert not any(getattr(state, name).any() for name in LIVE)
    state.activate(torch.arange(64))
    assert all(getattr(state, name).any() for name in LIVE)
    state.begin_episode(torch.arange(0, 64, 2))
    assert not any(getattr(state, name)[::2].any() for name in LIVE)
    assert state.active.tolist() == [False, True] * 32
    assert state.episode.tolist() == [1, 0] * 32


def test_a_fault_with_an_end_is_over_there():
    state = state_of(2, scenario=4, onset=10)
    state.end[0] = 15  # what schedules with durations will plan
    state.activate(torch.arange(2))
    assert state.over(torch.tensor([14, 14])).tolist() == [False, False]
    assert state.over(torch.tensor([15, 15])).tolist() == [True, False]
    state.recover(torch.tensor([0]))
    assert not state.sensor_dead[0].any()
    assert state.sensor_dead[1].any()
    assert state.due(torch.tensor([16, 16])).tolist() == [False, False]


@pytest.mark.parametrize("scenario", range(1, 9))
def test_mask_and_flag_tell_what_the_scenario_grants(scenario):
    state = state_of(16, scenario=scenario)
    state.activate(torch.arange(16))
    assert state.joint_mask.any(1).all() == (scenario in (1, 2, 3, 4))
    assert torch.equal(state.joint_mask, state.joints & (scenario <= 4))
    assert (state.fault_flag == (1.0 if scenario in (2, 3, 4) else -1.0)).all()
    assert state.fault_flag.shape == (16, 3)
