# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Read, write and find checkpoints, and say what they were trained on.

A checkpoint is rsl_rl's dictionary (``actor_state_dict``, ``critic_state_dict``, ``optimizer_state_dict``, ``iter``)
whose ``infos["umc"]`` says which robot, task and model it belongs to. Only tensors and plain Python values are stored,
so every load is ``weights_only=True`` and runs no code from the file.
"""

from __future__ import annotations

import dataclasses
import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from umc.utils.errors import UmcError
from umc.utils.io import write_torch
from umc.utils.provenance import RUN_FILE, read_record

CHECKPOINT_NAME = re.compile(r"model_(\d+)\.pt")
"""rsl_rl's file names; the number is the iteration."""

TERRAIN_KEY = "env.scene.terrain"
"""Override that chooses the ground of a task that has several."""


@dataclasses.dataclass(frozen=True)
class CheckpointInfo:
    """Content of ``infos["umc"]``."""

    robot: str
    """Robot in lower case, e.g. ``"a1"``."""
    task: str
    """Gym id, e.g. ``"UMC-A1-Stage2"``."""
    stage: int
    """1 (no faults) or 2 (all faults)."""
    model: str
    """The agent's network, e.g. ``"mlp"``; agents of one network can load each other's weights."""
    joint_names: list[str]
    """Joints in the order of observations, masks and actions."""
    seed: int
    """Seed of the run."""
    iteration: int
    """Last completed iteration, counted from 0: the file of iteration 0 is written after the first update."""
    umc_version: str
    """Version of this package that wrote the file."""
    agent: str
    """Agent entry point, e.g. ``"rsl_rl_mlp_cfg_entry_point"``."""
    experiment: str
    """Folder of the run's experiment, e.g. ``"umc_a1_mlp_stage2"``."""
    agent_overrides: list[str] = dataclasses.field(default_factory=list)
    """What the agent changed in its task's env cfg; files of UMC 0.1 lack it, their agents changed nothing."""
    physics: str = ""
    """Engine it was trained on, e.g. ``"ovphysx"``; empty in files of UMC 0.1, as are the next two."""
    terrain: str = ""
    """Ground it was trained on: :func:`umc.terrains.ground_name`."""
    env_overrides: list[str] | None = None
    """The run's overrides of its env cfg, those of the agent included."""


def read_checkpoint(path: Path | str, device: str = "cpu") -> dict[str, Any]:
    """Load rsl_rl's dictionary onto a device without running code from the file."""
    import torch  # takes seconds; callers that only look for files must not pay for it

    path = Path(path)
    if not path.is_file():
        raise UmcError(f"no checkpoint at {path}; give the path of a model_<iteration>.pt")
    if not zipfile.is_zipfile(path):  # what torch.save writes; its loader raises many kinds of errors over other files
        raise UmcError(f"{path} is damaged or no checkpoint; give another one")
    try:
        data = torch.load(path, map_location=device, weights_only=True)
    except (OSError, RuntimeError, pickle.UnpicklingError) as error:
        raise UmcError(f"{path} is damaged or no checkpoint ({type(error).__name__}); give another one") from error
    if not isinstance(data, dict) or "actor_state_dict" not in data:
        raise UmcError(f"{path} holds no policy; give a model_<iteration>.pt that umc train wrote")
    return data


def checkpoint_info(data: Mapping[str, Any], path: Path | str) -> CheckpointInfo:
    """Return what a loaded checkpoint says about itself; ``path`` is for the error."""
    umc = (data.get("infos") or {}).get("umc")
    fields = dataclasses.fields(CheckpointInfo)
    needed = [field.name for field in fields if field.default is field.default_factory is dataclasses.MISSING]
    if not isinstance(umc, dict) or any(name not in umc for name in needed):
        raise UmcError(f"{path} does not say which robot and model it belongs to; train it with umc train")
    return CheckpointInfo(**{field.name: umc[field.name] for field in fields if field.name in umc})


def require_match(info: CheckpointInfo, path: Path | str, robot: str | None, model: str | None = None) -> None:
    """Raise :class:`UmcError` if a checkpoint belongs to another robot or model; None accepts any."""
    if robot is not None and info.robot != robot:
        raise UmcError(
            f"{path} was trained for robot {info.robot}, the task is for {robot}; "
            f"give a checkpoint of {robot} or --task {info.task}"
        )
    if model is not None and info.model != model:
        raise UmcError(
            f"{path} holds the {info.model} model, the agent is {model}; "
            f"give a checkpoint of that model or --agent {info.model}"
        )


def require_resumable(data: Mapping[str, Any], path: Path | str) -> None:
    """Raise :class:`UmcError` if a checkpoint holds weights only, as pretrained and folded ones do."""
    if "optimizer_state_dict" not in data or "resume" not in (data.get("infos") or {}):
        raise UmcError(
            f"{path} holds weights, but not the optimizer and the counters that --resume needs; give another "
            "checkpoint of the run, or leave out --resume to start from these weights"
        )


def require_iterations_left(done: int, max_iterations: int) -> None:
    """Raise :class:`UmcError` if a run has completed all its iterations."""
    if done >= max_iterations:
        raise UmcError(f"the run has {done} iterations already; give a higher --max_iterations to go on")


def write_checkpoint(path: Path | str, data: dict[str, Any]) -> None:
    """Write a checkpoint atomically: a crash while writing leaves the previous file."""
    write_torch(Path(path), data)


def checkpoints_in(run_folder: Path) -> list[Path]:
    """Return the checkpoints of a run, lowest iteration first."""
    found = [(CHECKPOINT_NAME.fullmatch(path.name), path) for path in run_folder.glob("model_*.pt")]
    return [path for _, path in sorted((int(match[1]), path) for match, path in found if match)]


def iterations_of(checkpoint: Path) -> int:
    """Return the iterations behind a checkpoint of :func:`checkpoints_in`, whose name counts them from 0."""
    return int(checkpoint.stem.split("_")[1]) + 1


def newest_checkpoint(experiment: Path) -> Path | None:
    """Return the last checkpoint of the experiment's run that wrote one most recently; None if there is none."""
    if not experiment.is_dir():
        return None
    last = [files[-1] for run in experiment.iterdir() if (files := checkpoints_in(run))]
    # the name decides between two files written within one tick of the clock
    return max(last, key=lambda path: (path.stat().st_mtime_ns, path.parent.name), default=None)


def env_overrides(tokens: list[str]) -> list[str]:
    """Return those of a run's overrides that change its env cfg."""
    return [token for token in tokens if token.startswith("env.")]


def trained_overrides(checkpoint: Path, info: CheckpointInfo) -> list[str]:
    """Return the ``env.`` overrides of the checkpoint's run, which evaluation and export have to repeat.

    A file of UMC 0.1 does not hold them; its run folder's record does. The list is empty where neither does.
    """
    if info.env_overrides is not None:
        return list(info.env_overrides)
    if not (checkpoint.parent / RUN_FILE).is_file():
        return []
    return env_overrides(read_record(checkpoint.parent)["overrides"])


def trained_engine(checkpoint: Path, info: CheckpointInfo) -> str:
    """Return the name of the engine a checkpoint was trained on; empty if neither it nor its run folder says."""
    if info.physics or not (checkpoint.parent / RUN_FILE).is_file():
        return info.physics
    return read_record(checkpoint.parent).get("physics", "")


def trained_terrain(checkpoint: Path, info: CheckpointInfo) -> str:
    """Return the ground a checkpoint was trained on, as :func:`umc.terrains.ground_name` does; empty if unknown."""
    if info.terrain:
        return info.terrain
    chosen = [token for token in trained_overrides(checkpoint, info) if token.split("=", 1)[0] == TERRAIN_KEY]
    return chosen[-1].split("=", 1)[1] if chosen else ""
