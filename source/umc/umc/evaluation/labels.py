# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Short names for the policies of a comparison, and which of them are the same recipe with other training seeds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from umc.rl.checkpoint import CheckpointInfo
from umc.utils.errors import UmcError
from umc.utils.naming import ENTRY_POINT, LIBRARIES

_TIME = re.compile(r"^\d{4}-\d{2}-\d{2}_\d{2}-\d{2}-\d{2}_?")
"""Begin of the name of a run folder."""

_SEED = re.compile(r"[_-]?seed[_-]?\d+")
"""Part of a run's name that tells seeds apart."""


def agent_of(info: CheckpointInfo) -> tuple[str, str]:
    """Agent and RL library of a checkpoint."""
    match = ENTRY_POINT.fullmatch(info.agent)
    return (match[2], match[1]) if match else (info.model, LIBRARIES[0])


def labels_of(checkpoints: Sequence[tuple[Path, CheckpointInfo]], own: Sequence[str] | None = None) -> list[str]:
    """What tables call the policies: the agent, and as much more as tells them apart."""
    if own is not None:
        if len(own) != len(checkpoints):
            raise UmcError(f"--labels has {len(own)} names for {len(checkpoints)} checkpoints; give one for each")
        if len(set(own)) != len(own):
            raise UmcError(f"--labels {' '.join(own)} hold a name twice; give each policy its own")
        return list(own)
    ladders = []
    for path, info in checkpoints:
        agent, library = agent_of(info)
        run = path.parent.name
        ladders.append(
            (agent, f"stage {info.stage}", library, _TIME.sub("", run), f"seed {info.seed}", run, path.stem, str(path))
        )
    return _told_apart(ladders)


def groups_of(checkpoints: Sequence[tuple[Path, CheckpointInfo]]) -> list[str]:
    """Which policies are the same recipe with other training seeds.

    The recipe is agent, library, stage, number of iterations, what the agent changes in its task, and the name of the
    run without its seed. Runs that share all that and the seed, too, are no sample over seeds: each stays alone.
    """
    recipes, seeds = [], Counter()
    for path, info in checkpoints:
        agent, library = agent_of(info)
        name = _SEED.sub("", _TIME.sub("", path.parent.name)) if _TIME.match(path.parent.name) else ""
        changes = " ".join(info.agent_overrides)
        recipes.append((agent, f"stage {info.stage}", library, name, f"iteration {info.iteration}", changes))
        seeds[recipes[-1], info.seed] += 1
    ladders = []
    for recipe, (path, _) in zip(recipes, checkpoints, strict=True):
        alone = any(seeds[recipe, seed] > 1 for of, seed in seeds if of == recipe)
        ladders.append((*recipe, str(path) if alone else ""))
    different = list(dict.fromkeys(ladders))
    names = dict(zip(different, _told_apart(different), strict=True))
    return [names[ladder] for ladder in ladders]


def _told_apart(ladders: Sequence[tuple[str, ...]]) -> list[str]:
    """First word of each, and further ones where others have the same so far."""
    names = [[ladder[0]] for ladder in ladders]
    for level in range(1, len(ladders[0])):
        alike = Counter(map(tuple, names))
        words = {}
        for name, ladder in zip(names, ladders, strict=True):
            words.setdefault(tuple(name), set()).add(ladder[level])
        for name, ladder in zip(names, ladders, strict=True):
            key = tuple(name)
            if alike[key] > 1 and len(words[key]) > 1 and ladder[level]:
                name.append(ladder[level])
    return [" ".join(name) for name in names]
