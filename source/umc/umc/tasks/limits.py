# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Refuse, before anything is simulated, values of a task that cannot work."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING
from typing import Any

from umc.faults import try_faults
from umc.faults.cfg import faults_cfg
from umc.mdp.fault_terms import FAULTS_TERM
from umc.models.size import SIZES
from umc.robots.names import robot_names
from umc.utils.distributed import LARGEST_SEED
from umc.utils.errors import UmcError


@dataclasses.dataclass(frozen=True)
class Range:
    """Numbers that a field may have."""

    low: float
    high: float = math.inf
    whole: bool = False
    above: bool = False
    """Whether ``low`` itself is left out."""
    optional: bool = False
    """Whether the field may be None."""

    def __contains__(self, value: Any) -> bool:
        if value is None:
            return self.optional
        if isinstance(value, bool) or not isinstance(value, int | float) or (self.whole and not isinstance(value, int)):
            return False
        low = value > self.low if self.above else value >= self.low
        return low and value <= self.high and (self.whole or math.isfinite(value))

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        low = f"above {self.low:g}" if self.above else f"of at least {self.low:g}"
        return f"{kind} {low}" + ("" if self.high == math.inf else f" and at most {self.high:,.10g}")


COUNT = Range(1, whole=True)
HISTORY = Range(0, 1000, whole=True, optional=True)
"""Steps that a sensor or an observation keeps of each env."""
LIMITS = {
    "env.decimation": Range(1, 1000, whole=True),
    "env.sim.dt": Range(0.0, 0.1, above=True),
    "env.sim.render_interval": Range(1, 1_000_000, whole=True),
    "env.episode_length_s": Range(0.0, 1e6, above=True),
    "env.scene.num_envs": COUNT,
    "env.detection.delay": Range(0, 100_000, whole=True),
    "env.detection.missed": Range(0.0, 1.0),
    "env.detection.false_alarms": Range(0.0, 6000.0),
    "env.detection.alarm_steps": COUNT,
    "env.scene.env_spacing": Range(0.0, 1e4),
    **{
        f"env.scene.terrain.terrain_generator.{count}": Range(1, 10_000, whole=True)
        for count in ("num_rows", "num_cols")
    },
    "env.scene.terrain.robots_per_track": COUNT,
    "env.scene.terrain.reach": Range(0.0, 1e6, above=True),
    "env.scene.*.history_length": HISTORY,
    "env.observations.*.history_length": HISTORY,
    "env.observations.*.*.history_length": HISTORY,
    "env.observations.*.*.delay_max_lag": HISTORY,
    "agent.seed": Range(0, LARGEST_SEED, whole=True),
    "agent.max_iterations": Range(1, 1_000_000_000, whole=True),
    "agent.num_steps_per_env": COUNT,
    "agent.save_interval": COUNT,
    "agent.clip_actions": Range(0.0, above=True, optional=True),
    "agent.curriculum_iterations": Range(0, 1_000_000_000, whole=True),
    "agent.severity_iterations": Range(0, 1_000_000_000, whole=True),
    **{f"agent.distillation.{name}": COUNT for name in ("iterations", "updates", "batch_size", "critic_epochs")},
    "agent.distillation.samples": Range(1, 100_000_000, whole=True),
    "agent.distillation.mixing": Range(0, whole=True),
    "agent.distillation.learning_rate": Range(0.0, 1.0, above=True),
    "agent.algorithm.learning_rate": Range(0.0, 1.0, above=True),
    "agent.algorithm.gamma": Range(0.0, 1.0),
    "agent.algorithm.lam": Range(0.0, 1.0),
    "agent.algorithm.clip_param": Range(0.0, above=True),
    "agent.algorithm.entropy_coef": Range(0.0),
    "agent.algorithm.value_loss_coef": Range(0.0),
    "agent.algorithm.max_grad_norm": Range(0.0, above=True),
    "agent.algorithm.desired_kl": Range(0.0, above=True, optional=True),
    "agent.algorithm.num_learning_epochs": Range(1, 1000, whole=True),
    "agent.algorithm.num_mini_batches": COUNT,
    **{f"agent.{network}.{size}": COUNT for network in ("actor", "critic") for size in (*SIZES, "num_heads")},
    "agent.actor.distribution_cfg.init_std": Range(0.0, above=True),
}
"""What may stand in a field, or in a list in it, by its override; ``*`` is any name."""


def check_values(env_cfg: Any, agent_cfg: Any) -> None:
    """Raise UmcError for values with which no simulation or training can work; ``agent_cfg`` may be None."""
    sections = {"env": env_cfg, "agent": agent_cfg}
    for key, allowed in LIMITS.items():
        for field, value in _values(sections, key.split(".")):
            if value not in allowed:
                raise UmcError(f"{field} is {value}; it has to be {allowed}")
    for _, batches in _values(sections, ["agent", "algorithm", "num_mini_batches"]):
        samples = env_cfg.scene.num_envs * agent_cfg.num_steps_per_env
        if samples == 1:
            raise UmcError("an iteration has one sample, of which there is no deviation; give 2 --num_envs or more")
        if batches > samples:
            raise UmcError(
                f"agent.algorithm.num_mini_batches is {batches}; it has to be at most {samples}, the samples of an "
                "iteration"
            )


def check_faults(env_cfg: Any) -> None:
    """Raise UmcError for faults of a task that its robot cannot have, such as more joints than it has.

    Nothing is checked where the faults are those of a ledger, or the robot's file cannot be read here.
    """
    term = getattr(env_cfg.events, FAULTS_TERM, None)
    names = None if term is None else robot_names(env_cfg.scene.robot)
    if term is None or names is None:
        return
    params = dict(term.params)
    asset_cfg = params.pop("asset_cfg", None)
    faults = faults_cfg(None, {**params, "joint_names": None if asset_cfg is None else asset_cfg.joint_names})
    if faults.replay is not None:
        return
    steps = math.ceil(env_cfg.episode_length_s / (env_cfg.sim.dt * env_cfg.decimation))
    try_faults(names.joints, faults, steps, f"env.events.{FAULTS_TERM}.params")


def _values(here: Any, path: list[str], where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of the fields of a path with their names; not all agents and tasks have all of them."""
    if not path:
        if not isinstance(here, type(MISSING)):  # a network of one's own leaves what it has not, as a copy of MISSING
            yield from ((where, value) for value in (here if isinstance(here, list | tuple) else [here]))
        return
    known = here if isinstance(here, Mapping) else vars(here) if hasattr(here, "__dict__") else {}
    for name in list(known) if path[0] == "*" else [path[0]]:
        if name in known:
            yield from _values(known[name], path[1:], f"{where}.{name}" if where else name)
