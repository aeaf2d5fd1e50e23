# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Read and check recipes: YAML files that describe the training of a policy from start to finish."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from umc.rl.agents import AGENTS
from umc.tasks.registry import checked_robot, task_id
from umc.utils.cli import did_you_mean, unknown
from umc.utils.config import (
    FileModel,
    FolderName,
    Seed,
    beside,
    checked_override,
    config_folder,
    config_names,
    merged_overrides,
    override_key,
    read_config_file,
    validated,
)
from umc.utils.errors import UmcError, shown
from umc.utils.naming import LIBRARIES

FAMILIES = ("cpu", "paper")
"""Files with the recipes of all robots and agents: ``cpu.yaml`` holds every ``<robot>_<agent>_cpu``."""

SIBLING, SCALED = "_cpu", "gpu"
"""End of the names of recipes that have a sibling for a GPU, and the file with what the siblings change."""

LARGEST_SCALE = 256
"""A recipe has at most so many times the envs of the one that it scales, and at least one in so many."""

MINI_BATCHES, DEFAULT_MINI_BATCHES = "agent.algorithm.num_mini_batches", 4
"""Field with the mini-batches of an iteration, and its value in the tasks' cfgs."""

ITERATION_KEYS = ("agent.curriculum_iterations", "agent.severity_iterations", "agent.distillation.mixing")
"""Overrides that count iterations."""

PACKAGED = Path("config", "recipes")
"""Where the package's recipes lie in the repository."""

BEFORE = "before"
"""``from`` of a phase that loads only the weights of the previous one."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{shown(text)} holds characters that cannot be printed")
    return text


Text = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_printable)]
"""What messages show as it is."""


def _known_agent(agent: str) -> str:
    if agent not in AGENTS:
        raise ValueError(unknown("agent", agent, AGENTS))
    return agent


Envs = Annotated[int, Field(gt=0, le=2**20)]
Iterations = Annotated[int, Field(gt=0, le=10_000_000)]
KEYS = {"env.scene.num_envs": "num_envs", "agent.max_iterations": "iterations", "agent.seed": "seed"}
"""Overrides, and the keys of a recipe that say the same."""


def _without_key(token: str) -> str:
    if (key := KEYS.get(override_key(token))) is not None:
        raise ValueError(f"{shown(token)} has a key of its own; give '{key}' instead")
    return token


Overrides = list[Annotated[str, AfterValidator(checked_override), AfterValidator(_without_key)]]


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
    stage: Literal[1, 2] = 1
    """Stage of that recipe."""
    fold: bool = False
    """Whether mask and flag are left out of it for a baseline, or added to a baseline's (:mod:`umc.rl.transfer`)."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.recipe is None):
            raise ValueError("'from' has to be a path, 'pretrained', or a mapping such as {recipe: a1_mlp_cpu}")
        return self


class Teacher(Section):
    """Policy that a phase imitates."""

    path: str | None = None
    """As ``--teacher`` takes it."""
    recipe: str | None = None
    """Recipe whose stage it is, trained before."""
    stage: Literal[1, 2] = 2
    """Stage of that recipe."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.recipe is None):
            raise ValueError("'teacher' has to be a policy, or a mapping such as {recipe: a1_mlp_cpu}")
        return self


class PhaseSection(Section):
    """A phase as the file has it."""

    name: Text | int | None = None
    iterations: Iterations
    num_envs: Envs | None = None
    seed: Seed | None = None
    physics: str | None = None
    overrides: Overrides = []
    source: Source | None = Field(None, alias="from")
    teacher: Teacher | None = None

    @field_validator("source", "teacher", mode="before")
    @classmethod
    def _path(cls, place: Any) -> Any:
        return {"path": place} if isinstance(place, str) else place


class Evaluation(Section):
    """The evaluation at the end."""

    num_envs: Envs | None = None
    overrides: Overrides = []


@dataclasses.dataclass(frozen=True)
class Phase:
    """A training without a break: one call of train.py."""

    stage: int
    number: int
    """Place in its stage, counted from 1."""
    name: str
    task: str
    agent: str
    """Agent that is trained: in Stage 1 the one whose weights Stage 2 loads."""
    iterations: int
    """Its own, without those of the run that it resumes."""
    seed: int
    num_envs: int | None
    """The task's own if None."""
    overrides: tuple[str, ...]
    """Including the engine preset."""
    source: Source | None = None
    """Where its weights come from; None: from the phase before it, or from scratch."""
    resumes: bool = False
    """Whether it resumes the run of the phase before it, optimizer and iterations included."""
    iterations_before: int = 0
    """Iterations of the resumed run before it."""
    teacher: str | Teacher | None = None
    """Policy that it imitates, as ``--teacher`` takes it, or a stage of a recipe; None: it learns by PPO."""

    @property
    def title(self) -> str:
        """Name in messages."""
        return f"Stage {self.stage}, {self.name}"

    @property
    def last_iteration(self) -> int:
        """Iterations of its run when it is done."""
        return self.iterations_before + self.iterations


class Recipe(Section):
    """A training from start to finish."""

    name: FolderName  # of its file
    note: Any = None
    robot: Annotated[str, AfterValidator(checked_robot)]
    agent: Annotated[str, AfterValidator(_known_agent)]
    library: Literal[*LIBRARIES] = LIBRARIES[0]  # pyright: ignore[reportInvalidTypeForm]
    device: str | None = None
    """The first GPU if there is one, else the CPU, if None."""
    seed: Seed
    num_envs: Envs | None = None
    physics: str | None = None
    overrides: Overrides = []
    stages: dict[Literal[1, 2], list[PhaseSection]]
    evaluation: Evaluation = Evaluation()
    ablations: str | None = None
    """Recipe that ablations vary instead of this one."""

    @model_validator(mode="after")
    def _check_phases(self) -> Self:
        if not self.phases:
            raise ValueError("it has no phase; add one to stages.1 or stages.2")
        first = self.phases[0]
        starts = first.source is not None or first.teacher is not None
        if first.stage == 2 and not starts and AGENTS[self.agent].stage1:
            raise ValueError("Stage 2 has no Stage 1 to start from; add stages.1, or 'from: pretrained' or a teacher")
        return self

    @functools.cached_property
    def phases(self) -> tuple[Phase, ...]:
        """All phases in their order."""
        spec = AGENTS[self.agent]
        trained: dict[Literal[1, 2], str | None] = {
            1: spec.stage1 if 2 in spec.stages else spec.name,
            2: spec.name if 2 in spec.stages else None,
        }
        found: list[Phase] = []
        for stage, agent in trained.items():
            listed = self.stages.get(stage)
            if agent is None and listed:
                raise ValueError(f"agent {spec.name} is not trained in Stage {stage}; leave out stages.{stage}")
            if agent is not None and listed is None:
                raise ValueError(
                    f"stages.{stage} is missing, and agent {spec.name} is trained in it; add its phases, or "
                    f"stages.{stage}: [] to leave it out on purpose"
                )
            before = None
            for section in listed or ():
                assert agent is not None
                before = self._phase(section, agent, stage, before)
                found.append(before)
        return tuple(found)

    def _phase(self, section: PhaseSection, agent: str, stage: int, before: Phase | None) -> Phase:
        weights_of_before = section.source is not None and section.source.path == BEFORE
        if weights_of_before and before is None:
            raise ValueError(f"'from: {BEFORE}' needs a phase before it in the same stage; leave it out")
        source = None if weights_of_before else section.source
        teacher = section.teacher.path or section.teacher if section.teacher else None
        resumes = before is not None and section.source is None and teacher == before.teacher
        inherited = before.overrides if before is not None and source is None else _tokens(self)
        number = 1 if before is None else before.number + 1
        return Phase(
            stage=stage,
            number=number,
            name=str(number if section.name is None else section.name),
            task=task_id(self.robot, stage),
            agent=agent,
            iterations=section.iterations,
            seed=self.seed if section.seed is None else section.seed,
            num_envs=section.num_envs or self.num_envs,
            overrides=tuple(merged_overrides(inherited, _tokens(section))),
            source=source,
            resumes=resumes,
            iterations_before=before.last_iteration if before is not None and resumes else 0,
            teacher=teacher,
        )

    @property
    def engine(self) -> list[str]:
        """Preset of the engine that the last phase is trained on, in a list; empty if that is the default."""
        return [token for token in self.phases[-1].overrides if token.startswith("physics=")]

    def fingerprint(self, upto: int) -> str:
        """Return a digest of what decides the outcome of the first ``upto`` phases; their names do not."""
        phases = [{**dataclasses.asdict(phase), "name": ""} for phase in self.phases[:upto]]
        for phase in phases:
            if phase["teacher"] is None:  # states of recipes from before there were teachers stay valid
                del phase["teacher"]
        text = json.dumps([self.robot, self.library, phases], sort_keys=True, default=lambda source: dict(source))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _tokens(section: Recipe | PhaseSection) -> list[str]:
    return [*([f"physics={section.physics}"] if section.physics else []), *section.overrides]


def recipe_names() -> list[str]:
    """Return the names of all recipes of the package, without those of ablations."""
    return sorted({*config_names("recipe"), *_family_members(), *_siblings()} - {*FAMILIES, SCALED})


def read_recipe(text: str, seed: int | None = None, device: str | None = None) -> Recipe:
    """Read and check a recipe, given by name or path, with seed and device in place of its own; raise UmcError."""
    name, content = _inherited(text)
    if "name" in content:
        raise UmcError(f"recipe {name}: unknown key name; a recipe is called as its file, so leave it out")
    changes = {key: value for key, value in (("seed", seed), ("device", device)) if value is not None}
    return validated(Recipe, {**content, **changes, "name": name}, f"recipe {name}")


def _inherited(text: str, inside: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
    """Return name and content of a recipe merged over what it extends; ``inside`` are the recipes that extend it."""
    path = Path(text)
    name = path.name.removesuffix(".yaml").removesuffix(".yml")
    if name in inside:
        raise UmcError(f"recipe {name} extends itself; take it out of 'extends', or save your file under another name")
    inside = (*inside, name)
    packaged = [folder.resolve() for folder in (PACKAGED, Path(str(config_folder("recipe"))))]
    if path.suffix in (".yaml", ".yml") and path.is_file():
        own = read_config_file("recipe", text)
    elif text != name and path.parent.resolve() not in packaged:
        raise UmcError(f"no recipe file {shown(text)}; correct the path, or give the name {name} for the package's own")
    else:
        own = _packaged_recipe(name, text, inside)
    below, scale = own.pop("extends", None), own.pop("scale", None)
    if below is None:
        if scale is not None:
            raise UmcError(f"recipe {name}: scale is that of the recipe that it extends; add extends, or take it out")
        return name, own
    base = _of_family(below, own, name) if below in FAMILIES else _inherited(beside(path, str(below)), inside)[1]
    if scale is not None:  # what extends a family itself says for which robot and agent
        base = _scaled({**base, **{key: own[key] for key in ("robot", "agent") if key in own}}, scale, name)
    return name, _merged(base, own)


def _packaged_recipe(name: str, text: str, inside: tuple[str, ...]) -> dict[str, Any]:
    """Return what a recipe of the package says itself: its file, a family's member, or an ablation."""
    if name in (*FAMILIES, SCALED):
        raise UmcError(f"{name} holds the recipes of all robots; give one that umc list recipes shows")
    if name in config_names("recipe"):
        return read_config_file("recipe", name)
    members = _family_members()
    if name in members:
        robot, agent, family = members[name]
        return {"extends": family, "robot": robot, "agent": agent}
    if name in (siblings := _siblings()):
        return _sibling(name, siblings, inside)
    rest, _, family = name.rpartition("_")
    robot, _, agent = rest.partition("_")
    spec = AGENTS.get(agent)
    if spec is not None and 1 not in spec.stages and f"{robot}_{spec.stage1}_{family}" in {*members, *siblings}:
        return _ablation(agent, f"{robot}_{spec.stage1}_{family}", inside)
    known = recipe_names()
    raise UmcError(
        f"no recipe {shown(text)!r};{did_you_mean(name[:100], known)} give the path of a YAML file, one of the "
        f"{len(known)} that umc list recipes shows, or an ablation such as a1_mlp_ratio_1110_cpu"
    )


def _family_members() -> dict[str, tuple[str, str, str]]:
    """Return robot, agent and family by the name of each recipe that the families hold."""
    return {
        f"{robot}_{agent}_{family}": (robot, agent, family)
        for family, content in ((family, read_config_file("recipe", family)) for family in FAMILIES)
        for robot, agent in itertools.product(content["robots"], content["agents"])
    }


def _siblings() -> dict[str, str]:
    """Return the recipes for a GPU that need no file, and those for a CPU that they scale: files that learn by PPO."""
    found = {}
    for name in config_names("recipe"):
        if not name.endswith(SIBLING):
            continue
        content = read_config_file("recipe", name)
        phases = [phase for phases in content.get("stages", {}).values() for phase in phases]
        # on a GPU all learn on Newton
        if "physics" not in content and not any("teacher" in phase for phase in phases):
            found[f"{name.removesuffix(SIBLING)}_{SCALED}"] = name
    return found


def _sibling(name: str, siblings: Mapping[str, str], inside: tuple[str, ...]) -> dict[str, Any]:
    """Return a recipe for a GPU; what it starts from, and what its ablations vary, are recipes for a GPU, too."""
    own = read_config_file("recipe", SCALED)
    content = _scaled(_inherited(siblings[name], inside)[1], own.pop("scale"), name)
    renamed = {old: new for new, old in siblings.items()}
    if (ablations := content.get("ablations")) is not None:
        content["ablations"] = renamed[ablations]
    for phase in itertools.chain(*content["stages"].values()):
        if isinstance(source := phase.get("from"), Mapping) and "recipe" in source:
            start = source["recipe"]
            phase["from"] = {**source, "recipe": start if start.endswith(f"_{SCALED}") else renamed[start]}
    return _merged(content, own)


def _scaled(content: Mapping[str, Any], scale: Any, name: str) -> dict[str, Any]:
    """Return a recipe with ``scale`` times the envs and, by its root, more mini-batches.

    Fewer envs take more iterations, for as many env steps; more envs take as many iterations.
    """
    known = isinstance(scale, int | float) and not isinstance(scale, bool)
    if not known or not 1 / LARGEST_SCALE <= scale <= LARGEST_SCALE:
        limits = f"between 1/{LARGEST_SCALE} and {LARGEST_SCALE}"
        raise UmcError(f"recipe {name}: scale is {shown(scale)}; it has to be a number {limits}")
    validated(Recipe, {**content, "name": name}, f"recipe {name}")
    if content.get("num_envs") is None:
        raise UmcError(f"recipe {name}: there is no num_envs to scale; add it to the recipe that this one extends")
    overrides = merged_overrides([f"{MINI_BATCHES}={DEFAULT_MINI_BATCHES}"], content.get("overrides") or [])
    stages = {stage: [_sized(phase, scale) for phase in phases] for stage, phases in content["stages"].items()}
    return {**_sized({**content, "overrides": overrides}, scale), "stages": stages}


def _sized(section: Mapping[str, Any], scale: float) -> dict[str, Any]:
    """Scale what a recipe or a phase says itself."""
    longer = max(1.0 / scale, 1.0)
    result = dict(section)
    for key, factor in (("num_envs", scale), ("iterations", longer)):
        if section.get(key) is not None:
            result[key] = _times(section[key], factor)
    factors = {MINI_BATCHES: math.sqrt(scale), **dict.fromkeys(ITERATION_KEYS, longer)}
    tokens = []
    for token in section.get("overrides") or ():
        key, _, value = token.partition("=")
        if key in factors and not value.isdecimal():
            raise UmcError(f"{shown(token)}: scale needs a whole number there")
        tokens.append(f"{key}={_times(int(value), factors[key])}" if key in factors else token)
    return {**result, "overrides": tokens}


def _times(count: float, factor: float) -> int:
    return max(round(count * factor), 1) if count else 0  # which may stand for never


def _of_family(family: str, own: Mapping[str, Any], name: str) -> dict[str, Any]:
    content = read_config_file("recipe", family)
    tables = {"robot": content.pop("robots"), "agent": content.pop("agents")}
    for key, table in tables.items():
        if own.get(key) is None:
            raise UmcError(f"recipe {name}: {key} is missing; add it, {family} recipes differ by it")
        content = _merged(content, table.get(str(own[key]).lower(), {}))
    return content


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return one recipe merged over another: overrides are merged by key, other lists replaced."""
    result = {**below, **above}
    for key in below.keys() & above.keys():
        old, new = below[key], above[key]
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            result[key] = _merged(old, new)
        elif key == "overrides" and isinstance(old, list) and isinstance(new, list):
            is_text = all(isinstance(token, str) for token in (*old, *new))
            result[key] = merged_overrides(old, new) if is_text else [*old, *new]  # which the recipe's check refuses
    return result


def _ablation(agent: str, varied: str, inside: tuple[str, ...]) -> dict[str, Any]:
    """Return Stage 2 alone, from the Stage 1 of the unchanged agent's recipe, or of the one that this names."""
    _, content = _inherited(varied, inside)
    if (named := content.get("ablations")) is not None:
        varied, content = _inherited(str(named), inside)
    first, *rest = content["stages"][2]
    return {
        **content,
        "agent": agent,
        "stages": {1: [], 2: [{**first, "from": {"recipe": varied, "stage": 1}}, *rest]},
    }
