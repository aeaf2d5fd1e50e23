# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Keeps the console for what a user wants to read; warnings and errors always stay."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator

NO_GPU = b"Could not find or load the NVIDIA CUDA driver"
"""Warp's remark on every machine without a GPU, written by native code past ``sys.stderr``."""

NEWS_TO_NOBODY = (
    (FutureWarning, "Newton shape color replacement is enabled"),
    (UserWarning, "In Newton, body com pose always has unit quaternion"),
)
"""Warnings of Isaac Lab 3.0.0 about its own code, printed at every start, that no user can act on."""


def drop_known_warnings() -> None:
    """Silence :data:`NEWS_TO_NOBODY`; every other warning stays."""
    for category, message in NEWS_TO_NOBODY:
        warnings.filterwarnings("ignore", message=message, category=category)


@contextlib.contextmanager
def quiet(log: io.StringIO | None = None) -> Iterator[None]:
    """Take Isaac Lab's prints off the console; it has no option for them. Standard error stays.

    Args:
        log: Keeps them; else they are dropped.
    """
    with contextlib.redirect_stdout(io.StringIO() if log is None else log):
        yield


@contextlib.contextmanager
def without_gpu_remark() -> Iterator[None]:
    """Drop Warp's remark that there is no GPU from standard error; everything else passes through afterwards."""
    sys.stderr.flush()
    console = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(console, 2)
            held.seek(0)
            lines = [line for line in held.read().splitlines(keepends=True) if NO_GPU not in line]
            os.write(console, b"".join(lines))
            os.close(console)
