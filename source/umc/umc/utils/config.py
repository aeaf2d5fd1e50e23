# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""YAML files of ``config``, by name, and those of users, by path; what a command line changes of them; their checks."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from umc.utils.cli import did_you_mean
from umc.utils.distributed import LARGEST_SEED
from umc.utils.errors import UmcError, shown
from umc.utils.text import MAX_DEPTH, MAX_INTEGER, read_text


class FileModel(BaseModel):
    """Content of a YAML file or of a section of one; an unknown key is an error that names the closest known one."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, content: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key in content if isinstance(content, Mapping) else ():
            if key not in known:
                hint = did_you_mean(str(key)[:100], known)
                raise ValueError(f"unknown key {shown(key)};{hint} it can have {', '.join(known)}")
        return content


class OpenFile(BaseModel):
    """What is read of a file or of a section of one; other keys are kept."""

    model_config = ConfigDict(strict=True, extra="allow")


def validated[Model: BaseModel](model: type[Model], content: Any, where: str) -> Model:
    """Check the content of a file, named ``where`` in messages; raise a one-line UmcError about the first mistake."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise UmcError(f"{shown(where)}: {first_mistake(error)}") from error


def first_mistake(error: ValidationError) -> str:
    """Return what is wrong first, and where in the file, in one line."""
    first = error.errors(include_url=False)[0]
    path = shown(".".join(str(part) for part in first["loc"]).replace(".[key]", ""))
    if first["type"] == "missing":
        return f"{path} is missing; add it"
    if first["type"] == "value_error":  # raised by our own validators
        return f"{f'{path}: ' if path else ''}{first.get('ctx', {})['error']}"
    text = first["msg"][0].lower() + first["msg"][1:]
    given = first["input"]
    return f"{path or 'it'} is {repr(shown(given)) if isinstance(given, str) else shown(given)}; {shown(text)}"


def path_component(name: str) -> str:
    """Return a name that can be that of a file or folder; raise ValueError for one that leads elsewhere."""
    if not 0 < len(name.encode()) <= 100:
        raise ValueError("a name has 1 to 100 bytes")
    if not name.isprintable() or set(name) & set("/\\:") or name[0] in ".- " or name[-1] == " ":
        raise ValueError(f"{shown(name)} is no name of a folder; use letters, digits, '_', '-' and '.', a letter first")
    return name


FolderName = Annotated[str, AfterValidator(path_component)]
"""A name that is one component of a path."""


class _Loader(yaml.CSafeLoader):
    """YAML's plain types, without keys that are given twice, numbers that are not finite, and huge integers."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        """Refuse a key that is given twice, where YAML takes the last."""
        seen = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise ValueError(f"key {key.value} is given twice")
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)

    def construct_number(self, node: Any) -> Any:
        """Return an int or a float that tensors and pydantic can hold."""
        is_int = node.tag.endswith(":int")
        number = self.construct_yaml_int(node) if is_int else self.construct_yaml_float(node)
        if isinstance(number, int) and abs(number) >= MAX_INTEGER:
            raise ValueError(f"{node.value[:20]} is no 64-bit integer")
        if not math.isfinite(number):
            raise ValueError(f"{node.value[:20]} is not finite")
        return number


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_number)

_MAX_NODES = 100_000
"""Most values in a YAML file, aliases spelled out."""

_TUPLE = "tag:yaml.org,2002:python/tuple"


class _TupleLoader(_Loader):
    """The same with tuples as Isaac Lab writes them."""

    def construct_tuple(self, node: yaml.SequenceNode) -> tuple[Any, ...]:
        return tuple(self.construct_sequence(node, deep=True))


_TupleLoader.add_constructor(_TUPLE, _TupleLoader.construct_tuple)


def read_yaml(text: str, where: str, tuples: bool = False) -> Any:
    """Parse YAML of plain types; raise a one-line UmcError that names ``where`` if it is not, or too large.

    Before it builds anything it refuses nesting beyond :data:`umc.utils.text.MAX_DEPTH`, tags, and aliases that make a
    small file large. With ``tuples`` it takes the one tag that Isaac Lab's cfg files have.
    """
    try:
        _check_yaml(text, (None, "!", _TUPLE) if tuples else (None, "!"))
        return yaml.load(text, _TupleLoader if tuples else _Loader)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: ours, and those of impossible dates
        raise UmcError(f"{shown(where)} is not valid YAML: {shown(str(error))}") from error


def _check_yaml(text: str, tags: Sequence[str | None]) -> None:
    anchors: dict[str, tuple[int, int]] = {}
    """Values inside an anchor, and levels."""
    stack: list[list[Any]] = [[None, 0, 0]]
    """Of open collections: anchor, values so far, levels below."""
    for event in yaml.parse(text, yaml.CSafeLoader):
        if (tag := getattr(event, "tag", None)) not in tags:
            raise ValueError(f"it has the tag {tag}; write plain values")
        values, levels = 0, 0
        if isinstance(event, yaml.CollectionStartEvent):
            stack.append([event.anchor, 1, 0])
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, values, levels = stack.pop()
            levels += 1
            anchors[anchor] = values, levels
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                raise ValueError(f"the alias *{event.anchor} has no value before it, or is inside it")
            values, levels = anchors[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            values = 1
            anchors[event.anchor] = 1, 0
        stack[-1][1] += values
        stack[-1][2] = max(stack[-1][2], levels)
        if stack[-1][1] > _MAX_NODES:
            raise ValueError(f"it holds more than {_MAX_NODES} values")
        if len(stack) - 1 + stack[-1][2] > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep")


def config_folder(kind: str) -> Any:
    """Return the package's folder of a kind of files: ``protocol``, ``recipe`` or ``sweep``."""
    return files("umc") / "config" / f"{kind}s"


def config_names(kind: str) -> list[str]:
    """Return the names of the package's files of a kind."""
    names = (entry.name for entry in config_folder(kind).iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def read_config_file(kind: str, name: str) -> dict[str, Any]:
    """Read a YAML file of a kind by its name in the package or its path; raise UmcError."""
    known = config_names(kind)
    if name in known:
        text = (config_folder(kind) / f"{name}.yaml").read_text(encoding="utf-8")
    elif os.path.isfile(name):
        text = read_text(Path(name))
    else:
        raise UmcError(f"no {kind} '{shown(name)}'; give the path of a YAML file, or one of {', '.join(known)}")
    content = read_yaml(text, name)
    if not isinstance(content, dict):
        raise UmcError(f"{shown(name)} is no {kind}; it has to be a mapping")
    return content


def beside(path: str | Path, other: str) -> str:
    """Return the path of a YAML file that another one names, from that one's folder if it is there, else as it is."""
    there = os.path.join(os.path.dirname(path), other)
    return there if there.endswith((".yaml", ".yml")) and os.path.isfile(there) else other


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
        found[key.removeprefix(f"{section}.")] = read_yaml(value, f"the value of {shown(token)}")
    return found


def merged(tree: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a tree of mappings with values set by dotted path."""
    result = {**tree}
    for path, value in overrides.items():
        here, names = result, path.split(".")
        for name in names[:-1]:
            below = here.get(name, {})
            if not isinstance(below, Mapping):
                raise UmcError(f"cannot override {path}: {name} holds no further names; leave out what follows it")
            here[name] = {**below}
            here = here[name]
        here[names[-1]] = value
    return result


Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]

OVERRIDE = re.compile(r"[~+]*[A-Za-z_][\w./@]*=")
"""What presets and overrides look like."""

SELECTORS = ("physics", "renderer", "presets")
"""Tokens that choose presets; see ``isaaclab_tasks.utils.preset_cli``."""


def checked_override(token: str) -> str:
    """Return an override token; raise ValueError if it is none."""
    if OVERRIDE.match(token) is None or not token.isprintable():
        raise ValueError(f"{shown(token)} is not an override; write it as env.scene.terrain=flat")
    return token
