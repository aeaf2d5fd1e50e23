# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Splits an evaluation into batches, keeps each finished one, and goes on where an interrupted run stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from umc.evaluation.protocol import Protocol
from umc.evaluation.study import EnvAssignment, EpisodeBatch, plain_run, run_of
from umc.utils.io import read_torch, write_torch

PARTIAL = "partial"
"""Folder, inside that of the report, of what finished batches brought."""

DECIDING = (
    *("utils/patches.py", "faults", "mdp", "models", "robots", "tasks", "terrains", "rl/models.py", "rl/policy.py"),
    *(f"evaluation/{name}.py" for name in ("batches", "conditions", "study", "metrics", "rollout", "starts")),
)
"""Files and folders of this package without which a batch would have another result; reports are not among them."""

KEY_LENGTH = 24
"""Hexadecimal digits of a part's file name."""


@dataclass(frozen=True)
class Batches:
    """The robots of a protocol in the order (member, cell), cut into batches of one size.

    Robot ``i`` is member ``i // cells`` of cell ``i % cells``. The last batch may hold robots beyond the wanted ones,
    since all batches share one simulation; they are simulated and left out.
    """

    protocol: Protocol
    episodes: int
    """Robots of each cell."""
    num_envs: int
    """Envs of the simulation."""
    count: int
    """Number of batches."""

    @classmethod
    def plan(cls, protocol: Protocol, num_envs: int, episodes: int | None = None) -> Batches:
        """Choose batches of nearly the wanted size."""
        if episodes is None:
            protocol.deal(num_envs)  # refuses too few
            episodes = num_envs // len(protocol.cells)
        total = episodes * len(protocol.cells)
        count = -(-total // num_envs)
        return cls(protocol, episodes, -(-total // count), count)

    @property
    def robots(self) -> int:
        """Robots of all batches together."""
        return self.episodes * len(self.protocol.cells)

    def assignment(self, batch: int) -> EnvAssignment:
        """Who takes part in a batch."""
        number = batch * self.num_envs + torch.arange(self.num_envs)
        cells = len(self.protocol.cells)
        cell = number % cells
        onset = torch.tensor([setting.onset for setting, _ in self.protocol.cells])
        return EnvAssignment(cell, number // cells, onset[cell])

    def wanted(self, batch: int, run: EpisodeBatch) -> EpisodeBatch:
        """Leave out robots beyond the wanted ones."""
        count = min(self.num_envs, self.robots - batch * self.num_envs)
        return run_of({name: value[:count] for name, value in plain_run(run).items()})


class Parts:
    """Finished batches on disk, each under a name made of everything that decides its result.

    Args:
        folder: Where they lie.
        conditions: What decides the results of all of them, in plain values: protocol, task, engine, versions.
    """

    def __init__(self, folder: Path, conditions: Mapping[str, Any]) -> None:
        self.folder = folder
        self.conditions = dict(conditions)

    def path(self, policy: str, batches: Batches, batch: int) -> Path:
        """File of one batch of one policy."""
        decides = {
            **self.conditions,
            "policy": policy,
            "first": batch * batches.num_envs,
            "num_envs": batches.num_envs,
            "robots": min(batches.num_envs, batches.robots - batch * batches.num_envs),
        }
        return self.folder / f"{fingerprint(decides)[:KEY_LENGTH]}.pt"

    def load(self, path: Path) -> tuple[EpisodeBatch, tuple[str, ...]]:
        """Read a finished batch."""
        content = read_torch(path)
        return run_of(content["run"]), tuple(content["feet"])

    def save(self, path: Path, run: EpisodeBatch, feet: Sequence[str]) -> None:
        """Keep a finished batch."""
        write_torch(path, {"run": plain_run(run), "feet": list(feet)})


def fingerprint(content: Any) -> str:
    """SHA-256 of plain values."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def code_fingerprint(folder: Path) -> str:
    """SHA-256 of the source and data that decide results: results of other code are other results."""
    digest = hashlib.sha256()
    for name in DECIDING:
        path = folder / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in (".py", ".usda", ".yaml", ".json"):
                digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
