# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Ratios that benchmarks measure: how they are saved, shown and compared."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from umc.utils.config import FileModel, validated
from umc.utils.errors import UmcError
from umc.utils.io import write_json
from umc.utils.outputs import require_writable
from umc.utils.text import read_json

SLOWER = 1.1
"""How much worse than the saved one a ratio has to be to count as slower [-]; it has to leave its spread, too."""


def add_json_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag of :func:`save`."""
    parser.add_argument("--json", type=writable_file, help="file for the ratios of all rounds")


def writable_file(text: str) -> Path:
    """Return a path that a file can be written to; UmcError before anything is measured if it cannot."""
    path = Path(text)
    if path.is_dir():
        raise UmcError(f"--json {path} is a folder; give a file")
    require_writable(path.parent, "--json")
    return path


def save(path: Path | None, ratios: Mapping[str, Sequence[float]]) -> None:
    """Write the ratios of all rounds by the name of their row; without a path nothing."""
    if path is not None:
        write_json(path, {name: list(found) for name, found in ratios.items()}, indent=1)


def spread(ratios: Sequence[float], digits: int = 2) -> str:
    """Return median, least and largest of some ratios."""
    figures = (statistics.median(ratios), min(ratios), max(ratios))
    return "{} ({} to {})".format(*(f"{one:.{digits}f}" for one in figures))


class Row(FileModel):
    """One ratio."""

    ratio: str
    """What is divided by what."""
    case: str
    better: Literal["lower", "higher"]
    values: Annotated[list[Annotated[float, Field(gt=0.0)]], Field(min_length=1)]
    """Of all rounds [-]."""


class Table(FileModel):
    """Ratios of one run, and where they were measured."""

    commit: str | None
    date: str
    command: str
    cpu: str
    cores: int
    threads: int
    """Of torch, in every benchmark."""
    torch: str
    rows: list[Row]

    def markdown(self) -> str:
        """Return the table with its head."""
        lines = [
            f"Commit `{self.commit}`, {self.date}, `{self.command}`, on {self.cpu}: {self.cores} cores, "
            f"{self.threads} thread, torch {self.torch}.",
            "",
            "| ratio | case | better | median (min to max) |",
            "|---|---|---|---|",
            *(f"| {row.ratio} | {row.case} | {row.better} | {spread(row.values)} |" for row in self.rows),
        ]
        return "\n".join(lines)


def read_table(path: Path) -> Table:
    """Read the file of a run; UmcError if it is not one."""
    fix = "write it with umc benchmark-speed --json FILE"
    return validated(Table, read_json(path, fix), f"{path} is not a table of ratios ({fix})")


def slower(saved: Iterable[Row], rows: Iterable[Row]) -> list[str]:
    """Describe the rows that are :data:`SLOWER` times worse than the saved ones or more, outside of their spread."""
    before = {(row.ratio, row.case): row.values for row in saved}
    found = []
    for row in rows:
        if (old := before.get((row.ratio, row.case))) is None:
            continue
        new, usual = statistics.median(row.values), statistics.median(old)
        is_outside = new > max(old) if row.better == "lower" else new < min(old)
        loss = new / usual if row.better == "lower" else usual / new
        if is_outside and loss >= SLOWER:
            found.append(f"{row.ratio}, {row.case}: {new:.2f} instead of {spread(old)}, {loss - 1.0:.0%} slower")
    return found
