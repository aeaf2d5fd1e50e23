# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Atomic files: complete or not there, whenever the process dies; and their digests."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from umc.utils.errors import UmcError


@contextlib.contextmanager
def atomic_path(path: Path, sync: bool = True) -> Iterator[Path]:
    """Yield a path to write to that becomes ``path`` if the block succeeds; with ``sync`` it survives a power cut."""
    part = path.with_name(f".{path.name}.{os.getpid()}.tmp{path.suffix}")  # writers tell the format by the suffix
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            if sync:
                _sync(part)
            part.replace(path)
            if sync:
                _sync(path.parent)  # the new name itself must reach the disk, too
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UmcError(
            f"cannot write {path}: {error.strerror or error}; choose another folder or free some space"
        ) from error


@contextlib.contextmanager
def atomic_write(path: Path, sync: bool = True) -> Iterator[IO[bytes]]:
    """Yield a binary file that becomes ``path`` only if the block succeeds; see :func:`atomic_path`."""
    with atomic_path(path, sync) as part, part.open("wb") as file:
        yield file


def write_json(path: Path, data: Mapping[str, Any], sync: bool = True, indent: int = 2, allow_nan: bool = True) -> None:
    """Write readable JSON atomically; without ``allow_nan`` NaN and infinity, which JSON lacks, raise ValueError."""
    text = json.dumps(data, indent=indent, allow_nan=allow_nan)
    with atomic_write(path, sync) as file:
        file.write(f"{text}\n".encode())


def write_torch(path: Path, data: Mapping[str, Any]) -> None:
    """Write tensors and plain values atomically with ``torch.save``."""
    import torch

    with atomic_write(path) as file:
        try:
            torch.save(dict(data), file)
        except RuntimeError as error:  # what torch's own writer raises for a full disk
            raise OSError(str(error).splitlines()[0]) from error


def read_torch(path: Path) -> dict[str, Any]:
    """Read what :func:`write_torch` wrote, without running code from the file; raise UmcError if it is damaged."""
    import torch

    if not zipfile.is_zipfile(path):
        raise UmcError(f"{path} is missing or damaged; delete it and start again")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, pickle.UnpicklingError) as error:
        raise UmcError(f"{path} is damaged ({type(error).__name__}); delete it and start again") from error


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files that a killed process left in ``folder``."""
    for leftover in folder.glob(".*.tmp*"):
        leftover.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
