# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Files of detectors: weights, and what they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field

from umc.detection.network import Detector, DetectorCfg
from umc.models.layout import JointLayout
from umc.utils.config import FileModel, validated
from umc.utils.errors import UmcError, shown
from umc.utils.io import read_torch, sha256, write_torch

FORMAT = 1
"""Version of the file."""

_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Width = Annotated[int, Field(ge=1, le=4096)]


class _Cfg(FileModel):
    network: Literal["gru", "tcn"]
    hidden_dim: _Width
    embedding_dim: _Width
    dilations: Annotated[tuple[_Width, ...], Field(min_length=1, max_length=16)]


class _File(FileModel):
    umc_detector: Literal[1]
    robot: _Name
    joint_names: Annotated[list[_Name], Field(min_length=1, max_length=256)]
    obs_dim: _Width
    joint_columns: list[tuple[int, int, int]]
    cfg: _Cfg
    weights: dict[str, Any]
    about: dict[str, Any]
    resume: dict[str, Any] | None = None


@dataclass(frozen=True)
class DetectorFile:
    """A detector and what is known about its origin."""

    detector: Detector
    robot: str
    """Robot in lower case."""
    about: dict[str, Any] = field(default_factory=dict)
    """How it was trained, in plain values."""
    path: Path | None = None
    sha256: str = ""
    """Of the file."""
    resume: dict[str, Any] | None = None
    """What its training needs to go on; None in a published file."""

    @property
    def held_out(self) -> list[str]:
        """Kinds, or severities of kinds, that its training left out, as ``--hold_out`` takes them."""
        texts = self.about.get("hold_out", [])
        if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
            raise UmcError(f"{self.path}: hold_out is no list of kinds; train it again")
        return texts

    def require(self, robot: str | None, joint_names: Sequence[str]) -> None:
        """Raise UmcError if it does not fit a robot (None: any) and its joints in order."""
        if robot is not None and robot != self.robot:
            raise UmcError(f"{self.path} detects faults of {self.robot}, not of {robot}; give a detector of {robot}")
        if tuple(joint_names) != self.detector.layout.joint_names:
            raise UmcError(f"{self.path} was trained with other joints or another joint order; train it in this task")

    def require_layout(self, layout: JointLayout) -> None:
        """Raise UmcError if it does not read an observation of these columns."""
        own = self.detector.layout
        if (own.obs_dim, own.joint_columns) != (layout.obs_dim, layout.joint_columns):
            raise UmcError(
                f"{self.path} reads another observation, of {own.obs_dim} columns, not these {layout.obs_dim}; train it"
                " beside this policy"
            )

    def remark(self, policy: str) -> str | None:
        """Return a line if it was trained beside another policy than that of a SHA-256; None if not, or not known."""
        other = self.about.get("policy")
        if not isinstance(other, dict) or other.get("sha256") in (None, policy):
            return None
        return (
            f"detector: trained beside another policy ({shown(other.get('name'))}); umc diagnose shows how it does here"
        )


def write_detector(path: Path, file: DetectorFile) -> None:
    """Write a detector atomically."""
    layout = file.detector.layout
    content = {
        "umc_detector": FORMAT,
        "robot": file.robot,
        "joint_names": list(layout.joint_names),
        "obs_dim": layout.obs_dim,
        "joint_columns": [tuple(columns) for columns in layout.joint_columns],
        "cfg": asdict(file.detector.cfg),
        "weights": {name: tensor.detach().cpu() for name, tensor in file.detector.state_dict().items()},
        "about": file.about,
    }
    write_torch(path, content if file.resume is None else {**content, "resume": file.resume})


def read_detector(path: Path, device: str = "cpu", unfinished: bool = False) -> DetectorFile:
    """Read a detector; UmcError for a file that is none, is damaged, or may not be ``unfinished`` and is."""
    content = read_torch(path, "train one with umc train-detector", "detector")
    if not isinstance(content, dict) or "umc_detector" not in content:
        raise UmcError(f"{path} is no detector; train one with umc train-detector")
    file = validated(_File, content, str(path))
    if file.resume is not None and not unfinished:
        raise UmcError(f"{path} is not finished; go on with umc train-detector --out {path.parent} --resume")
    try:
        layout = JointLayout(tuple(file.joint_names), file.obs_dim, tuple(file.joint_columns))
    except UmcError as error:
        raise UmcError(f"{path} is damaged ({error}); train it again") from error
    detector = Detector(layout, DetectorCfg(**file.cfg.model_dump()))
    try:
        detector.load_state_dict(file.weights)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise UmcError(f"{path}: the weights do not fit the sizes in cfg; train it again") from error
    if not all(bool(torch.isfinite(tensor).all()) for tensor in detector.state_dict().values()):
        raise UmcError(f"{path} has weights that are not finite; train it again")
    detector = detector.to(device).eval().requires_grad_(False)
    return DetectorFile(detector, file.robot, file.about, path, sha256(path), file.resume)
