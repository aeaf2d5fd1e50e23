# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Read and check recipes: YAML files that describe the training of a policy from start to finish."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from omegaconf import OmegaConf
from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt, field_validator, model_validator

from umc.rl.agents import AGENTS
from umc.rl.pretrained import is_pretrained
from umc.tasks.registry import checked_robot, task_ids
from umc.utils.cli import did_you_mean
from umc.utils.config import FileModel, config_folder, config_names, merged_overrides, read_yaml, validated
from umc.utils.errors import UmcError
from umc.utils.naming import LIBRARIES, task_parts

FAMILIES = ("cpu", "gpu")
"""Files with the recipes of all robots and agents: ``cpu.yaml`` holds every ``<robot>_<agent>_cpu``."""

BEFORE = "before"
"""``from`` of a phase that loads only the weights of the previous one."""


def _override(token: str) -> str:
    if "=" not in token:
        raise ValueError(f"{token} is no override; write it as env.scene.terrain=flat")
    return token


Overrides = list[Annotated[str, AfterValidator(_override)]]


class Section(FileModel):
    """Section of a recipe; a key without a value is treated as left out."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, content: Any) -> Any:
        if not isinstance(content, Mapping):
            return content
        return {key: value for key, value in content.items() if value is not None or key not in cls.model_fields}


class Source(Section):
    """Weights that a phase starts from, if not those of the previous phase."""

    path: str | None = None
    """Checkpoint, run folder, ``pretrained`` or ``pretrained:NAME``."""
    recipe: str | None = None
    """Recipe whose stage they are, trained before."""
    stage: PositiveInt = 1
    """Stage of that recipe."""
    fold: bool = False
    """Whether mask and flag are left out of it (:mod:`umc.rl.transfer`), for a baseline."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.recipe is None):
            raise ValueError("'from' has to be a path, 'pretrained', or a mapping such as {recipe: a1_mlp_cpu}")
        if self.path not in (None, BEFORE) and not is_pretrained(self.path) and not Path(self.path).exists():
            raise ValueError(f"no checkpoint at {self.path}; correct 'from', or train it first")
        return self


class PhaseFile(Section):
    """A phase as the file has it."""

    name: str | int | None = None
    iterations: PositiveInt
    num_envs: PositiveInt | None = None
    seed: NonNegativeInt | None = None
    physics: str | None = None
    overrides: Overrides = []
    source: Source | None = Field(None, alias="from")

    @field_validator("source", mode="before")
    @classmethod
    def _path(cls, source: Any) -> Any:
        return {"path": source} if isinstance(source, str) else source


class EvaluationFile(Section):
    """The evaluation at the end."""

    num_envs: PositiveInt | None = None
    overrides: Overrides = []


class RecipeFile(Section):
    """A recipe as the file has it."""

    note: Any = None
    robot: str
    agent: str
    library: Literal[*LIBRARIES] = LIBRARIES[0]  # pyright: ignore[reportInvalidTypeForm]
    device: str | None = None
    seed: NonNegativeInt
    num_envs: PositiveInt | None = None
    physics: str | None = None
    overrides: Overrides = []
    stages: dict[Literal[1, 2], list[PhaseFile]]
    evaluation: EvaluationFile = EvaluationFile()
    ablations: str | None = None
    """Recipe that ablations vary instead of this one."""

    @field_validator("robot")
    @classmethod
    def _robot(cls, robot: str) -> str:
        return checked_robot(robot)

    @field_validator("agent")
    @classmethod
    def _agent(cls, agent: str) -> str:
        if agent not in AGENTS:
            raise ValueError(f"unknown agent {agent};{did_you_mean(agent, AGENTS)} choose one of {', '.join(AGENTS)}")
        return agent


@dataclasses.dataclass(frozen=True)
class Phase:
    """A training without a break: one call of train.py."""

    stage: int
    number: int
    """Place in its stage, counted from 1."""
    name: str
    task: str
    """Gym id."""
    agent: str
    """Agent that is trained: in Stage 1 the one whose weights Stage 2 loads."""
    iterations: int
    """Its own iterations; a phase that resumes the run before it counts from there."""
    seed: int
    num_envs: int | None
    """The task's own if None."""
    overrides: tuple[str, ...]
    """All that hold in it, the engine preset included."""
    source: Source | None = None
    """Where its weights come from; None: from the phase before it, or from nothing."""
    resumes: bool = False
    """Whether it resumes the run of the phase before it, optimizer and iterations included."""
    iterations_before: int = 0
    """Iterations of the resumed run before it."""

    @property
    def title(self) -> str:
        """Name in messages."""
        return f"Stage {self.stage}, {self.name}"

    @property
    def last_iteration(self) -> int:
        """Iterations of its run when it is done."""
        return self.iterations_before + self.iterations


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A training from start to finish."""

    name: str
    robot: str
    agent: str
    library: str
    device: str | None
    """The first GPU if there is one, else the CPU, if None."""
    seed: int
    phases: tuple[Phase, ...]
    evaluation: EvaluationFile

    def fingerprint(self, upto: int) -> str:
        """Return a digest of what decides the outcome of the first ``upto`` phases; their names do not."""
        phases = [{**dataclasses.asdict(phase), "name": ""} for phase in self.phases[:upto]]
        text = json.dumps([self.robot, self.library, phases], sort_keys=True, default=lambda source: dict(source))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def recipe_names() -> list[str]:
    """Return the names of all recipes of the package, without those of ablations."""
    names = set(config_names("recipe")) - set(FAMILIES)
    for family in FAMILIES:
        content = _packaged(family)
        names |= {f"{robot}_{agent}_{family}" for robot in content["robots"] for agent in content["agents"]}
    return sorted(names)


def read_recipe(text: str, seed: int | None = None, device: str | None = None) -> Recipe:
    """Read and check a recipe, given by name or path, with seed and device in place of its own; raise UmcError."""
    name, content = _inherited(text)
    if seed is not None:
        content["seed"] = seed
    file = validated(RecipeFile, content, f"recipe {name}")
    phases = _phases(file, f"recipe {name}")
    return Recipe(
        name, file.robot, file.agent, file.library, device or file.device, file.seed, tuple(phases), file.evaluation
    )


def _phases(file: RecipeFile, where: str) -> list[Phase]:
    spec = AGENTS[file.agent]
    trained: dict[Literal[1, 2], str | None] = {
        1: spec.stage1 if 2 in spec.stages else spec.name,
        2: spec.name if 2 in spec.stages else None,
    }
    found: list[Phase] = []
    for stage, agent in trained.items():
        listed = file.stages.get(stage)
        if agent is None:
            if listed:
                raise UmcError(f"{where}: agent {spec.name} is not trained in Stage {stage}; leave out stages.{stage}")
            continue
        if listed is None:
            raise UmcError(
                f"{where}: stages.{stage} is missing, and agent {spec.name} is trained in it; add its phases, or "
                f"stages.{stage}: [] to leave it out on purpose"
            )
        for phase in listed:
            before = found[-1] if found and found[-1].stage == stage else None
            found.append(_phase(phase, file, agent, stage, before, where))
        if stage == 2 and listed and found[0].stage == 2 and found[0].source is None and spec.stage1:
            raise UmcError(
                f"{where}: Stage 2 has no Stage 1 to start from; add stages.1, or 'from: pretrained' to its first phase"
            )
    if not found:
        raise UmcError(f"{where}: it has no phase; add one to stages.1 or stages.2")
    return found


def _phase(phase: PhaseFile, file: RecipeFile, agent: str, stage: int, before: Phase | None, where: str) -> Phase:
    anew = phase.source is not None and phase.source.path == BEFORE
    if anew and before is None:
        raise UmcError(f"{where}: 'from: {BEFORE}' needs a phase before it in the same stage; leave it out")
    source = None if anew else phase.source
    resumes = before is not None and phase.source is None
    inherited = before.overrides if before is not None and source is None else _tokens(file)
    number = 1 if before is None else before.number + 1
    return Phase(
        stage=stage,
        number=number,
        name=str(number if phase.name is None else phase.name),
        task=next(task for task in task_ids() if task_parts(task) == (file.robot, stage)),
        agent=agent,
        iterations=phase.iterations,
        seed=file.seed if phase.seed is None else phase.seed,
        num_envs=phase.num_envs or file.num_envs,
        overrides=tuple(merged_overrides(inherited, _tokens(phase))),
        source=source,
        resumes=resumes,
        iterations_before=before.last_iteration if before is not None and resumes else 0,
    )


def _tokens(section: RecipeFile | PhaseFile) -> list[str]:
    return [*([f"physics={section.physics}"] if section.physics else []), *section.overrides]


def _inherited(text: str, inside: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
    """Return name and content of a recipe merged over what it extends; ``inside`` are the recipes that extend it."""
    path = Path(text)
    name = path.name.removesuffix(".yaml").removesuffix(".yml")
    if name in inside:
        raise UmcError(f"recipe {name} extends itself; take it out of 'extends'")
    if path.suffix in (".yaml", ".yml") and path.is_file():
        own = _mapping(path.read_text(encoding="utf-8"), text)
    elif name in FAMILIES:
        raise UmcError(f"{name} holds the recipes of all robots; give one of {', '.join(recipe_names())}")
    elif name in config_names("recipe"):
        own = _packaged(name)
    elif (parts := _parts(name)) is not None:
        own = {"extends": parts[2], "robot": parts[0], "agent": parts[1]}
    elif (varied := _ablation(name)) is not None:
        own = _of_ablation(*varied, (*inside, name))
    else:
        known = recipe_names()
        raise UmcError(
            f"no recipe {text};{did_you_mean(name, known)} there are {', '.join(known)}, and those of the agents "
            "that vary one of theirs, such as a1_mlp_ratio_1110_cpu"
        )
    below = own.pop("extends", None)
    if below is None:
        return name, own
    base = _of_family(below, own, name) if below in FAMILIES else _inherited(str(below), (*inside, name))[1]
    return name, _merged(base, own)


def _of_family(family: str, own: Mapping[str, Any], name: str) -> dict[str, Any]:
    content = _packaged(family)
    tables = {"robot": content.pop("robots"), "agent": content.pop("agents")}
    for key, table in tables.items():
        if own.get(key) is None:
            raise UmcError(f"recipe {name}: {key} is missing; add it, {family} recipes differ by it")
        content = _merged(content, table.get(str(own[key]), {}))
    return content


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return one recipe merged over another: overrides are merged by key, other lists replaced."""
    result: Any = OmegaConf.to_container(OmegaConf.merge(dict(below), dict(above)))
    old, new = below.get("overrides"), above.get("overrides")
    if isinstance(old, list) and isinstance(new, list):
        result["overrides"] = merged_overrides(old, new)
    old, new = below.get("evaluation"), above.get("evaluation")
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        result["evaluation"] = _merged(old, new)
    return result


def _parts(name: str) -> tuple[str, str, str] | None:
    """Return robot, agent and family of a name that a family holds."""
    rest, _, family = name.rpartition("_")
    robot, _, agent = rest.partition("_")
    if family not in FAMILIES:
        return None
    content = _packaged(family)
    return (robot, agent, family) if robot in content["robots"] and agent in content["agents"] else None


def _ablation(name: str) -> tuple[str, str] | None:
    """Return the agent of a name such as ``a1_mlp_ratio_1110_cpu``, and the recipe of the agent that it varies."""
    rest, _, family = name.rpartition("_")
    robot, _, agent = rest.partition("_")
    spec = AGENTS.get(agent)
    if spec is None or 1 in spec.stages or spec.stage1 is None:
        return None
    varied = f"{robot}_{spec.stage1}_{family}"
    return (agent, varied) if _parts(varied) is not None else None


def _of_ablation(agent: str, varied: str, inside: tuple[str, ...]) -> dict[str, Any]:
    """Return its Stage 2 alone, from the Stage 1 of the unchanged agent's recipe, or of the one that this names."""
    _, content = _inherited(varied, inside)
    if (named := content.get("ablations")) is not None:
        varied, content = _inherited(str(named), inside)
    first, *rest = content["stages"][2]
    begins = {**first, "from": {"recipe": varied, "stage": 1}}
    return {**content, "agent": agent, "stages": {1: [], 2: [begins, *rest]}}


def _packaged(name: str) -> dict[str, Any]:
    return _mapping((config_folder("recipe") / f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml")


def _mapping(text: str, where: str) -> dict[str, Any]:
    content = read_yaml(text, where)
    if not isinstance(content, dict):
        raise UmcError(f"{where} is no recipe; it has to be a mapping (docs/recipes.md)")
    return content
