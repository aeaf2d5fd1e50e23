# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Refuses values of a protocol that are of the wrong kind, before anything is made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from umc.faults.cfg import is_integer, is_list_of, is_number
from umc.utils.errors import UmcError

TRACK = ("width", "block_length", "border")
"""What a track is made of."""


def check_entry(where: str, entry: Mapping[str, Any]) -> None:
    """Check a robot's entry of a protocol, as a file or a command line gives it."""
    for key, value in entry.items():
        wanted, fits = _ENTRY[key]
        if not fits(value):
            raise UmcError(f"{where}: {key} must be {wanted}, not {value!r}")
    for name, column in entry["settings"].items():
        # None is flat ground
        if not is_list_of(lambda one, name=name: is_integer(one) or (name == "perlin_seed" and one is None), column):
            raise UmcError(f"{where}: settings.{name} must be a list of whole numbers, not {column!r}")


def _is_count(value: Any) -> bool:
    return is_integer(value) and value >= 1


def _is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_range(value: Any) -> bool:
    return is_list_of(_is_count, value, 2) and value[0] <= value[1]


def _is_track(value: Any) -> bool:
    if not isinstance(value, Mapping) or set(value) not in (set(), set(TRACK)):
        return False
    return all(
        _is_finite(length) and (length > 0.0 or (name == "border" and length == 0.0)) for name, length in value.items()
    )


_ENTRY: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "num_envs": ("a whole number from 1 on", _is_count),
    "steps": ("a whole number of env steps from 1 on", _is_count),
    "num_joints": ("fewest and most, a list of two whole numbers from 1 on", _is_range),
    "severity": ("a mapping by kind of fault, such as {rom: 0.3}", _is_mapping),
    "settings": ("a mapping with lists seed and onset", _is_mapping),
    "scenarios": (
        "a list of numbers and names",
        lambda value: is_list_of(lambda one: is_integer(one) or isinstance(one, str), value),
    ),
    "command": (
        "a list of three numbers, x [m/s], y [m/s] and yaw [rad/s]",
        lambda value: is_list_of(_is_finite, value, 3),
    ),
    "radii": ("a list of numbers [m]", lambda value: is_list_of(_is_finite, value)),
    "track": (f"empty, or hold {', '.join(TRACK)}, lengths above 0 [m]", _is_track),
}
"""What the value of each key has to be, in words and as a test."""

ENTRY_KEYS = frozenset(_ENTRY)
"""Keys that an entry may have."""
