# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How much memory this process may still take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

MEMINFO = Path("/proc/meminfo")

CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current"), Path("/sys/fs/cgroup/memory.stat")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.stat"),
    ),
)
"""Files of a container's limit [byte], of what it uses [byte] and of its parts, in versions 2 and 1 of cgroups."""


def available_bytes(meminfo: Path = MEMINFO, cgroups: Sequence[tuple[Path, Path, Path]] = CGROUPS) -> int | None:
    """Return the memory that is left to this process [byte], of the machine or of its container; None if unknown."""
    found = []
    if meminfo.is_file():
        fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        if "MemAvailable" in fields:
            found.append(int(fields["MemAvailable"].split()[0]) * 1024)
    for limit, usage, parts in cgroups:
        if limit.is_file() and usage.is_file() and (text := limit.read_text().strip()).isdecimal():
            found.append(max(int(text) - int(usage.read_text()) + _cached(parts), 0))
    return min(found, default=None)


def _cached(parts: Path) -> int:
    """Return what a container's page cache would give back [byte]."""
    if not parts.is_file():
        return 0
    fields = dict(line.split() for line in parts.read_text().splitlines())
    return int(fields.get("total_inactive_file", fields.get("inactive_file", 0)))
