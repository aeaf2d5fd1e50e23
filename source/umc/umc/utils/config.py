# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""YAML files of ``config``, by name, and those of users, by path; and what a command line changes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from umc.utils.errors import UmcError


def read_config_file(kind: str, name: str) -> Any:
    """Reads a YAML file.

    Args:
        kind: What the file holds, ``protocol`` or ``sweep``; its folder in ``config`` is the plural.
        name: Name of a file in that folder, or path of a YAML file.

    Returns:
        Its content.

    Raises:
        UmcError: If there is no such file or it is no YAML.
    """
    folder = files("umc") / "config" / f"{kind}s"
    packaged = folder / f"{name}.yaml"
    if packaged.is_file():
        text = packaged.read_text(encoding="utf-8")
    elif Path(name).is_file():
        text = Path(name).read_text(encoding="utf-8")
    else:
        known = sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))
        raise UmcError(f"no {kind} '{name}'; give the path of a YAML file, or one of {', '.join(known)}")
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UmcError(f"{name} is no YAML: {' '.join(str(error).split())}") from error


def read_overrides(tokens: Sequence[str], section: str) -> dict[str, Any]:
    """Reads the overrides of one section.

    Args:
        tokens: Such as ``protocol.steps=300``; those of other sections are passed over.
        section: ``protocol`` or ``sweep``.

    Returns:
        Values by dotted path, without the section's name.

    Raises:
        UmcError: If a value cannot be read.
    """
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
    """Puts values into a tree of mappings.

    Args:
        tree: Where they go; left as it is.
        overrides: Values by dotted path.

    Returns:
        A new tree.

    Raises:
        UmcError: If a path leads through something that is no mapping.
    """
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
