# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Pushes of an evaluation, the same on every engine: functions of robot and env step alone; pure torch."""

from __future__ import annotations

import torch

from umc.faults.random import philox, philox_pair

PUSH_EVERY = 150
"""Env steps from push to push of a robot: 3 s at 50 Hz."""

_WHEN, _HOW = 1, 2
"""Words of the counter that tell the draws apart."""


def pushes(
    seed: torch.Tensor, member: torch.Tensor, step: torch.Tensor, speed: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which robots are pushed after an env step, and the changes of the trunk's velocity.

    Args:
        seed: Seed of each robot. Shape is (num_envs,), int64.
        member: Which robot of its seed it is. Shape is (num_envs,), int64.
        step: Env steps that it has taken. Shape is (num_envs,), int64.
        speed: Largest change, along x and along y [m/s].

    Returns:
        Robots that are pushed now, shape (num_envs,), and changes in x and y [m/s], shape (num_envs, 2).
    """
    first = philox(seed, (member, 0, 0, _WHEN)) % PUSH_EVERY
    words = torch.stack(philox_pair(seed, (member, step, 0, _HOW)), dim=1)
    return (step > 0) & (step % PUSH_EVERY == first), speed * (words / 2.0**31 - 1.0).float()
