# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a UMC checkpoint says about itself, and how it is read and written.

A checkpoint is rsl_rl's dictionary (``actor_state_dict``, ``critic_state_dict``, ``optimizer_state_dict``, ``iter``)
whose ``infos["umc"]`` says which robot, task and model it belongs to. Only tensors and plain Python values are stored,
so every load is ``weights_only=True`` and runs no code from the file.
"""

from __future__ import annotations

import dataclasses
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

from umc.utils.errors import UmcError
from umc.utils.io import write_torch

CHECKPOINT_NAME = re.compile(r"model_(\d+)\.pt")
"""rsl_rl's file names; the number is the iteration."""


@dataclasses.dataclass(frozen=True)
class CheckpointInfo:
    """What ``infos["umc"]`` holds."""

    robot: str
    """Robot in lower case, e.g. ``"a1"``."""
    task: str
    """Gym id, e.g. ``"UMC-A1-Stage2"``."""
    stage: int
    """1 (no faults) or 2 (all faults)."""
    model: str
    """The agent's network, e.g. ``"mlp"``; agents of one network can take each other's weights."""
    joint_names: list[str]
    """Joints in the order of observations, masks and actions."""
    seed: int
    """Seed of the run."""
    iteration: int
    """Iterations behind this checkpoint, counted from 0: the file of iteration 0 is written after the first update."""
    umc_version: str
    """Version of this package that wrote the file."""
    agent: str
    """Agent entry point, e.g. ``"rsl_rl_mlp_cfg_entry_point"``."""
    experiment: str
    """Folder of the run's experiment, e.g. ``"umc_a1_mlp_stage2"``."""
    agent_overrides: list[str] = dataclasses.field(default_factory=list)
    """What the agent changed in its task's env cfg; files of UMC 0.1 have no such entry, their agents changed none."""
    physics: str = ""
    """Engine it was trained on, e.g. ``"ovphysx"``; empty in files of UMC 0.1, as are the next two."""
    terrain: str = ""
    """Ground it was trained on: :func:`umc.terrains.ground_name`."""
    env_overrides: list[str] | None = None
    """The run's overrides of its env cfg, those of the agent included."""


def read_checkpoint(path: Path | str, device: str = "cpu") -> dict[str, Any]:
    """Load a checkpoint without running code from it.

    Args:
        path: File to read.
        device: Device its tensors land on.

    Returns:
        rsl_rl's dictionary.

    Raises:
        UmcError: If the file is missing, damaged or no checkpoint.
    """
    import torch  # takes seconds; callers that only look for files must not pay for it

    path = Path(path)
    if not path.is_file():
        raise UmcError(f"no checkpoint at {path}; give the path of a model_<iteration>.pt")
    if not zipfile.is_zipfile(path):  # what torch.save writes; its loader's errors over anything else are many
        raise UmcError(f"{path} is damaged or no checkpoint; give another one")
    try:
        data = torch.load(path, map_location=device, weights_only=True)
    except (OSError, RuntimeError, pickle.UnpicklingError) as error:
        raise UmcError(f"{path} is damaged or no checkpoint ({type(error).__name__}); give another one") from error
    if not isinstance(data, dict) or "actor_state_dict" not in data:
        raise UmcError(f"{path} holds no policy; give a model_<iteration>.pt that scripts/train.py wrote")
    return data


def checkpoint_info(data: dict[str, Any], path: Path | str) -> CheckpointInfo:
    """Read what a loaded checkpoint says about itself.

    Args:
        data: What :func:`read_checkpoint` returned.
        path: Where it came from, for the error.

    Returns:
        The checkpoint's own description.

    Raises:
        UmcError: If the file does not say whose it is.
    """
    umc = (data.get("infos") or {}).get("umc")
    fields = dataclasses.fields(CheckpointInfo)
    needed = [field.name for field in fields if field.default is field.default_factory is dataclasses.MISSING]
    if not isinstance(umc, dict) or any(name not in umc for name in needed):
        raise UmcError(f"{path} does not say which robot and model it belongs to; train it with scripts/train.py")
    return CheckpointInfo(**{field.name: umc[field.name] for field in fields if field.name in umc})


def require_match(info: CheckpointInfo, path: Path | str, robot: str, model: str) -> None:
    """Refuse another robot's or another model's checkpoint.

    Args:
        info: What the checkpoint says about itself.
        path: Where it came from, for the error.
        robot: Robot of the task, e.g. ``"a1"``.
        model: Model of the agent, e.g. ``"mlp"``.

    Raises:
        UmcError: If robot or model differ.
    """
    if info.robot != robot:
        raise UmcError(
            f"{path} was trained for robot {info.robot}, the task is for {robot}; "
            f"give a checkpoint of {robot} or --task {info.task}"
        )
    if info.model != model:
        raise UmcError(
            f"{path} holds the {info.model} model, the agent is {model}; "
            f"give a checkpoint of that model or --agent {info.model}"
        )


def write_checkpoint(path: Path | str, data: dict[str, Any]) -> None:
    """Write a checkpoint atomically: a crash while writing leaves what stood there before."""
    write_torch(Path(path), data)


def checkpoints_in(run_folder: Path) -> list[Path]:
    """Checkpoints of a run, lowest iteration first."""
    found = [(CHECKPOINT_NAME.fullmatch(path.name), path) for path in run_folder.glob("model_*.pt")]
    return [path for _, path in sorted((int(match[1]), path) for match, path in found if match)]
