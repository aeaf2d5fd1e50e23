# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The one exception that a user's mistake raises, and values as its message shows them."""

from __future__ import annotations

import reprlib
from typing import Any


class UmcError(ValueError):
    """A mistake in the user's input; its message is one line that names the fix."""


_REPR = reprlib.Repr(maxlevel=2, maxdict=3, maxlist=4, maxtuple=4, maxstring=60, maxother=60, maxlong=30)


def shown(value: Any) -> str:
    """Return a value in one short line; text without quotes."""
    text = value if isinstance(value, str) else _REPR.repr(value)
    text = "".join(char if char.isprintable() else " " for char in text[:1000])
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:197]}..."
