# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Short names for the policies of a comparison, and which of them are the same recipe with other training seeds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from umc.rl.checkpoint import TERRAIN_KEY, CheckpointInfo, recorded_overrides, trained_engine, trained_terrain
from umc.utils.config import override_key
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
    overrides = _overrides(checkpoints)
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


def _overrides(checkpoints: Sequence[tuple[Path, CheckpointInfo]]) -> list[set[str]]:
    """Return what makes the recipe of each policy another one: overrides, engine and ground.

    What is not known of a policy counts for none of its agent and stage: a file may have been copied without its run.
    """
    alike = [(*agent_of(info), info.stage) for _, info in checkpoints]
    known = [_known(path, info) for path, info in checkpoints]
    unknown = {(one, part) for one, parts in zip(alike, known, strict=True) for part in parts if parts[part] is None}
    found = []
    for one, parts, (_, info) in zip(alike, known, checkpoints, strict=True):
        tokens = [*info.agent_overrides, *(info.env_overrides or ()), *info.network_overrides]
        for part, more in parts.items():
            tokens += (more or ()) if (one, part) not in unknown else ()
        last = {override_key(token): token for token in tokens}  # in a phase later ones replace earlier ones
        found.append({token for token in last.values() if not _SAME_RECIPE.match(token)})
    return found


def _known(path: Path, info: CheckpointInfo) -> dict[str, list[str] | None]:
    """Return how a policy of UMC learned, its engine and its ground as overrides; None where it is not known."""
    if not info.agent:  # a policy of others, beside whose file anything may lie
        return {}
    record, engine, ground = recorded_overrides(path), trained_engine(path, info), trained_terrain(path, info)
    return {
        "agent": None if record is None else [token for token in record if token.startswith("agent.")],
        "physics": [f"physics={engine}"] if engine else None,
        TERRAIN_KEY: [f"{TERRAIN_KEY}={ground}"] if ground else None,
    }


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
