# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How many threads torch uses on a CPU."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from umc.utils.config import FileModel, validated
from umc.utils.io import write_json
from umc.utils.text import read_json

SMALL, LARGE = "small", "large"
"""Networks: MLPs and small transformers; all others."""

MOST_THREADS = 8
"""Most threads without ``umc tune``: more cores were not measured. Two of two are 1.1 times faster than one."""

CGROUP = Path("/sys/fs/cgroup")
"""Where a container finds its limits."""

QUOTAS = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))
"""Files of control groups version 2 and 1: microseconds of processor time in a period, and the period."""


class _Tuned(FileModel):
    """Content of the file of ``umc tune``: the fastest number of threads by size of the network."""

    small: int | None = Field(None, ge=1, le=4096)
    large: int | None = Field(None, ge=1, le=4096)


class Threads(NamedTuple):
    """Threads of torch, and why so many."""

    count: int
    reason: str


def cores(cgroup: Path = CGROUP) -> int:
    """Return the processors that this process may use: those of its affinity, within its container's limit."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for names in QUOTAS:
        words = [word for name in names if (cgroup / name).is_file() for word in (cgroup / name).read_text().split()]
        # without a limit the time is "max" or -1
        if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal() and int(words[1]) > 0:
            count = min(count, max(math.ceil(int(words[0]) / int(words[1])), 1))
    return count


def torch_threads(size: str) -> Threads:
    """Choose the threads of torch for a small or large network on a CPU."""
    there = cores()
    if given := os.environ.get("OMP_NUM_THREADS"):
        return Threads(int(given) if given.isdecimal() and int(given) else there, "OMP_NUM_THREADS")
    if (tuned := read_tuned().get(size)) is not None:
        return Threads(min(tuned, there), "umc tune")
    return Threads(min(there, MOST_THREADS), f"{there} cores")


def tuned_file() -> Path:
    """Return the file in which ``umc tune`` keeps what it measured on this machine."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "umc" / f"threads_{platform.node() or 'here'}.json"


def read_tuned() -> dict[str, int]:
    """Return the fastest number of threads by size of the network; empty if ``umc tune`` did not run here."""
    path, fix = tuned_file(), "delete it"
    if not path.is_file():
        return {}
    return validated(_Tuned, read_json(path, fix), f"{path} is damaged ({fix})").model_dump(exclude_none=True)


def write_tuned(tuned: Mapping[str, int]) -> Path:
    """Keep the fastest number of threads by size of the network; return the file."""
    path = tuned_file()
    write_json(path, {**read_tuned(), **tuned})
    return path
