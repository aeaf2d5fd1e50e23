# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Changes a task of training for evaluation: one command, chosen faults, noise and pushes only if asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from umc.evaluation.arguments import HEALTHY
from umc.evaluation.protocol import Protocol
from umc.evaluation.starts import seed_pushes, seed_starts
from umc.faults import CommandKind, find_kind
from umc.faults.kinds import ImuKind
from umc.mdp.add_faults import RESET_TERM
from umc.mdp.fault_terms import FAULTS_TERM
from umc.mdp.observations import entries
from umc.tasks.parts import parts_of
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from umc.evaluation.study import EnvAssignment

NEVER_RESAMPLED = 1.0e6
"""Longer than any episode [s]."""

TRACKS = 12
"""Largest number of tracks: as many of the paper's 6 m as an engine keeps at full resolution. Robots of a setting are
spread over those of its terrain seed."""

MOST_ROBOTS = 1 << 30
"""More robots on a track than any evaluation has, so that the number of envs adds no tracks."""

SPARE_LENGTH = 1.5
"""Length of the tracks over the distance of the command [-]."""

SPARE_STEPS = 10
"""Env steps that an episode lasts beyond the measured ones, so that no time-out resets an env inside them."""


def disable_training_randomization(
    env_cfg: Any, command: tuple[float, float, float], num_envs: int, steps: int, seed: int, noise: bool = False
) -> None:
    """Switch off pushes, curricula, changing commands and, unless ``noise``, noise; the rest stays randomized.

    ``command`` is a velocity x [m/s], y [m/s], yaw [rad/s], ``steps`` are the env steps that are measured.
    """
    from umc.rl.external import EXTERNAL_GROUP, GROUP

    env_cfg.scene.num_envs = num_envs
    env_cfg.seed = seed
    env_cfg.episode_length_s = (steps + SPARE_STEPS) * env_cfg.sim.dt * env_cfg.decimation
    groups = entries(env_cfg.observations)
    noisy = noise and bool(getattr(groups.get(GROUP), "enable_corruption", False))
    for name, group in groups.items():
        if name.startswith(EXTERNAL_GROUP):  # what a policy of others reads is as noisy as the actor's
            group.enable_corruption = noisy
        elif hasattr(group, "enable_corruption"):
            group.enable_corruption &= noise
    drop_events(env_cfg, "interval")
    env_cfg.curriculum = None
    velocity = getattr(env_cfg.commands, parts_of(env_cfg).command)
    velocity.heading_command = False
    velocity.rel_standing_envs = 0.0
    velocity.resampling_time_range = (NEVER_RESAMPLED, NEVER_RESAMPLED)
    ranges = velocity.ranges
    ranges.heading = None
    ranges.lin_vel_x, ranges.lin_vel_y, ranges.ang_vel_z = ((value, value) for value in command)


def drop_events(env_cfg: Any, *modes: str) -> None:
    """Take the event terms of some modes out of a task, in place, but for those of the faults."""
    events = entries(env_cfg.events)
    for name, term in events.items():
        if getattr(term, "mode", None) in modes and name not in (FAULTS_TERM, RESET_TERM):
            events[name] = None


def replace_faults(env_cfg: Any, **params: Any) -> None:
    """Give the fault term of a task other parameters, in place; raise UmcError if it has none."""
    term = entries(env_cfg.events).get(FAULTS_TERM)
    if term is None:
        raise UmcError(f"{type(env_cfg).__name__} has no fault terms; give another --task, or add_faults to it")
    term.params = {name: value for name, value in term.params.items() if name == "asset_cfg"} | params


def add_command_faults(env_cfg: Any) -> None:
    """Give a task the action term whose commands can fail, unless it has one."""
    from umc.mdp import CommandFaultsCfg

    actions = entries(env_cfg.actions)
    if not any(isinstance(term, CommandFaultsCfg) for term in actions.values()):
        actions["command_faults"] = CommandFaultsCfg()


def set_protocol(env_cfg: Any, protocol: Protocol, num_envs: int) -> None:
    """Give a task the conditions of a protocol, in place: its command, faults and tracks, seeded starts and pushes."""
    disable_training_randomization(
        env_cfg, protocol.command, num_envs, protocol.steps, protocol.seed, noise=protocol.noise
    )
    replace_faults(env_cfg, cases=protocol.cases())
    _let_fail(env_cfg, protocol)
    seed_starts(env_cfg.events)
    set_track(env_cfg, protocol)
    if protocol.push:
        seed_pushes(env_cfg, protocol.push)


def _let_fail(env_cfg: Any, protocol: Protocol) -> None:
    """Let commands and the inertial sensor of a task fail where a protocol breaks them."""
    from umc.mdp import add_imu_sensors

    kinds = [find_kind(name) for scenario in protocol.scenarios for name in protocol.scenario(scenario).kinds]
    if any(isinstance(kind, CommandKind) for kind in kinds):
        add_command_faults(env_cfg)
    # a critic sees the truth, and is not asked here
    groups = [name for name, group in entries(env_cfg.observations).items() if name != "critic" and group is not None]
    if any(isinstance(kind, ImuKind) for kind in kinds):
        add_imu_sensors(env_cfg, groups=groups)


def on_tracks(env_cfg: Any) -> bool:
    """Return whether the ground of a task is Perlin tracks."""
    from umc.terrains import TrackImporterCfg

    return isinstance(getattr(env_cfg.scene, "terrain", None), TrackImporterCfg)


def set_track(env_cfg: Any, protocol: Protocol) -> None:
    """Replace the tracks of a task by those of a protocol; other ground stays.

    There are up to :data:`TRACKS`, the same number of every terrain seed and for any number of envs, so that the ground
    under a robot depends on its setting and member only.
    """
    from umc.terrains import perlin_tracks

    seeds = protocol.perlin_seeds
    if not on_tracks(env_cfg) or not protocol.track or not seeds:
        return
    if len(seeds) > TRACKS:
        raise UmcError(f"protocol {protocol.name} has {len(seeds)} terrain seeds; at most {TRACKS} tracks can be laid")
    laid: Any = perlin_tracks(**protocol.track, seeds=tuple(seeds) * (TRACKS // len(seeds)))
    # long enough for a robot that is faster than the command
    length = abs(protocol.command[0]) * protocol.steps * env_cfg.sim.dt * env_cfg.decimation
    env_cfg.scene.terrain = laid.replace(
        robots_per_track=MOST_ROBOTS, reach=max(SPARE_LENGTH * length, env_cfg.scene.terrain.reach)
    )


def tracks_of(protocol: Protocol, assignment: EnvAssignment) -> torch.Tensor:
    """Return the track of every robot, a column of the terrain of :func:`set_track`. Shape is (num_envs,)."""
    seeds = protocol.perlin_seeds
    number = {seed: index for index, seed in enumerate(seeds)}
    of_cell = torch.tensor([number.get(setting.perlin_seed or 0, 0) for setting, _ in protocol.cells])
    return of_cell[assignment.cell] + len(seeds) * (assignment.member % (TRACKS // len(seeds)))


def set_healthy(env_cfg: Any) -> None:
    """Switch the faults off."""
    # cases and a replay go before a scenario; the onset has no effect, but training's may lie beyond a short episode
    entries(env_cfg.events)[FAULTS_TERM].params.update(scenario=HEALTHY, onset=1, cases=None, replay=None)
