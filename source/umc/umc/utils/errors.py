# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The one exception that a user's mistake raises, and values as its message shows them."""

from __future__ import annotations

import reprlib
from typing import Any

LONGEST = 2000
"""Most characters of a message; of a longer one, with a long value of the user in it, the middle is left out."""


class UmcError(ValueError):
    """A mistake in the user's input; its message is one line that names the fix."""

    def __str__(self) -> str:
        """Return the message in one printable line, whatever values it shows."""
        text = super().__str__()
        if len(text) > LONGEST:
            text = f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"
        # such as a line break in a name, or a byte of a path that is not UTF-8
        return text if text.isprintable() else " ".join(_printable(text).split())


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxdict, _REPR.maxlist, _REPR.maxtuple = 2, 3, 4, 4
_REPR.maxstring, _REPR.maxother, _REPR.maxlong = 60, 60, 30


def shown(value: Any) -> str:
    """Return a value in one short line; text without quotes."""
    text = value if isinstance(value, str) else _REPR.repr(value)
    text = " ".join(_printable(text[:1000]).split())
    return text if len(text) <= 200 else f"{text[:197]}..."
