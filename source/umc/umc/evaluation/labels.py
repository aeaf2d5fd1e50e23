# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Short names for the policies of a comparison, and which of them are the same recipe with other training seeds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from umc.rl.checkpoint import TERRAIN_KEY, CheckpointInfo, recorded_overrides, trained_engine, trained_terrain
from umc.utils.errors import UmcError
from umc.utils.naming import ENTRY_POINT, LIBRARIES

_TIME = re.compile(r"^\d{4}-\d{2}-\d{2}_\d{2}-\d{2}-\d{2}_?")
"""Start of the name of a run folder."""

_SEED = re.compile(r"[_-]?seed[_-]?\d+")
"""Part of a run's name that differs between seeds."""

_SAME_RECIPE = re.compile(
    r"env\.(scene\.num_envs|events\.\w+\.params\.(ledger|seed)|seed|viewer\.[\w.]+)="
    r"|agent\.(seed|device|max_iterations|save_interval|run_name|experiment_name|logger|\w+_project)="
)
"""Overrides that make no other recipe."""


def agent_of(info: CheckpointInfo) -> tuple[str, str]:
    """Return agent and RL library of a checkpoint."""
    match = ENTRY_POINT.fullmatch(info.agent)
    return (match[2], match[1]) if match else (info.model, LIBRARIES[0])


def labels_of(checkpoints: Sequence[tuple[Path, CheckpointInfo]], own: Sequence[str] | None = None) -> list[str]:
    """Return names for tables: ``own`` ones, or the agent and as much more as distinguishes the policies."""
    if own is not None:
        return own_labels(own, len(checkpoints))
    descriptions = []
    for path, info in checkpoints:
        agent, library = agent_of(info)
        run = path.parent.name
        descriptions.append(
            (agent, f"stage {info.stage}", library, _TIME.sub("", run), f"seed {info.seed}", run, path.stem, str(path))
        )
    return _distinct(descriptions)


def own_labels(labels: Sequence[str], count: int) -> list[str]:
    """Return the names that a user gave ``count`` policies; raise UmcError unless each has one of its own."""
    if len(labels) != count:
        counted = f"{count} policies (each once per --detection)"
        raise UmcError(f"--labels has {len(labels)} names for {counted}; give one for each")
    if not all(labels):
        raise UmcError("--labels has an empty name; give each policy one")
    if len(set(labels)) != count:
        raise UmcError(f"--labels {' '.join(labels)} hold a name twice; give each policy its own")
    return list(labels)


def groups_of(checkpoints: Sequence[tuple[Path, CheckpointInfo]]) -> list[str]:
    """Return the group of each policy: the same recipe with other training seeds.

    A recipe is agent, library, stage, number of iterations, the name of the run without its seed, and what not all
    policies share of engine, ground and overrides. Runs that share all that and the seed, too, are no sample over
    seeds: each is a group of its own.
    """
    recipes, seeds = [], Counter()
    overrides = [_overrides(path, info) for path, info in checkpoints]
    records = [recorded_overrides(path) for path, _ in checkpoints]
    if None not in records:  # files without a record do not say how the agent learned
        for own, record in zip(overrides, records, strict=True):
            own |= _of_recipe(token for token in record or () if token.startswith("agent."))
    common = set.intersection(*overrides) if overrides else set()
    for (path, info), own in zip(checkpoints, overrides, strict=True):
        agent, library = agent_of(info)
        name = _SEED.sub("", _TIME.sub("", path.parent.name)) if _TIME.match(path.parent.name) else ""
        changes = " ".join(sorted(own - common))
        recipes.append((agent, f"stage {info.stage}", library, name, f"iteration {info.iteration}", changes))
        seeds[recipes[-1], info.seed] += 1
    descriptions = []
    for recipe, (path, _) in zip(recipes, checkpoints, strict=True):
        alone = any(seeds[recipe, seed] > 1 for of, seed in seeds if of == recipe)
        descriptions.append((*recipe, str(path) if alone else ""))
    different = list(dict.fromkeys(descriptions))
    names = dict(zip(different, _distinct(different), strict=True))
    return [names[description] for description in descriptions]


def _overrides(path: Path, info: CheckpointInfo) -> set[str]:
    """Return engine, ground and the overrides of a policy's training that its file holds."""
    changed = [*info.agent_overrides, *(info.env_overrides or ()), *info.network_overrides]
    conditions = {"physics": trained_engine(path, info), TERRAIN_KEY: trained_terrain(path, info)}
    return _of_recipe([*changed, *(f"{key}={value}" for key, value in conditions.items() if value)])


def _of_recipe(overrides: Iterable[str]) -> set[str]:
    """Return the overrides that make a recipe another one."""
    return {override for override in overrides if not _SAME_RECIPE.match(override)}


def _distinct(descriptions: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the first word of each, and further ones where others have the same so far."""
    names = [[description[0]] for description in descriptions]
    for level in range(1, len(descriptions[0])):
        alike = Counter(map(tuple, names))
        words = {}
        for name, description in zip(names, descriptions, strict=True):
            words.setdefault(tuple(name), set()).add(description[level])
        for name, description in zip(names, descriptions, strict=True):
            key = tuple(name)
            if alike[key] > 1 and len(words[key]) > 1 and description[level]:
                name.append(description[level])
    return [" ".join(name) for name in names]
