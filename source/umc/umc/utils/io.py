# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Files: written atomically, complete or not there; tensors read within limits; digests."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from umc.utils.errors import UmcError, shown
from umc.utils.text import MAX_DEPTH

MAX_TORCH_BYTES = 2 * 2**30
"""Largest file of tensors that is read [byte]; the largest agent's checkpoint has 40 MiB."""

MAX_PICKLE_BYTES = 64 * 2**20
"""Largest part of it that is not tensors [byte]."""

MAX_VALUES = 1_000_000
"""Most values in it."""


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

    content = io.BytesIO()
    torch.save(dict(data), content)  # not to the file: for a full disk torch raises errors of many kinds and lines
    with atomic_write(path) as file:
        file.write(content.getbuffer())


def read_torch(path: Path, fix: str = "delete it and start again", kind: str = "result", device: str = "cpu") -> Any:
    """Read what :func:`write_torch` wrote, without running code from the file; any failure is a UmcError with ``fix``.

    The file's size, the CRC of each member of the zip and the tree are checked: dicts, lists and tuples of plain values
    and of dense tensors, not deeper than :data:`MAX_DEPTH`.
    """
    import torch

    name = shown(str(path))
    if not os.path.isfile(path):
        raise UmcError(f"{name} is missing; {fix}")
    try:
        with path.open("rb") as file:
            _check_archive(file)
            file.seek(0)
            content = torch.load(file, map_location=device, weights_only=True)
        for place, value in leaves(content):
            _check_leaf(place, value)
    except Exception as error:
        reason = str(error) if isinstance(error, _Damaged) else type(error).__name__
        raise UmcError(f"{name} is damaged or no {kind} ({shown(reason)}); {fix}") from error
    return content


class _Damaged(ValueError):
    """What is wrong with a file."""


def leaves(content: Any, start: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what is in a tree of dicts, lists and tuples, with its place, such as ``actor_state_dict.std``."""
    stack, count = [(content, start, 0)], 0
    while stack:
        value, place, depth = stack.pop()
        count += 1
        if depth > MAX_DEPTH or count > MAX_VALUES:  # or it is inside itself
            raise _Damaged(f"it is nested more than {MAX_DEPTH} deep, or holds more than {MAX_VALUES} values")
        if isinstance(value, dict):
            if not all(isinstance(key, str | int) for key in value):
                raise _Damaged(f"{place or 'it'} has a key that is no text")
            items: Any = value.items()
        elif isinstance(value, list | tuple):
            items = enumerate(value)
        else:
            yield place, value
            continue
        stack += [(entry, f"{place}.{key}" if place else str(key), depth + 1) for key, entry in items]


def _check_archive(file: IO[bytes]) -> None:
    """Refuse a zip whose members are compressed, larger than the file, or have another CRC than they say."""
    size = file.seek(0, os.SEEK_END)
    if size > MAX_TORCH_BYTES:
        raise _Damaged(f"it is larger than {MAX_TORCH_BYTES // 2**30} GiB")
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if any(one.compress_type != zipfile.ZIP_STORED for one in members):
            raise _Damaged("its members are compressed, which torch does not do")
        if sum(one.file_size for one in members) > size:
            raise _Damaged("its members are larger than the file")
        if any(one.file_size > MAX_PICKLE_BYTES for one in members if one.filename.endswith(".pkl")):
            raise _Damaged(f"its values take more than {MAX_PICKLE_BYTES // 2**20} MiB")
        if (wrong := archive.testzip()) is not None:
            raise _Damaged(f"the CRC of {wrong} is wrong")


def _check_leaf(place: str, value: Any) -> None:
    """Refuse anything but plain values and dense tensors with their own memory."""
    import torch

    if isinstance(value, torch.Tensor):
        dense = value.layout == torch.strided and not (value.is_nested or value.is_meta or value.is_quantized)
        if not dense or value.numel() * value.element_size() > value.untyped_storage().nbytes():
            raise _Damaged(f"{place} is no dense tensor")
    elif not (value is None or isinstance(value, str | int | float)):
        raise _Damaged(f"{place} is a {type(value).__name__}")


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files that a killed process left in ``folder``."""
    for leftover in folder.glob(".*.tmp*"):
        leftover.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(content: Any) -> str:
    """Return the SHA-256 of plain values, which does not depend on the order of keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def without_nan(value: Any) -> Any:
    """Return plain values with None for NaN, which JSON lacks."""
    if isinstance(value, Mapping):
        return {key: without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
