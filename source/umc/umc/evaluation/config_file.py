# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""YAML files of ``config``, by name, and those of users, by path."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from umc.errors import UmcError


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
