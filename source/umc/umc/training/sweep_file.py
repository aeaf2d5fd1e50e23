# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The file of a sweep (``config/sweeps``), which training and evaluation read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, PositiveInt, field_validator, model_validator

from umc.utils.config import (
    FileModel,
    FolderName,
    Seed,
    checked_override,
    merged,
    read_config_file,
    validated,
)

MOST_COMBINATIONS = 10_000
"""Most trainings or settings of a sweep."""

EACH = "each"
"""Value of ``grid.joints`` of a sweep: every joint of the robot, one at a time."""


class SweepGrid(FileModel):
    """Lists of what varies between the settings of a protocol; every combination is a setting."""

    seed: list[Seed] | None = Field(None, min_length=1)
    onset: list[PositiveInt] | None = Field(None, min_length=1)
    severity: list[dict[str, Any]] | None = Field(None, min_length=1)
    """Mappings such as ``{rom: 0.3}``, by kind of fault."""
    joints: list[str | list[str]] | str | None = None
    """Joints, or lists of joints that fail together; ``each``: every joint of the robot, one at a time."""

    @field_validator("joints")
    @classmethod
    def _joints(cls, joints: Any) -> Any:
        if joints in ([], "") or (isinstance(joints, str) and joints != EACH):
            raise ValueError(f"give '{EACH}', or a list of joints or of lists of joints")
        return joints

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        axes = (self.seed, self.onset, self.severity, self.joints if isinstance(self.joints, list) else None)
        if math.prod(len(axis) for axis in axes if axis) > MOST_COMBINATIONS:
            raise ValueError(f"it has more than {MOST_COMBINATIONS} combinations; shorten a list")
        return self


class SweepFile(FileModel):
    """A sweep: which policies it trains or compares, and the faults it compares them under.

    Training reads ``seeds`` and ``overrides``, evaluation ``protocol``, ``scenarios``, ``episodes`` and ``grid``.
    """

    name: FolderName
    agents: list[str] = []
    """Agents; ``NETWORK`` in a name stands for :attr:`network`. Empty: the command line's."""
    network: str = "transformer"
    seeds: list[Seed] = []
    """Seeds to train; empty: the default one."""
    overrides: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    """Values to train by the key of an override; all are combined."""
    protocol: str | None = None
    scenarios: list[int | str] | None = None
    episodes: PositiveInt | None = None
    grid: SweepGrid | None = None
    """Settings instead of the protocol's."""

    @field_validator("seeds")
    @classmethod
    def _once(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) != len(seeds):
            raise ValueError("it holds a seed twice; name each once")
        return seeds

    @model_validator(mode="after")
    def _tokens(self) -> Self:
        for key, values in self.overrides.items():
            for value in values:
                checked_override(f"{key}={value}")
        count = math.prod(len(values) for values in self.overrides.values()) * max(len(self.agents), 1)
        if count * max(len(self.seeds), 1) > MOST_COMBINATIONS:
            raise ValueError(f"it has more than {MOST_COMBINATIONS} trainings; shorten a list")
        return self

    @property
    def agent_names(self) -> list[str]:
        """Agents with ``NETWORK`` replaced."""
        return [agent.replace("NETWORK", self.network) for agent in self.agents]


VARIED = "overrides."
"""Start of the dotted path of a sweep's override, e.g. ``overrides.agent.algorithm.gamma``: its key has dots, too."""


def read_sweep_file(name: str, changes: Mapping[str, Any]) -> SweepFile:
    """Read a sweep by name or path, with the changes of :func:`read_overrides`; raise UmcError if it is wrong."""
    content = read_config_file("sweep", name)
    varied = {path.removeprefix(VARIED): value for path, value in changes.items() if path.startswith(VARIED)}
    content = merged(content, {path: value for path, value in changes.items() if not path.startswith(VARIED)})
    if varied:
        content["overrides"] = {**(content.get("overrides") or {}), **varied}
    return validated(SweepFile, content, f"sweep {name}")
