# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""YAML files of ``config``, by name, and those of users, by path; what a command line changes of them; their checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError, field_validator, model_validator

from umc.utils.cli import did_you_mean
from umc.utils.errors import UmcError


class FileModel(BaseModel):
    """Content of a YAML file or of a section of one; an unknown key is an error that names the closest known one."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, content: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key in content if isinstance(content, Mapping) else ():
            if key not in known:
                raise ValueError(f"unknown key {key};{did_you_mean(str(key), known)} it can have {', '.join(known)}")
        return content


def validated[Model: FileModel](model: type[Model], content: Any, where: str) -> Model:
    """Check the content of a file, named ``where`` in messages; raise a one-line UmcError about the first mistake."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"]).replace(".[key]", "")
        if first["type"] == "missing":
            raise UmcError(f"{where}: {path} is missing; add it") from error
        if first["type"] == "value_error":  # raised by our own validators
            text = str(first.get("ctx", {})["error"])
            raise UmcError(f"{where}: {f'{path}: ' if path else ''}{text}") from error
        text = first["msg"][0].lower() + first["msg"][1:]
        raise UmcError(f"{where}: {path or 'it'} is {first['input']!r}; {text}") from error


def read_yaml(text: str, where: str) -> Any:
    """Parse YAML; raise a one-line UmcError that names ``where`` if it is not YAML."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UmcError(f"{where} is not valid YAML: {' '.join(str(error).split())}") from error


def config_folder(kind: str) -> Any:
    """Return the package's folder of a kind of files: ``protocol``, ``recipe`` or ``sweep``."""
    return files("umc") / "config" / f"{kind}s"


def config_names(kind: str) -> list[str]:
    """Return the names of the package's files of a kind."""
    names = (entry.name for entry in config_folder(kind).iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def read_config_file(kind: str, name: str) -> dict[str, Any]:
    """Read a YAML file of a kind by its name in the package or its path; raise UmcError."""
    packaged = config_folder(kind) / f"{name}.yaml"
    file = packaged if packaged.is_file() else Path(name)
    if not file.is_file():
        known = ", ".join(config_names(kind))
        raise UmcError(f"no {kind} '{name}'; give the path of a YAML file, or one of {known}")
    content = read_yaml(file.read_text(encoding="utf-8"), name)
    if not isinstance(content, dict):
        raise UmcError(f"{name} is no {kind}; it has to be a mapping")
    return content


def override_key(token: str) -> str:
    """Return the key of an override token such as ``env.scene.num_envs=64``."""
    return token.split("=", 1)[0]


def merged_overrides(old: Iterable[str], new: Sequence[str]) -> list[str]:
    """Return two lists of override tokens as one, in which new ones replace old ones of the same key."""
    keys = {override_key(token) for token in new}
    return [*(token for token in old if override_key(token) not in keys), *new]


def read_overrides(tokens: Sequence[str], section: str) -> dict[str, Any]:
    """Return the values of a section's tokens, such as ``protocol.steps=300``, by dotted path without the section."""
    found = {}
    for token in tokens:
        key, _, value = token.partition("=")
        if not key.startswith(f"{section}."):
            continue
        try:
            found[key.removeprefix(f"{section}.")] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise UmcError(f"cannot read the value of {token}; write it as in YAML") from error
    return found


def merged(tree: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a tree of mappings with values set by dotted path."""
    result = {**tree}
    for path, value in overrides.items():
        here, names = result, path.split(".")
        for name in names[:-1]:
            below = here.get(name, {})
            if not isinstance(below, Mapping):
                raise UmcError(f"cannot override {path}: {name} holds no further names")
            here[name] = {**below}
            here = here[name]
        here[names[-1]] = value
    return result


EACH = "each"
"""Value of ``grid.joints`` of a sweep: every joint of the robot, one at a time."""


class SweepGrid(FileModel):
    """Lists of what varies between the settings of a protocol; every combination is a setting."""

    seed: list[int] | None = Field(None, min_length=1)
    onset: list[int] | None = Field(None, min_length=1)
    severity: list[dict[str, Any]] | None = Field(None, min_length=1)
    """Mappings such as ``{rom: 0.3}``, by kind of fault."""
    joints: list[str | list[str]] | str | None = None
    """Joints, or lists of joints that fail together; ``each``: every joint of the robot, one at a time."""

    @field_validator("joints")
    @classmethod
    def _joints(cls, joints: Any) -> Any:
        if joints in ([], "") or (isinstance(joints, str) and joints != EACH):
            raise ValueError(f"give '{EACH}', or a list of joints or of lists of joints")
        return joints


class SweepFile(FileModel):
    """A sweep: which policies it trains or compares, and the faults it compares them under.

    Training reads ``seeds`` and ``overrides``, evaluation ``protocol``, ``scenarios``, ``episodes`` and ``grid``.
    """

    name: str
    agents: list[str] = []
    """Agents; ``NETWORK`` in a name stands for :attr:`network`. Empty: the command line's."""
    network: str = "transformer"
    seeds: list[NonNegativeInt] = []
    """Seeds to train; empty: the default one."""
    overrides: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    """Values to train by the key of an override; all are combined."""
    protocol: str | None = None
    scenarios: list[int | str] | None = None
    episodes: int | None = None
    grid: SweepGrid | None = None
    """Settings instead of the protocol's."""

    @field_validator("seeds")
    @classmethod
    def _once(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) != len(seeds):
            raise ValueError("it holds a seed twice; name each once")
        return seeds

    @property
    def agent_names(self) -> list[str]:
        """Agents with ``NETWORK`` replaced."""
        return [agent.replace("NETWORK", self.network) for agent in self.agents]


VARIED = "overrides."
"""Start of the dotted path of a sweep's override, e.g. ``overrides.agent.algorithm.gamma``: its key has dots, too."""


def read_sweep_file(name: str, changes: Mapping[str, Any]) -> SweepFile:
    """Read a sweep by name or path, with the changes of :func:`read_overrides`; raise UmcError if it is wrong."""
    content = read_config_file("sweep", name)
    varied = {path.removeprefix(VARIED): value for path, value in changes.items() if path.startswith(VARIED)}
    content = merged(content, {path: value for path, value in changes.items() if not path.startswith(VARIED)})
    if varied:
        content["overrides"] = {**(content.get("overrides") or {}), **varied}
    return validated(SweepFile, content, f"sweep {name}")
