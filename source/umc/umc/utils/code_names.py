# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What overrides in a checkpoint or a run folder may name: code of installed task packages only, and no files.

Isaac Lab and rsl_rl import ``module:name`` and call it, and evaluate a ``lambda``: a file from a stranger could name
``os:abort``. Robots, meshes and actuator networks are read by parsers that are not made for files from strangers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from umc.utils.errors import UmcError, shown
from umc.utils.naming import TASK_GROUP

_COLON = re.compile(r"([^\s:=,{}\[\]()'\"]*\w):([^\W\d]\w*)")
"""``module:name``; a number after the colon is an entry of a dict."""

_CLASS = re.compile(r"class_(?:name|type)['\"]?\s*[:=]\s*['\"]?([\w.]+)\.\w+")
"""``class_name=module.name``, which rsl_rl imports, too."""

_FILE_KEY = re.compile(r"(?<!prim_)(?:path|file|filename|dir|url)s?['\"]?\s*[:=]")
_FILE_VALUE = re.compile(
    r"://|[=:]\s*['\"]?[/~](?!World\b)|\.(?:usd[acz]?|urdf|xml|obj|stl|dae|mdl|pt|onnx|np[yz]|ya?ml|json)\b"
)
"""Fields for files, and values that look like one. Prims have paths, too, which begin with ``/World``."""

_LAMBDA = re.compile(r"\blambda\b[^:]*:")

_NO_NAMES = {"null", "none", "true", "false", "nan", "inf"}
"""Values that look like names."""


@cache
def trusted_packages() -> frozenset[str]:
    """Return the packages whose code files may name: UMC's, Isaac Lab's, rsl_rl, and installed task packages."""
    return frozenset({"umc", "rsl_rl", *(entry.module.split(".")[0] for entry in entry_points(group=TASK_GROUP))})


def require_trusted_code(texts: Iterable[str], where: str) -> None:
    """Raise UmcError if an override names code of another package, a lambda, or a value put together at run time."""
    for text in texts:
        if not all(_is_harmless(form) for form in _forms(text)):
            raise UmcError(
                f"{shown(where)} names code outside UMC, Isaac Lab and installed task packages ({shown(text)}); "
                "if you trust it, install its package with an entry point isaaclab.tasks"
            )


def require_no_files(overrides: Iterable[str], where: str) -> None:
    """Raise UmcError if an override names a file, which would be parsed."""
    for text in overrides:
        if any(_FILE_KEY.search(form) or _FILE_VALUE.search(form) for form in _forms(text)):
            raise UmcError(
                f"{shown(where)} names a file to be read ({shown(text)}); if you trust it, add this override to the "
                "command line"
            )


def _is_harmless(text: str) -> bool:
    modules = [match[1] for match in _COLON.finditer(text) if match[2].lower() not in _NO_NAMES]
    modules += [match[1] for match in _CLASS.finditer(text)]
    return all(_is_trusted(name.split(".")[0]) for name in modules) and not (_LAMBDA.search(text) or "${" in text)


def _forms(text: str) -> Iterator[str]:
    """Yield an override as it is written, and every text in its value as Isaac Lab reads it: without escapes."""
    yield text
    key, _, value = text.partition("=")
    if not key.startswith(("env.", "agent.")) or key.endswith("+"):  # Hydra reads it, which knows other escapes
        yield from (["${"] if any(sign in value for sign in "\\'\"") else [])
        return
    try:
        yield from _texts(key, ast.literal_eval(value))
    except (ValueError, SyntaxError):
        return  # a text as it is written
    except (TypeError, MemoryError, RecursionError):  # no value of a cfg
        yield "${"


def _texts(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield f"{key}={value}"
    elif isinstance(value, Mapping):
        for name, entry in value.items():
            yield from _texts(key, name)
            yield from _texts(name if isinstance(name, str) else key, entry)
    elif isinstance(value, list | tuple | set):
        for entry in value:
            yield from _texts(key, entry)


def _is_trusted(package: str) -> bool:
    return package in trusted_packages() or package.startswith("isaaclab")
