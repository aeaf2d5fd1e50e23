# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Where recipes come from: files of their own, families of many, and one laid over another."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from umc.rl.agents import AGENTS
from umc.utils.cli import did_you_mean
from umc.utils.errors import UmcError

FAMILIES = ("cpu", "gpu")
"""Files of recipes that differ by robot and agent: ``cpu.yaml`` holds ``<robot>_<agent>_cpu`` of all of them."""

FAMILY_KEYS = ("robots", "agents")
"""What a family has beside the keys of a recipe."""


def recipe_names() -> list[str]:
    """Names of all recipes of the package."""
    names = {path.name.removesuffix(".yaml") for path in _folder().iterdir() if path.name.endswith(".yaml")}
    for family in FAMILIES:
        content = _file(family)
        names |= {f"{robot}_{agent}_{family}" for robot in content["robots"] for agent in content["agents"]}
    return sorted(names - set(FAMILIES))


def recipe_content(text: str, inside: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
    """Name and content of a recipe with what it extends laid under it.

    Args:
        text: Its name, or the path of a YAML file.
        inside: Recipes that extend it, by name.

    Returns:
        Name, and content as it stands in YAML; not checked.

    Raises:
        UmcError: If there is no such recipe, a file is no mapping, or a recipe extends itself.
    """
    path = Path(text)
    name = path.name.removesuffix(".yaml").removesuffix(".yml")
    if name in inside:
        raise UmcError(f"recipe {name} extends itself; take it out of 'extends'")
    if path.suffix in (".yaml", ".yml") and path.is_file():
        own = _yaml(path.read_text(encoding="utf-8"), text)
    elif name in FAMILIES:
        raise UmcError(f"{name} holds the recipes of all robots; give one of {', '.join(recipe_names())}")
    elif (_folder() / f"{name}.yaml").is_file():
        own = _file(name)
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
    if below in FAMILIES:
        return name, _laid_over(_of_family(below, own, name), own)
    _, base = recipe_content(str(below), (*inside, name))
    return name, _laid_over(base, own)


def _of_family(family: str, own: Mapping[str, Any], name: str) -> dict[str, Any]:
    content = _file(family)
    result = {key: value for key, value in content.items() if key not in FAMILY_KEYS}
    for key in ("robot", "agent"):
        table = content[f"{key}s"]
        if own.get(key) is None:
            raise UmcError(f"recipe {name}: {key} is missing; add it, {family} recipes differ by it")
        # what a family does not know has its defaults
        result = _laid_over(result, table.get(own[key]) or {})
    return result


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """One recipe over another: mappings are merged, overrides are added, everything else is replaced."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if key == "overrides" and isinstance(old, list) and isinstance(value, list):
            result[key] = merged_tokens(old, value)
        elif isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = _laid_over(old, value)
        else:
            result[key] = value
    return result


def _parts(name: str) -> tuple[str, str, str] | None:
    """Robot, agent and family of a name, if a family holds it."""
    rest, _, family = name.rpartition("_")
    robot, _, agent = rest.partition("_")
    if family not in FAMILIES:
        return None
    content = _file(family)
    return (robot, agent, family) if robot in content["robots"] and agent in content["agents"] else None


def _ablation(name: str) -> tuple[str, str] | None:
    """Agent that varies another one, and the recipe of that one, of a name such as ``a1_mlp_ratio_1110_cpu``."""
    rest, _, family = name.rpartition("_")
    robot, _, agent = rest.partition("_")
    spec = AGENTS.get(agent)
    if spec is None or 1 in spec.stages or spec.stage1 is None:
        return None
    varied = f"{robot}_{spec.stage1}_{family}"
    return (agent, varied) if _parts(varied) is not None else None


def _of_ablation(agent: str, varied: str, inside: tuple[str, ...]) -> dict[str, Any]:
    """Its Stage 2 alone, from the Stage 1 that the recipe of the unchanged agent, or the one it names, has trained."""
    _, content = recipe_content(varied, inside)
    if (named := content.get("ablations")) is not None:
        varied, content = recipe_content(str(named), inside)
    first, *rest = content["stages"][2]
    begins = {**first, "from": {"recipe": varied, "stage": 1}}
    return {**content, "agent": agent, "stages": {1: [], 2: [begins, *rest]}}


def _folder() -> Any:
    return files("umc") / "config" / "recipes"


def _file(name: str) -> dict[str, Any]:
    return _yaml((_folder() / f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml")


def _yaml(text: str, where: str) -> dict[str, Any]:
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UmcError(f"{where} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise UmcError(f"{where} is no recipe; it has to be a mapping; docs/recipes.md says of what")
    return content


def merged_tokens(old: list[str], new: list[str]) -> list[str]:
    """Override tokens of which the later win over the earlier of the same key."""
    keys = {token.split("=", 1)[0] for token in new}
    return [token for token in old if token.split("=", 1)[0] not in keys] + new
