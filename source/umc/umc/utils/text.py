# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Text files and JSON, read within limits."""

from __future__ import annotations

import json
import math
import re
import stat
from pathlib import Path
from typing import Any

from umc.utils.errors import UmcError, shown

MAX_BYTES = 16 * 2**20
"""Largest text file that is read [byte]; no protocol, recipe or description comes near."""

MAX_DEPTH = 64
"""Deepest nesting of lists and mappings that is read; parsers recurse once per level."""

MAX_INTEGER = 2**64
"""Integers are smaller than this, whatever their sign."""


def read_text(path: Path, fix: str = "", limit: int = MAX_BYTES) -> str:
    """Read a regular file of UTF-8 text of at most ``limit`` bytes; any failure is a UmcError that ends in ``fix``."""
    fix = f"; {fix}" if fix else ""
    try:
        # a pipe or a device could block, or never end
        if not stat.S_ISREG(path.stat().st_mode):
            raise UmcError(f"{shown(str(path))} is not a file{fix}")
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        if isinstance(error, UmcError):
            raise
        reason = getattr(error, "strerror", None) or "no such file"
        raise UmcError(f"cannot read {shown(str(path))}: {reason}{fix}") from error
    if len(content) > limit:
        raise UmcError(f"{shown(str(path))} is larger than {limit / 2**20:.0f} MiB{fix}")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UmcError(f"{shown(str(path))} is not UTF-8 text (byte {error.start}){fix}") from error


def read_json(path: Path, fix: str = "", allow_nan: bool = False) -> Any:
    """Read a JSON file with the limits of :func:`read_text` and :func:`parse_json`."""
    return parse_json(read_text(path, fix), str(path), fix, allow_nan)


_ESCAPE = re.compile(r"\\.", re.DOTALL)
_NESTING = re.compile(r'"[^"]*"?|[\[{]|[\]}]')


def parse_json(text: str, where: str, fix: str = "", allow_nan: bool = False) -> Any:
    """Parse JSON; raise a one-line UmcError that names ``where`` and ends in ``fix``.

    Refuses nesting beyond :data:`MAX_DEPTH` before it parses; keys given twice in an object; integers beyond 64 bits;
    unpaired surrogates; and, without ``allow_nan``, numbers that are not finite.
    """
    ending = f"; {fix}" if fix else ""
    depth = 0
    for part in _NESTING.finditer(_ESCAPE.sub("", text)):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(part[0], 0)
        if depth > MAX_DEPTH:
            raise UmcError(f"{shown(where)} is nested more than {MAX_DEPTH} deep{ending}")
    constant: dict[str, Any] = {} if allow_nan else {"parse_constant": _no_constant, "parse_float": _finite}
    try:
        content = json.loads(text, object_pairs_hook=_unique, parse_int=_small, **constant)
        if "\\ud" in text.lower():
            json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise UmcError(f"{shown(where)} has an unpaired surrogate (\\ud800 to \\udfff){ending}") from error
    except ValueError as error:
        reason = f"{error.msg}, line {error.lineno}" if isinstance(error, json.JSONDecodeError) else shown(str(error))
        raise UmcError(f"{shown(where)} is not valid JSON ({reason}){ending}") from error
    return content


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(name for name in names if names.count(name) > 1)} is given twice")
    return content


def _small(text: str) -> int:
    if len(text) > 20 or not -MAX_INTEGER < (number := int(text)) < MAX_INTEGER:
        raise ValueError(f"{text[:20]} is no 64-bit integer")
    return number


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:20]} is not finite")
    return number


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not finite")
