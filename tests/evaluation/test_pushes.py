# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Pushes of an evaluation: how often, how hard, and on what they depend."""

import torch
from umc.evaluation.pushes import PUSH_EVERY, pushes

ROBOTS = 500


def over_time(seed, member, steps=2 * PUSH_EVERY + 1, speed=0.5):
    """Who is pushed in each step, and how; shapes are (steps, robots) and (steps, robots, 2)."""
    found = [pushes(seed, member, torch.full_like(seed, step), speed) for step in range(steps)]
    return tuple(map(torch.stack, zip(*found, strict=True)))


def test_every_robot_is_pushed_once_in_each_interval_in_any_direction():
    seed, member = torch.full((ROBOTS,), 7), torch.arange(ROBOTS)
    pushed, change = over_time(seed, member)
    assert not pushed[0].any()
    for first in (1, PUSH_EVERY + 1):
        assert (pushed[first : first + PUSH_EVERY].sum(0) == 1).all()
    assert pushed.float().mean(1).max() < 0.05  # not all at once
    speeds = change[pushed]
    assert speeds.abs().max() <= 0.5
    assert speeds.mean(0).abs().max() < 0.04
    assert (speeds.abs().mean(0) - 0.25).abs().max() < 0.02
    assert torch.corrcoef(speeds.T)[0, 1].abs() < 0.1


def test_a_push_depends_on_seed_robot_and_step_alone():
    seed, member = torch.tensor([7, 7, 8]), torch.tensor([0, 1, 0])
    pushed, change = over_time(seed, member)
    for row in range(3):
        alone, same = over_time(seed[row : row + 1], member[row : row + 1])
        assert torch.equal(alone[:, 0], pushed[:, row])
        assert torch.equal(same[:, 0], change[:, row])
    assert (pushed.int().argmax(0).unique().numel()) == 3
    assert not torch.equal(change[10, 0], change[11, 0])
