# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Names of code in files: a checkpoint or a run folder may name functions and classes of installed task packages only.

Isaac Lab and rsl_rl import ``module:name`` and call it, and evaluate a ``lambda``; a file from a stranger could name
``os:abort``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points

from umc.utils.errors import UmcError, shown
from umc.utils.naming import TASK_GROUP

_COLON = re.compile(r"([^\s:=,{}\[\]()'\"]*\w):([^\W\d]\w*)")
"""``module:name``; a number after the colon is an entry of a dict."""

_CLASS = re.compile(r"class_(?:name|type)['\"]?\s*[:=]\s*['\"]?([\w.]+)\.\w+")
"""``class_name=module.name``, which rsl_rl imports, too."""

_LAMBDA = re.compile(r"\blambda\b[^:]*:")

_NO_NAMES = {"null", "none", "true", "false", "nan", "inf"}
"""Values that look like names."""


@cache
def trusted_packages() -> frozenset[str]:
    """Return the packages whose code files may name: UMC's, Isaac Lab's, rsl_rl, and installed task packages."""
    return frozenset({"umc", "rsl_rl", *(entry.module.split(".")[0] for entry in entry_points(group=TASK_GROUP))})


def require_trusted_code(texts: Iterable[str], where: str) -> None:
    """Raise UmcError if a text names code of another package, a lambda, or a value that is put together at run time."""
    for text in texts:
        modules = [match[1] for match in _COLON.finditer(text) if match[2].lower() not in _NO_NAMES]
        modules += [match[1] for match in _CLASS.finditer(text)]
        foreign = [name for name in modules if not _is_trusted(name.split(".")[0])]
        if foreign or _LAMBDA.search(text) or "${" in text:
            raise UmcError(
                f"{shown(where)} names code outside UMC, Isaac Lab and installed task packages ({shown(text)}); "
                "if you trust it, install its package with an entry point isaaclab.tasks"
            )


def _is_trusted(package: str) -> bool:
    return package in trusted_packages() or package.startswith("isaaclab")
