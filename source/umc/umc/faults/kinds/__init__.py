# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of faults, one file each; a new file here, or a registered class of your own, is a new kind."""

from __future__ import annotations

import importlib
import pkgutil

from umc.faults.kinds.base import (
    ACTION,
    POSITION,
    VELOCITY,
    CommandKind,
    Delivery,
    FaultKind,
    JointKind,
    Onset,
    Reading,
    SensorKind,
)
from umc.utils.errors import UmcError

__all__ = [
    "ACTION",
    "KINDS",
    "POSITION",
    "VELOCITY",
    "CommandKind",
    "Delivery",
    "FaultKind",
    "JointKind",
    "Onset",
    "Reading",
    "SensorKind",
    "find_kind",
    "register_kind",
]

KINDS: dict[str, FaultKind] = {}
"""All kinds by name."""


def register_kind[Kind: FaultKind](kind: type[Kind]) -> type[Kind]:
    """Makes a kind known; a class decorator.

    Args:
        kind: The kind's class, which takes no arguments.

    Returns:
        The class.

    Raises:
        UmcError: If its name is taken or cannot be written into a scenario.
    """
    if not kind.name.isidentifier():
        raise UmcError(f"kind name '{kind.name}' must be letters, digits and underscores")
    known = KINDS.get(kind.name)
    if known is not None and type(known).__qualname__ != kind.__qualname__:
        raise UmcError(f"there is a kind of fault named '{kind.name}' already; choose another name")
    KINDS[kind.name] = kind()
    return kind


def find_kind(name: str) -> FaultKind:
    """Looks a kind up.

    Args:
        name: Its name.

    Returns:
        The kind.

    Raises:
        UmcError: If there is none of that name.
    """
    if name not in KINDS:
        raise UmcError(f"unknown kind of fault '{name}'; choose from {', '.join(sorted(KINDS))}")
    return KINDS[name]


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
