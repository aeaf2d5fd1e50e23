# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Recipes: YAML files that say how a policy is trained from start to finish; read and checked here, run elsewhere."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from umc.rl.agents import AGENTS, AgentSpec
from umc.rl.pretrained import is_pretrained
from umc.tasks.registry import checked_robot, task_ids
from umc.training.recipe_file import merged_tokens, recipe_content
from umc.utils.cli import did_you_mean
from umc.utils.errors import UmcError
from umc.utils.naming import LIBRARIES, entry_point, task_parts

KEYS = {
    "extends": "recipe or family it is laid over",
    "note": "anything a reader should know",
    "robot": "a1, g1, h1 or solo8",
    "agent": "agent of its last stage",
    "library": "rsl_rl or skrl",
    "device": "cpu, cuda or cuda:N",
    "seed": "seed of envs and networks",
    "num_envs": "envs simulated at once",
    "physics": "engine preset",
    "overrides": "overrides of all phases",
    "stages": "lists of phases by stage, 1 and 2",
    "evaluation": "num_envs and overrides of the evaluation at the end",
    "ablations": "recipe that its ablations vary instead of it",
}
"""Keys of a recipe."""

PHASE_KEYS = ("name", "iterations", "num_envs", "seed", "physics", "overrides", "from")
"""Keys of a phase."""

FROM_KEYS = ("path", "recipe", "stage", "fold")
"""Keys of ``from``, where it is no path."""

BEFORE = "before"
"""``from`` of a phase that takes the weights of the one before it, and nothing else."""

EVALUATION_KEYS = ("num_envs", "overrides")
"""Keys of the evaluation."""

NEEDED = ("robot", "agent", "stages", "seed")
"""Keys that no recipe can do without."""


@dataclasses.dataclass(frozen=True)
class Source:
    """Weights that a phase starts from, where they are not those of the phase before it."""

    path: str | None = None
    """Checkpoint, run folder, ``pretrained`` or ``pretrained:NAME``."""
    recipe: str | None = None
    """Recipe whose stage it is, trained before."""
    stage: int = 1
    """Stage of that recipe."""
    fold: bool = False
    """Whether mask and flag are left out of it (:mod:`umc.rl.transfer`), for a baseline."""


@dataclasses.dataclass(frozen=True)
class Phase:
    """A training without a break: one call of scripts/train.py."""

    stage: int
    number: int
    """Place in its stage, counted from 1."""
    name: str
    task: str
    """Gym id."""
    agent: str
    """Agent that is trained: in Stage 1 the one that Stage 2 goes on from."""
    iterations: int
    """Its own iterations; a phase that goes on with the run before it counts from there."""
    seed: int
    num_envs: int | None
    """The task's own if None."""
    overrides: tuple[str, ...]
    """All that hold in it, the engine preset included."""
    source: Source | None = None
    """Where its weights come from; None: from the phase before it, or from nothing."""
    goes_on: bool = False
    """Whether it goes on with the run of the phase before it, optimizer and iterations included."""
    behind: int = 0
    """Iterations of its run before it."""

    @property
    def title(self) -> str:
        """What the screen calls it."""
        return f"Stage {self.stage}, {self.name}"

    @property
    def last_iteration(self) -> int:
        """Iterations of its run when it is done."""
        return self.behind + self.iterations


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A training from start to finish."""

    name: str
    robot: str
    agent: str
    library: str
    device: str | None
    """The first GPU where there is one, else the CPU, if None."""
    seed: int
    phases: tuple[Phase, ...]
    evaluation: Mapping[str, Any]
    """``num_envs`` and ``overrides`` of the evaluation at its end."""

    @property
    def entry_point(self) -> str:
        """Entry point of the agent of its last stage."""
        return entry_point(self.agent, self.library)

    def fingerprint(self, upto: int) -> str:
        """What decides the outcome of its first phases.

        Args:
            upto: How many of them.

        Returns:
            A few hexadecimal digits.
        """
        # names may change: they decide nothing
        phases = [{**dataclasses.asdict(phase), "name": ""} for phase in self.phases[:upto]]
        text = json.dumps([self.robot, self.library, phases], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_recipe(text: str, seed: int | None = None, device: str | None = None) -> Recipe:
    """Reads and checks a recipe.

    Args:
        text: Its name, or the path of a YAML file; ``config/recipes/<name>.yaml`` stands for the name.
        seed: Seed in place of the recipe's.
        device: Device in place of the recipe's.

    Returns:
        The recipe.

    Raises:
        UmcError: If there is no such recipe, or something is wrong with it.
    """
    name, content = recipe_content(text)
    where = f"recipe {name}"
    _known(content, KEYS, where)
    missing = [key for key in NEEDED if content.get(key) is None]
    if missing:
        raise UmcError(f"{where}: {missing[0]} is missing ({KEYS[missing[0]]}); add it, or extends: cpu")
    try:
        robot, agent = checked_robot(str(content["robot"])), str(content["agent"])
    except UmcError as error:
        raise UmcError(f"{where}: {error}") from error
    if agent not in AGENTS:
        raise UmcError(
            f"{where}: unknown agent {agent};{did_you_mean(agent, list(AGENTS))} choose one of {', '.join(AGENTS)}"
        )
    library = content.get("library", LIBRARIES[0])
    if library not in LIBRARIES:
        raise UmcError(f"{where}: unknown library {library}; choose one of {', '.join(LIBRARIES)}")
    if seed is not None:
        content["seed"] = seed
    _number(content["seed"], f"{where}: seed", 0)
    phases = _phases(content, AGENTS[agent], robot, where)
    evaluation = content.get("evaluation") or {}
    _known(evaluation, EVALUATION_KEYS, f"{where}: evaluation")
    return Recipe(
        name=name,
        robot=robot,
        agent=agent,
        library=library,
        device=device or content.get("device"),
        seed=content["seed"],
        phases=tuple(phases),
        evaluation=evaluation,
    )


def _phases(content: Mapping[str, Any], spec: AgentSpec, robot: str, where: str) -> list[Phase]:
    stages = content["stages"]
    if not isinstance(stages, Mapping) or not set(stages) <= {1, 2}:
        raise UmcError(f"{where}: stages has to hold lists of phases under 1 and 2")
    trained = {1: spec.stage1 if 2 in spec.stages else spec.name, 2: spec.name if 2 in spec.stages else None}
    found: list[Phase] = []
    for stage in (1, 2):
        agent = trained[stage]
        listed = stages.get(stage)
        if agent is None:
            if listed:
                raise UmcError(f"{where}: agent {spec.name} is not trained in Stage {stage}; leave out stages.{stage}")
            continue
        if listed is None:
            raise UmcError(
                f"{where}: stages.{stage} is missing, and agent {spec.name} is trained in it; add its phases, or "
                f"stages.{stage}: [] to leave it out on purpose"
            )
        if not isinstance(listed, list) or not all(isinstance(phase, Mapping) for phase in listed):
            raise UmcError(f"{where}: stages.{stage} has to be a list of phases such as {{iterations: 100}}")
        for number, phase in enumerate(listed, start=1):
            before = found[-1] if found and found[-1].stage == stage else None
            at = f"{where}: phase {number} of Stage {stage}"
            found.append(_phase(phase, content, _task(robot, stage), agent, before, stage, at))
        if stage == 2 and listed and not found[0].stage == 1 and found[0].source is None and spec.stage1:
            raise UmcError(
                f"{where}: Stage 2 has no Stage 1 to go on from; add stages.1, or 'from: pretrained' to its first phase"
            )
    if not found:
        raise UmcError(f"{where}: it has no phase; add one to stages.1 or stages.2")
    return found


def _phase(
    phase: Mapping[str, Any],
    recipe: Mapping[str, Any],
    task: str,
    agent: str,
    before: Phase | None,
    stage: int,
    where: str,
) -> Phase:
    _known(phase, PHASE_KEYS, where)
    iterations = phase.get("iterations")
    if iterations is None:
        raise UmcError(f"{where}: iterations is missing; say how many it trains")
    _number(iterations, f"{where}: iterations", 1)
    num_envs = phase.get("num_envs", recipe.get("num_envs"))
    if num_envs is not None:
        _number(num_envs, f"{where}: num_envs", 1)
    anew = phase.get("from") == BEFORE
    if anew and before is None:
        raise UmcError(f"{where}: 'from: {BEFORE}' needs a phase before it in the same stage; leave it out")
    source = None if anew else _source(phase.get("from"), where)
    goes_on = before is not None and source is None and not anew
    inherited = list(before.overrides) if before is not None and source is None else _tokens(recipe, where)
    number = 1 if before is None else before.number + 1
    return Phase(
        stage=stage,
        number=number,
        name=str(phase.get("name", number)),
        task=task,
        agent=agent,
        iterations=iterations,
        seed=_number(phase.get("seed", recipe["seed"]), f"{where}: seed", 0),
        num_envs=num_envs,
        overrides=tuple(merged_tokens(inherited, _tokens(phase, where))),
        source=source,
        goes_on=goes_on,
        behind=before.last_iteration if before is not None and goes_on else 0,
    )


def _source(value: Any, where: str) -> Source | None:
    if value is None:
        return None
    if isinstance(value, str):
        value = {"path": value}
    if not isinstance(value, Mapping) or ("path" in value) == ("recipe" in value):
        raise UmcError(f"{where}: 'from' has to be a path, 'pretrained', or a mapping such as {{recipe: a1_mlp_cpu}}")
    _known(value, FROM_KEYS, f"{where}: from")
    path, recipe = value.get("path"), value.get("recipe")
    if path is not None and not is_pretrained(path) and not Path(path).exists():
        raise UmcError(f"{where}: no checkpoint at {path}; correct 'from', or train it first")
    stage = _number(value.get("stage", 1), f"{where}: from.stage", 1)
    return Source(path, recipe, stage, bool(value.get("fold", False)))


def _tokens(section: Mapping[str, Any], where: str) -> list[str]:
    tokens = section.get("overrides") or []
    if not isinstance(tokens, list) or not all(isinstance(token, str) and "=" in token for token in tokens):
        raise UmcError(f"{where}: overrides has to be a list of tokens such as env.scene.terrain=flat")
    physics = section.get("physics")
    return ([f"physics={physics}"] if physics else []) + list(tokens)


def _known(section: Any, keys: Any, where: str) -> None:
    if not isinstance(section, Mapping):
        raise UmcError(f"{where} has to be a mapping of {', '.join(keys)}")
    for key in section:
        if key not in keys:
            hint = did_you_mean(str(key), list(keys))
            raise UmcError(f"{where}: unknown key {key};{hint} it can have {', '.join(keys)}")


def _number(value: Any, where: str, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UmcError(f"{where} is {value}; it has to be a whole number of at least {least}")
    return value


def _task(robot: str, stage: int) -> str:
    return next(task for task in task_ids() if task_parts(task) == (robot, stage))
