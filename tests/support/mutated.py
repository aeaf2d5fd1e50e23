# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Bad files for every reader: a valid one, changed in its structure and in its bytes; and what a reader may answer."""

from __future__ import annotations

import copy
import json
import math
import signal
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st
from umc.utils.errors import UmcError

LONGEST_S = 60
"""Time after which a reader is taken to hang [s], far beyond what the slowest one takes on a busy machine."""

DEEP: Any = "end"
for _ in range(100):
    DEEP = [DEEP]

ODD = [
    *(None, True, False, 0, 1, -1, 2, 7, 1000, 2**31, 2**53, 2**63, 10**20, -(10**20)),
    *(0.0, -0.0, 0.5, 1.5, -5.0, 1e-320, 1e30, 1e308, math.nan, math.inf, -math.inf),
    *("", "x", "no", "1", "nan", ".inf", "../../evil", "/etc/passwd", "a/b", ".", "a\0b", "a\nb", "\ud800", "é" * 300),
    *("[" * 200, "*", "(", "$HOME", "${x}", "<script>", "x" * 5000, "a1", "pretrained", "dead+locked", "rom"),
    *([], {}, [[]], [None], [1, "a"], {"a": 1}, {"": {}}, {"x": [1]}, list(range(300)), DEEP),
]
"""Values that a reader should not meet."""

OPERATIONS = ("replace", "drop", "add", "copy", "nest", "swap", "scale")


def paths_in(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value of a tree of mappings and lists; the whole one's is empty."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        if len(path) < 8:
            yield from paths_in(value, (*path, key))


def _at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


@st.composite
def mutated(draw: st.DrawFn, valid: Any, most: int = 3) -> Any:
    """Draw a tree that differs from a valid one in one to ``most`` places."""
    tree = copy.deepcopy(valid)
    for _ in range(draw(st.integers(1, most))):
        paths = list(paths_in(tree))
        path, operation = draw(st.sampled_from(paths)), draw(st.sampled_from(OPERATIONS))
        odd = copy.deepcopy(draw(st.sampled_from(ODD)))
        if not path:
            tree = odd if operation == "replace" else tree
            continue
        here, key = _at(tree, path[:-1]), path[-1]
        if operation == "drop":
            del here[key]
        elif operation == "add":
            here.insert(key, odd) if isinstance(here, list) else here.update({draw(st.text(max_size=8)): odd})
        elif operation == "nest":
            here[key] = {"x": here[key]} if isinstance(here[key], list) else [here[key]]
        elif operation in ("copy", "swap"):
            other = draw(st.sampled_from(paths))
            here[key] = copy.deepcopy(_at(tree, other))
        elif operation == "scale" and isinstance(here[key], int | float):
            here[key] = here[key] * draw(st.sampled_from([-1, 0, 0.5, 1000, 1e20]))
        else:
            here[key] = odd
    return tree


def as_json(tree: Any) -> bytes:
    """Write a tree as JSON, which is YAML, too; NaN and infinity as Python has them."""
    return json.dumps(tree).encode()


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Draw bytes that differ from ``content`` in one place, or not at all."""
    first = draw(st.integers(0, max(len(content) - 1, 0)))
    last = min(first + draw(st.integers(1, 40)), len(content))
    part = content[first:last]
    changed = draw(
        st.sampled_from(
            [
                b"",
                part * 2,
                part[::-1],
                bytes([part[0] ^ (1 << draw(st.integers(0, 7)))]) + part[1:] if part else b"",
                b"[" * 200,
                b"&a [*a]",
                b"\xff\xfe",
                b"\x00",
                b'"\\ud800"',
                b"!!python/object/apply:os.getcwd []",
            ]
        )
    )
    rest = b"" if draw(st.integers(0, 9)) == 0 else content[last:]  # cut off
    return content[:first] + changed + rest


def bad_files(valid: Any, text: bytes | None = None) -> st.SearchStrategy[bytes]:
    """Files made of a valid tree, and of a valid ``text`` (default: the tree's) by changes of bytes."""
    return st.one_of(mutated(valid).map(as_json), damaged(as_json(valid) if text is None else text))


def read_or_refuse(read: Callable[[], Any]) -> Any:
    """Return what a reader returns, or None for a UmcError of one line; anything else, and a hang, fails the test."""

    def hangs(*_: Any) -> None:
        raise AssertionError(f"the reader takes more than {LONGEST_S} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(LONGEST_S)
    try:
        return read()
    except UmcError as error:
        line = str(error)
        assert len(line.splitlines()) == 1, line
        assert len(line.encode()) < 4000, line
        return None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def all_finite(value: Any) -> bool:
    """Return whether all numbers in plain values are finite."""
    if isinstance(value, dict):
        return all(map(all_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(all_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
