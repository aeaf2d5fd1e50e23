# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Results of an evaluation: every robot's outcome under every policy, and their file; reports need nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field, TypeAdapter, ValidationError, field_validator

from umc.evaluation.detections import NOT_FOUND, Detections, DetectionScore, detection_score
from umc.evaluation.metrics import NOT_RECOVERED, Episodes, Outcome, Score, score
from umc.evaluation.protocol import Protocol, ScenarioId, Setting
from umc.faults import FaultState
from umc.faults.kinds import ImuKind
from umc.utils.config import FileModel, first_mistake, validated
from umc.utils.errors import UmcError, shown
from umc.utils.io import read_torch, write_torch

STUDY = "study.pt"
"""Name of a study's file, beside the report."""

FORMAT = 1
"""Version of its layout."""

AGAIN = "run the evaluation again"

LARGEST = 2**31
"""Greatest count in a study."""

DETECTIONS = "detections."
DETECTION_TENSORS = tuple(f"{DETECTIONS}{one.name}" for one in fields(Detections))
"""Names of the tensors of :attr:`EpisodeBatch.detections`."""

_WHOLE: dict[str, tuple[int, int]] = {
    "member": (0, LARGEST),
    "onset": (0, LARGEST),
    "episodes.outcome": (0, len(Outcome) - 1),
    "episodes.steps_after_onset": (0, LARGEST),
    "episodes.recovery": (NOT_RECOVERED, LARGEST),
    **dict.fromkeys(DETECTION_TENSORS, (NOT_FOUND, LARGEST)),
}
"""Tensors of whole numbers besides ``cell``, with the smallest and the largest that a file may hold."""


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
    detections: Detections | None = None
    """What a detector in the loop reported; None without one."""

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
        if self.detections is not None:
            found |= {name: getattr(self.detections, name.removeprefix(DETECTIONS)) for name in DETECTION_TENSORS}
        return found if self.stance is None else {**found, "stance": self.stance}

    @classmethod
    def read(
        cls, found: Mapping[str, Any], joint_names: Sequence[str], feet: Sequence[str], cells: int
    ) -> EpisodeBatch:
        """Return :meth:`from_tensors` of what a file holds; raise UmcError unless it fits joints, feet and cells."""
        needed = [f"episodes.{field.name}" for field in fields(Episodes)]
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys([*needed, "cell", "member", "onset"], ())
        shapes |= {name: () for name in found if name.startswith("severity.")}
        shapes |= dict.fromkeys(DETECTION_TENSORS, ()) if any(name in found for name in DETECTION_TENSORS) else {}
        shapes |= {"joints": (len(joint_names),)} | ({"stance": (len(feet),)} if "stance" in found else {})
        if found.keys() != shapes.keys():
            missing, unknown = (
                shown(sorted(one)) for one in (shapes.keys() - found.keys(), found.keys() - shapes.keys())
            )
            raise UmcError(f"a run lacks the tensors {missing} and has the unknown tensors {unknown}")
        count = found["cell"].shape[:1] if isinstance(found["cell"], torch.Tensor) else ()
        if not count or not count[0]:
            raise UmcError("a run has no robot")
        whole = {"cell": (0, cells - 1), **_WHOLE}
        kinds = dict.fromkeys(whole, torch.int64) | dict.fromkeys(("joints", "stance"), torch.bool)
        for name, shape in shapes.items():
            value, kind = found[name], kinds.get(name, torch.float32)
            if not isinstance(value, torch.Tensor) or value.shape != (*count, *shape) or value.dtype != kind:
                raise UmcError(f"{shown(name)} is no tensor of {kind} with the shape {(*count, *shape)}")
            if name in whole:
                low, high = whole[name]
                if bool(((value < low) | (value > high)).any()):
                    raise UmcError(f"{name} has a value that is not from {low} to {high}")
        return cls.from_tensors(found)

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
            detections=Detections(**{name.removeprefix(DETECTIONS): found[name] for name in DETECTION_TENSORS})
            if all(name in found for name in DETECTION_TENSORS)
            else None,
        )


def faulty_joints(state: FaultState) -> torch.Tensor:
    """Return the joints that fail at any time of this episode, (num_envs, num_joints).

    A plan gives faults of the IMU a joint, too, which never fails.
    """
    fail = torch.tensor([not isinstance(kind, ImuKind) for kind in state.kinds], dtype=torch.bool, device=state.device)
    faults = (state.plan.kinds & fail).any(dim=2)
    return (state.plan.joints & faults[:, :, None]).any(dim=1)


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

    def detection_score(self, result: PolicyResult, scenario: ScenarioId) -> DetectionScore | None:
        """Return what a detector reported of a policy's robots in a scenario; None without one."""
        run = result.run
        if run.detections is None:
            return None
        rows = self.scenario_rows(result, scenario)
        return detection_score(run.detections, run.episodes, run.joints, self.step_dt, rows)


def drawn_faults(study: Study) -> dict[ScenarioId, dict[str, dict[Any, int]]]:
    """Return, by scenario with faults, how many robots have how many faulty joints, and how many have each joint."""
    result = study.policies[0]  # all policies encounter the same faults
    found: dict[ScenarioId, dict[str, dict[Any, int]]] = {}
    for scenario in study.protocol.scenarios:
        joints = result.run.joints[study.scenario_rows(result, scenario)]
        if joints.any():
            numbers, robots = joints.sum(dim=1).unique(return_counts=True)
            found[scenario] = {
                "robots_by_faulty_joints": dict(zip(numbers.tolist(), robots.tolist(), strict=True)),
                "robots_by_joint": dict(zip(study.joint_names, joints.sum(dim=0).tolist(), strict=True)),
            }
    return found


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
    if not os.path.isfile(path):
        raise UmcError(f"no study at {path}; give the --out folder of a finished evaluation")
    content = read_torch(path, AGAIN, "study")
    version = content.get("format") if isinstance(content, dict) else None
    if not isinstance(version, int) or version != FORMAT:
        raise UmcError(f"{path} has format {shown(version)} instead of {FORMAT}, a study of another umc; {AGAIN}")
    try:
        file = validated(_StudyFile, content, str(path))
        protocol = protocol_of(file.protocol)
        runs = [EpisodeBatch.read(one.run, file.joint_names, file.feet, len(protocol.cells)) for one in file.policies]
    except ValueError as error:
        raise UmcError(f"{path} is no valid study ({error}); {AGAIN}") from error
    policies = zip(file.policies, runs, strict=True)
    return Study(
        protocol=protocol,
        step_dt=file.step_dt,
        joint_names=tuple(file.joint_names),
        about=file.about,
        policies=tuple(PolicyResult(one.label, one.group, one.about, run) for one, run in policies),
        feet=tuple(file.feet),
    )


_Label = Annotated[str, Field(min_length=1, max_length=10_000)]  # it may hold the path of a detector


class _PolicyFile(FileModel):
    label: _Label
    group: _Label
    about: dict[str, Any]
    run: dict[str, Any]


class _StudyFile(FileModel):
    format: int
    protocol: dict[str, Any]
    step_dt: float = Field(gt=0.0, le=1.0)
    joint_names: list[_Label] = Field(min_length=1, max_length=256)
    feet: list[_Label] = Field(max_length=64)
    about: dict[str, Any]
    policies: list[_PolicyFile] = Field(min_length=1, max_length=10_000)

    @field_validator("policies")
    @classmethod
    def _unique(cls, policies: list[_PolicyFile]) -> list[_PolicyFile]:
        if len({one.label for one in policies}) < len(policies):
            raise ValueError("two policies have the same label")
        return policies


def protocol_of(described: Mapping[str, Any]) -> Protocol:
    """Invert :meth:`Protocol.describe`; raise UmcError if a file holds something else."""
    try:
        return TypeAdapter(Protocol).validate_python(described)
    except ValidationError as error:
        raise UmcError(f"the protocol of an evaluation is damaged: {first_mistake(error)}") from error


def json_values(values: Any) -> Any:
    """Return values as JSON has them, so that the file needs none of our types."""
    return json.loads(json.dumps(values, default=str))
