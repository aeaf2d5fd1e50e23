# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Results of an evaluation: every robot's outcome under every policy, and their file; reports need nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError

from umc.evaluation.metrics import Episodes, Score, score
from umc.evaluation.protocol import Protocol, ScenarioId, Setting
from umc.faults import FaultState
from umc.utils.config import first_mistake
from umc.utils.errors import UmcError
from umc.utils.io import read_torch, write_torch

STUDY = "study.pt"
"""Name of a study's file, beside the report."""

FORMAT = 1
"""Version of its layout."""


@dataclass(frozen=True)
class EnvAssignment:
    """Cell and member of the protocol that each env of a batch simulates."""

    cell: torch.Tensor
    """Cell of the protocol that every env belongs to. Shape is (num_envs,)."""
    member: torch.Tensor
    """Which robot of its cell every env is. Shape is (num_envs,)."""
    onset: torch.Tensor
    """Onset of every env [env steps]; healthy robots have one, to count from. Shape is (num_envs,)."""


def assign_envs(protocol: Protocol, num_envs: int) -> EnvAssignment:
    """Assign the cells of a protocol to envs in turn; raise UmcError if there are fewer envs than cells."""
    protocol.check_envs(num_envs)
    return assignment_of(protocol, torch.arange(num_envs))


def assignment_of(protocol: Protocol, robots: torch.Tensor) -> EnvAssignment:
    """Return cell, member and onset of robots that are numbered in the order (member, cell). Shape is (num_envs,)."""
    cell, member = robots % len(protocol.cells), robots // len(protocol.cells)
    return EnvAssignment(cell, member, torch.tensor([setting.onset for setting, _ in protocol.cells])[cell])


@dataclass(frozen=True)
class EpisodeBatch:
    """Faults and outcomes of simulated robots, one episode each; tensors live on the CPU."""

    episodes: Episodes
    cell: torch.Tensor
    """Cell of the protocol that every env belongs to. Shape is (num_envs,)."""
    member: torch.Tensor
    """Which robot of its cell every env is. Shape is (num_envs,)."""
    onset: torch.Tensor
    """Onset of every env [env steps]. Shape is (num_envs,)."""
    joints: torch.Tensor
    """Faulty joints of every env. Shape is (num_envs, num_joints)."""
    severity: Mapping[str, torch.Tensor] | None = None
    """By kind of fault: its severity, in the kind's unit, averaged over an env's faulty joints; NaN where the env has
    no such fault. None if not recorded. Shapes are (num_envs,)."""
    stance: torch.Tensor | None = None
    """Feet on the ground at onset; None if not recorded. Shape is (num_envs, num_feet)."""

    @classmethod
    def join(cls, runs: Sequence[EpisodeBatch]) -> EpisodeBatch:
        """Concatenate batches; what one of them did not record is left out."""
        found = [run.tensors() for run in runs]
        common = [name for name in found[0] if all(name in one for one in found)]
        return cls.from_tensors({name: torch.cat([one[name] for one in found]) for name in common})

    def select(self, rows: slice | torch.Tensor) -> EpisodeBatch:
        """Return some of the robots, by index or mask."""
        return EpisodeBatch.from_tensors({name: value[rows] for name, value in self.tensors().items()})

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return everything as named tensors, so that a file of them is read with ``weights_only=True``."""
        found = {f"episodes.{field.name}": getattr(self.episodes, field.name) for field in fields(Episodes)}
        found |= {name: getattr(self, name) for name in ("cell", "member", "onset", "joints")}
        found |= {f"severity.{kind}": value for kind, value in (self.severity or {}).items()}
        return found if self.stance is None else {**found, "stance": self.stance}

    @classmethod
    def from_tensors(cls, found: Mapping[str, torch.Tensor]) -> EpisodeBatch:
        """Invert :meth:`tensors`."""
        prefix = "severity."
        severity = {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}
        return cls(
            Episodes(**{field.name: found[f"episodes.{field.name}"] for field in fields(Episodes)}),
            *(found[name] for name in ("cell", "member", "onset", "joints")),
            severity=severity or None,
            stance=found.get("stance"),
        )


def severities(state: FaultState) -> dict[str, torch.Tensor]:
    """Return mean severities of an env's faulty joints by kind; NaN without such a fault. Shapes are (num_envs,)."""
    plan = state.plan
    hit = plan.kinds[:, :, :, None] & plan.joints[:, :, None, :]
    mean = torch.where(hit, plan.severity, 0.0).sum((1, 3)) / hit.sum((1, 3))  # 0 / 0 is NaN
    return {kind.name: mean[:, number].cpu() for number, kind in enumerate(state.kinds)}


@dataclass(frozen=True)
class PolicyResult:
    """One policy's robots."""

    label: str
    """Name in tables; unique in a study."""
    group: str
    """Policies of the same recipe with other training seeds share a group; intervals over seeds are made of it."""
    about: Mapping[str, Any]
    """Checkpoint, its hash and metadata, in plain values."""
    run: EpisodeBatch
    """Faults and outcomes of its robots."""


@dataclass(frozen=True)
class Study:
    """Policies under the same faults: robot ``i`` of each has the same cell, member, start and fault."""

    protocol: Protocol
    step_dt: float
    """Duration of an env step [s]."""
    joint_names: tuple[str, ...]
    """Joints, in the order of ``EpisodeBatch.joints``."""
    about: Mapping[str, Any]
    """Task, engine, device, versions, command line, in plain values."""
    policies: tuple[PolicyResult, ...]
    feet: tuple[str, ...] = ()
    """Feet, in the order of ``EpisodeBatch.stance``."""

    def scenario_rows(self, result: PolicyResult, scenario: ScenarioId) -> torch.Tensor:
        """Return which robots are in a scenario, in any setting. Shape is (num_robots,)."""
        return result.run.cell % len(self.protocol.scenarios) == self.protocol.scenarios.index(scenario)

    def setting_rows(self, result: PolicyResult, setting: Setting) -> torch.Tensor:
        """Return which robots are in a setting, in any scenario. Shape is (num_robots,)."""
        return result.run.cell // len(self.protocol.scenarios) == self.protocol.settings.index(setting)

    def score(self, result: PolicyResult, select: torch.Tensor | None = None) -> Score:
        """Return the metrics of a policy's robots, of all or of those selected. Shape of select is (num_robots,)."""
        return score(result.run.episodes, self.protocol.radii, self.step_dt, select)

    def scenario_scores(self, result: PolicyResult) -> Iterator[tuple[ScenarioId, Score]]:
        """Yield the metrics of each scenario."""
        for scenario in self.protocol.scenarios:
            yield scenario, self.score(result, self.scenario_rows(result, scenario))


def save_study(path: Path, study: Study) -> None:
    """Write a study as tensors and plain values, atomically; raise UmcError if it cannot be written."""
    content = {
        "format": FORMAT,
        "protocol": json_values(study.protocol.describe()),
        "step_dt": study.step_dt,
        "joint_names": list(study.joint_names),
        "feet": list(study.feet),
        "about": json_values(study.about),
        "policies": [
            {"label": one.label, "group": one.group, "about": json_values(one.about), "run": one.run.tensors()}
            for one in study.policies
        ],
    }
    write_torch(path, content)


def load_study(path: Path) -> Study:
    """Read a study; raise UmcError if there is no such file, or it is no study of this version."""
    if not path.is_file():
        raise UmcError(f"no study at {path}; give the --out folder of a finished evaluation")
    content = read_torch(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UmcError(f"{path} is not a study of this version of umc; run the evaluation again")
    return Study(
        protocol=protocol_of(content["protocol"]),
        step_dt=content["step_dt"],
        joint_names=tuple(content["joint_names"]),
        about=content["about"],
        policies=tuple(
            PolicyResult(one["label"], one["group"], one["about"], EpisodeBatch.from_tensors(one["run"]))
            for one in content["policies"]
        ),
        feet=tuple(content["feet"]),
    )


def protocol_of(described: Mapping[str, Any]) -> Protocol:
    """Invert :meth:`Protocol.describe`; raise UmcError if a file holds something else."""
    try:
        return TypeAdapter(Protocol).validate_python(described)
    except ValidationError as error:
        raise UmcError(f"the protocol of an evaluation is damaged: {first_mistake(error)}") from error


def json_values(values: Any) -> Any:
    """Return values as JSON has them, so that the file needs none of our types."""
    return json.loads(json.dumps(values, default=str))
