# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Turns a training task into a test: no noise, no pushes, one command, chosen faults."""

from __future__ import annotations

from typing import Any

from umc.errors import UmcError

from .protocol import Protocol
from .starts import seed_starts

FAULT_TERM = "faults"
"""Event term of every UMC task that breaks joints."""

NEVER_RESAMPLED = 1.0e6
"""Longer than any episode [s]."""

HEALTHY = 8
"""Scenario of the paper's table in which nothing breaks."""

SPARE_STEPS = 10
"""Env steps that an episode lasts beyond the measured ones, so that no time-out resets an env inside them."""


def make_calm(env_cfg: Any, command: tuple[float, float, float], num_envs: int, steps: int, seed: int) -> None:
    """Switches off what training adds to the task itself; physics and starts stay randomised.

    Args:
        env_cfg: Env cfg with its presets resolved; changed in place.
        command: Velocity x [m/s], y [m/s], yaw [rad/s].
        num_envs: Number of envs.
        steps: Steps that are measured [env steps].
        seed: Seed of the env.
    """
    env_cfg.scene.num_envs = num_envs
    env_cfg.seed = seed
    env_cfg.episode_length_s = (steps + SPARE_STEPS) * env_cfg.sim.dt * env_cfg.decimation
    for group in vars(env_cfg.observations).values():
        if hasattr(group, "enable_corruption"):
            group.enable_corruption = False
    for name, term in vars(env_cfg.events).items():
        if getattr(term, "mode", None) == "interval" and name != FAULT_TERM:
            setattr(env_cfg.events, name, None)
    velocity = env_cfg.commands.base_velocity
    velocity.heading_command = False
    velocity.rel_standing_envs = 0.0
    velocity.resampling_time_range = (NEVER_RESAMPLED, NEVER_RESAMPLED)
    ranges = velocity.ranges
    ranges.heading = None
    ranges.lin_vel_x, ranges.lin_vel_y, ranges.ang_vel_z = ((value, value) for value in command)


def set_faults(env_cfg: Any, protocol: Protocol) -> None:
    """Lets the protocol choose the faults.

    Args:
        env_cfg: Env cfg; changed in place.
        protocol: The conditions.

    Raises:
        UmcError: If the task has no fault terms.
    """
    term = getattr(env_cfg.events, FAULT_TERM, None)
    if term is None:
        raise UmcError("the task has no fault terms; choose a task of UMC")
    term.params = {
        **{name: value for name, value in term.params.items() if name == "asset_cfg"},
        "cases": protocol.cases(),
    }
    seed_starts(env_cfg.events)


def set_healthy(env_cfg: Any) -> None:
    """Lets nothing break.

    Args:
        env_cfg: Env cfg; changed in place.
    """
    # the onset plays no part, but training's may lie beyond the end of a short episode
    getattr(env_cfg.events, FAULT_TERM).params.update(scenario=HEALTHY, onset=1)
