# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints to evaluate or film, and what of their training is repeated: engine, ground, observations and actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from umc.rl.checkpoint import (
    TERRAIN_KEY,
    CheckpointInfo,
    checkpoint_info,
    read_checkpoint,
    require_match,
    trained_engine,
    trained_overrides,
    trained_terrain,
)
from umc.tasks.registry import checked_checkpoint, checked_robot
from umc.utils.config import override_key
from umc.utils.errors import UmcError
from umc.utils.io import sha256

GROUND_PRESETS = ("flat", "perlin")
"""Presets of the tasks that choose a ground."""

INTERFACE = ("env.actions.", "env.observations.", "env.decimation", "env.sim.dt", "env.scene.robot.")
"""Where overrides stand that change what actions and observations mean, how often they are asked for, or the body."""

CRITIC = "env.observations.critic."
"""The exception: what only the critic reads."""


@dataclass(frozen=True)
class Candidate:
    """A checkpoint that is going to be evaluated."""

    path: Path
    info: CheckpointInfo
    sha256: str
    """Fingerprint of the file."""


def read_candidates(texts: Sequence[str] | None, robot: str | None = None, once: bool = True) -> tuple[Candidate, ...]:
    """Read the checkpoints that are going to be evaluated."""
    if texts is None:
        raise UmcError("--checkpoint is missing; give a model_<iteration>.pt or a run folder")
    if not texts:
        raise UmcError("--checkpoint is empty; give one or several model_<iteration>.pt or run folders")
    if robot is not None:
        robot = checked_robot(robot)
    found: list[Candidate] = []
    for text in texts:
        path = checked_checkpoint(text)
        assert path is not None
        info = checkpoint_info(read_checkpoint(path), path)
        if robot is not None:
            require_match(info, path, robot)
        elif found and info.robot != found[0].info.robot:
            raise UmcError(
                f"{path} was trained for robot {info.robot}, {found[0].path} for {found[0].info.robot}; "
                "take each robot on its own"
            )
        fingerprint = sha256(path)
        for other in found:
            if once and other.sha256 == fingerprint:
                raise UmcError(f"{path} is the same checkpoint as {other.path}; give each once")
        found.append(Candidate(path, info, fingerprint))
    return tuple(found)


def common_value(candidates: Sequence[Candidate], values: Sequence[str | None], what: str, key: str) -> str | None:
    """Return what all policies were trained on; None where nobody knows."""
    known = sorted({value for value in values if value})
    if len(known) > 1:
        which = ", ".join(f"{one.path}: {value or 'unknown'}" for one, value in zip(candidates, values, strict=True))
        choices = " or ".join(f"{key}={value}" for value in known)
        raise UmcError(f"the policies were trained on different {what} ({which}); choose one with {choices}")
    return known[0] if known else None


def engine_override(
    candidates: Sequence[Candidate], overrides: Sequence[str], device: str
) -> tuple[list[str], list[str]]:
    """Choose the engine the policies were trained on, unless the user names one: override and remark."""
    from umc.training.task_cfg import default_engine, names_engine

    if names_engine(overrides):
        return [], []
    engine = common_value(candidates, [trained_engine(one.path, one.info) for one in candidates], "engines", "physics")
    line = f"engine: {engine}, which the policy was trained on"
    if engine is None:
        engine, line = default_engine(device)
    return [f"physics={engine}"], [line]


def ground_override(
    candidates: Sequence[Candidate], env_cfg: Any, overrides: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Choose the ground the policies were trained on, unless the user names one: override and remark."""
    from umc.terrains import ground_name

    if names_ground(overrides):
        return [], []
    task_ground = ground_name(env_cfg.scene.terrain)
    grounds = [trained_terrain(one.path, one.info) for one in candidates]
    ground = common_value(candidates, grounds, "grounds", TERRAIN_KEY)
    if ground is None or ground == task_ground or ground not in GROUND_PRESETS:
        return [], []
    line = f"ground: {ground}, which the policy was trained on (the task's own: {TERRAIN_KEY}={task_ground})"
    return [f"{TERRAIN_KEY}={ground}"], [line]


def names_ground(overrides: Sequence[str]) -> bool:
    """Whether an override or a preset says which ground."""
    chosen = [token.partition("=")[2].split(",") for token in overrides if override_key(token) == "presets"]
    return any(override_key(token).startswith(TERRAIN_KEY) for token in overrides) or any(
        name in GROUND_PRESETS for names in chosen for name in names
    )


def interface_overrides(candidates: Sequence[Candidate], overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """Repeat what the policies' training changed in their robot, actions and observations, where the user does not."""
    typed = {override_key(token) for token in overrides}

    def of(one: Candidate) -> list[str]:
        trained = [(override_key(token).lstrip("~+"), token) for token in trained_overrides(one.path, one.info)]
        return [
            token
            for key, token in trained
            if key.startswith(INTERFACE) and not key.startswith(CRITIC) and key not in typed
        ]

    first, *others = candidates
    repeated = of(first)
    for other in others:
        different = sorted({*repeated} ^ {*of(other)})
        if different:
            raise UmcError(
                f"{first.path} and {other.path} were not trained alike ({' '.join(different)}); take each on its own, "
                "or give the override that is to hold for all"
            )
    return repeated, [f"as in the training: {' '.join(repeated)}"] if repeated else []
