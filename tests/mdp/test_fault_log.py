# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Trainings log falls and episode lengths under the scenario of the episode that ended, not of the next one."""

from types import SimpleNamespace

import pytest
import torch
from umc.faults import FaultSchedule, FaultState
from umc.mdp.fault_log import LOG_EVERY, FaultLog

SCENARIOS = ["normal", "dead", "noise"]
NUM_ENVS = 6
"""Two envs of each scenario, in turn."""


def training(num_envs=NUM_ENVS):
    schedule = FaultSchedule(["a", "b"], scenario=SCENARIOS, severity={"noise": 0.1}, num_joints=(1, 1), onset=5)
    state = FaultState(schedule, num_envs)
    failed = torch.zeros(num_envs, dtype=torch.bool)
    manager = SimpleNamespace(
        terminated=failed.clone(), active_terms=["time_out", "non_finite_state"], get_term=lambda name: failed
    )
    env = SimpleNamespace(common_step_counter=0, termination_manager=manager)
    return env, state, FaultLog(env, state), failed


def end(env, state, log, step, falls=(), envs=()):
    """Ends the episodes of falls and other envs at an env step."""
    env.common_step_counter = step
    env.termination_manager.terminated[:] = False
    env.termination_manager.terminated[list(falls)] = True
    ids = torch.tensor([*falls, *envs])
    log.episodes_end(ids)
    state.reset(ids)


def test_falls_and_lengths_belong_to_the_scenario_that_ended():
    env, state, log, failed = training()
    end(env, state, log, 0, envs=range(NUM_ENVS))  # the first reset ends no episode
    state.advance(torch.full((NUM_ENVS,), 10), torch.zeros(NUM_ENVS, 2))
    end(env, state, log, 10, falls=[1])  # dead
    end(env, state, log, 12, falls=[2])  # noise
    end(env, state, log, 20, envs=[4])  # dead, out of time
    failed[5] = True
    end(env, state, log, 22, falls=[5])  # noise, whose simulation failed: no fall
    assert log.entry() == {}
    end(env, state, log, LOG_EVERY + 6, falls=[1])  # dead again, 20 steps after its first fall
    assert log.entry() == {
        "Faults/share": 0.0,  # all four faulty envs have been reset
        "Faults/dead/fall_rate": 2 / 3,
        "Faults/dead/episode_length": (10 + 20 + 20) / 3,
        "Faults/noise/fall_rate": 0.5,
        "Faults/noise/episode_length": 17.0,
    }
    # no healthy episode has ended; what was logged is not counted again
    end(env, state, log, 2 * LOG_EVERY + 6, envs=[0])
    assert log.entry() == {"Faults/share": 0.0, "Faults/normal/fall_rate": 0.0, "Faults/normal/episode_length": 54.0}
    # for failure_sampling: episodes and falls of both entries
    assert log.take_counts() == {"normal": (1.0, 0.0), "dead": (3.0, 2.0), "noise": (2.0, 1.0)}
    assert log.take_counts() == dict.fromkeys(SCENARIOS, (0.0, 0.0))


def test_the_share_of_envs_with_a_fault_is_that_of_now():
    env, state, log, _ = training()
    end(env, state, log, 0, envs=range(NUM_ENVS))
    state.advance(torch.tensor([9, 9, 9, 9, 4, 4]), torch.zeros(NUM_ENVS, 2))  # in the last two it is yet to set in
    env.common_step_counter = LOG_EVERY
    assert log.entry() == pytest.approx({"Faults/share": 2 / 6})


def test_a_resumed_training_does_not_count_the_steps_before_it():
    env, state, log, _ = training()
    end(env, state, log, 5000, envs=range(NUM_ENVS))
    end(env, state, log, 5030, envs=[1])
    assert log.entry()["Faults/dead/episode_length"] == 30.0
