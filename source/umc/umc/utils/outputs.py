# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Refuse, before anything slow starts, folders that cannot be written to and names that lead out of their folder."""

from __future__ import annotations

import errno
import shutil
import tempfile
from pathlib import Path

from umc.utils.errors import UmcError

LEAST_FREE_BYTES = 64e6
"""Space that a command needs to start [byte]: a few checkpoints, or a report with its figures."""

LONGEST_NAME = 100
"""Longest name that is added to the name of a folder [byte]; file systems allow 255 for the whole."""

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""Numbers of errors that any write may meet, whoever's it is: full, over quota, too large, read-only, broken."""


def disk_error(error: OSError) -> UmcError | None:
    """Return the message for a write that failed in somebody else's code; None if the error is of another kind."""
    if error.errno not in DISK_ERRORS:
        return None
    where = f" {error.filename}" if error.filename else ""
    return UmcError(f"cannot write{where}: {error.strerror}; free some space or choose another folder")


def ends_in_a_line(error: Exception) -> bool:
    """Return whether :func:`umc.utils.cli.run_main` ends a command over an error without a traceback."""
    return not isinstance(error, OSError) or isinstance(error, BrokenPipeError) or disk_error(error) is not None


def require_writable(folder: Path, flag: str) -> None:
    """Raise UmcError if a folder can neither be made nor written to; leave no trace in it.

    ``flag`` names the folder in the message, such as ``--out``.
    """
    try:
        place = folder.absolute()
        while not place.exists():
            if place.is_symlink():
                raise UmcError(f"{flag} {folder}: {place} is a link to nowhere; choose another folder")
            place = place.parent
        if not place.is_dir():
            raise UmcError(f"{flag} {folder}: {place} is a file; choose another folder")
        with tempfile.TemporaryFile(dir=place):
            free = shutil.disk_usage(place).free
    except OSError as error:
        raise UmcError(f"{flag} {folder}: cannot write there ({error.strerror}); choose another folder") from error
    if free < LEAST_FREE_BYTES:
        raise UmcError(
            f"{flag} {folder}: {free / 1e6:.0f} MB are free there, {LEAST_FREE_BYTES / 1e6:.0f} MB are needed; "
            "free some space or choose another folder"
        )


def require_folder_name(name: str, what: str) -> None:
    """Raise UmcError for a part of a folder's name that would lead elsewhere, or that a file system refuses."""
    if "/" in name or "\\" in name or name in (".", "..") or not name.isprintable():
        raise UmcError(f"{what} is {name!r}; it is part of a folder's name, so leave out '/' and control characters")
    if (size := len(name.encode(errors="surrogateescape"))) > LONGEST_NAME:
        raise UmcError(f"{what} has {size} bytes; shorten it to {LONGEST_NAME}")
