# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Files that are either whole or not there, whatever moment the process dies at."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


def temporary_name(path: Path) -> Path:
    """Name under which ``path`` is written before it takes its own name."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes its name only when it is complete and on the disk.

    A crash, ``kill -9`` or power cut inside the block leaves what stood at ``path`` before, untouched.

    Args:
        path: File to write; its folder is made where it is missing.

    Yields:
        A binary file to write to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(path)
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    # the new name itself must reach the disk too
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write ``data`` to ``path`` as readable JSON, atomically."""
    with atomic_write(path) as file:
        file.write((json.dumps(data, indent=2) + "\n").encode())


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files that a killed process left in ``folder``."""
    for leftover in folder.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
