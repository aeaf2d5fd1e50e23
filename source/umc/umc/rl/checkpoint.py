# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Read, write and find checkpoints, and say what they were trained on.

A checkpoint is rsl_rl's dictionary (``actor_state_dict``, ``critic_state_dict``, ``optimizer_state_dict``, ``iter``)
whose ``infos["umc"]`` says which robot, task and model it belongs to. Only tensors and plain Python values are stored,
so every load is ``weights_only=True`` and runs no code from the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StrictInt, StrictStr, TypeAdapter, ValidationError

from umc.rl.pretrained import MODELS, read_models, verified_file
from umc.utils.code_names import require_no_files, require_trusted_code
from umc.utils.config import first_mistake, override_key
from umc.utils.errors import UmcError, shown
from umc.utils.io import leaves, read_torch, write_torch
from umc.utils.naming import TASK_NAME, run_stamp
from umc.utils.provenance import RUN_FILE, read_record

CHECKPOINT_NAME = re.compile(r"model_(\d+)\.pt")
"""rsl_rl's file names; the number is the iteration."""

DETECTION = "env.detection"
"""Overrides of what reports faults to the policy begin with it."""

INTERFACE = ("env.actions.", "env.observations.", "env.decimation", "env.sim.dt", "env.scene.robot.")
"""Sections of overrides that change the meaning or the rate of actions and observations, or the robot."""

CRITIC = "env.observations.critic."
"""Their exception: what only the critic reads."""

NETWORK = ("agent.actor", "agent.clip_actions", "agent.obs_groups")
"""Sections of overrides that decide which network the weights make, what it reads, and the bound of its actions."""

CRITIC_NETWORK = ("agent.critic", "agent.mlp_critic")
"""Starts of overrides that decide the weights of the critic, which only a training needs."""

NOISE = "agent.actor.distribution_cfg"
"""Section of overrides about action noise, which every start of a run may set."""

MAY_CHANGE = (NOISE, "agent.actor.mask_value", "agent.obs_groups.critic")
"""Their exception: what a stage may have other than the one that it starts from."""

TERRAIN_KEY = "env.scene.terrain"
"""Override that chooses the ground of a task that has several."""


_Text = Annotated[StrictStr, Field(max_length=200)]
_Name = Annotated[_Text, Field(pattern=r"^[\w-]+$")]
_Override = Annotated[StrictStr, Field(max_length=10_000)]
_Overrides = Annotated[list[_Override], Field(max_length=1000)]
_Joints = Annotated[list[Annotated[_Text, Field(min_length=1)]], Field(min_length=1, max_length=256)]
_Count = Annotated[StrictInt, Field(ge=0, le=2**53)]


@dataclasses.dataclass(frozen=True)
class CheckpointInfo:
    """Content of ``infos["umc"]``."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    robot: _Name
    """Robot in lower case, e.g. ``"a1"``."""
    task: _Name
    """Gym id, e.g. ``"UMC-A1-Stage2"``."""
    stage: Annotated[StrictInt, Field(ge=1, le=2)]
    """1 (no faults) or 2 (all faults)."""
    model: _Text
    """The agent's network, e.g. ``"mlp"``; agents of one network can load each other's weights."""
    joint_names: _Joints
    """Joints in the order of observations, masks and actions."""
    seed: StrictInt
    """Seed of the run."""
    iteration: _Count
    """Last completed iteration, counted from 0: the file of iteration 0 is written after the first update."""
    umc_version: _Text
    """Version of this package that wrote the file."""
    agent: _Text
    """Agent entry point, e.g. ``"rsl_rl_mlp_cfg_entry_point"``."""
    experiment: _Text
    """Folder of the run's experiment, e.g. ``"umc_a1_mlp_stage2"``."""
    agent_overrides: _Overrides = dataclasses.field(default_factory=list)
    """What the agent changed in its task's env cfg; files of UMC 0.1 lack it, their agents changed nothing."""
    physics: _Text = ""
    """Engine it was trained on, e.g. ``"ovphysx"``; empty in files of UMC 0.1, as are the next two."""
    terrain: _Text = ""
    """Ground it was trained on: :func:`umc.terrains.ground_name`."""
    env_overrides: _Overrides | None = None
    """The run's overrides of its env cfg, those of the agent included."""
    network_overrides: _Overrides = dataclasses.field(default_factory=list)
    """The run's overrides of its agent that :data:`NETWORK` names; files of UMC 0.1 lack them."""


_INFO = TypeAdapter(CheckpointInfo)

WEIGHTS = ("actor_state_dict", "critic_state_dict")
"""Networks in a checkpoint."""

WEIGHTS_SHA256 = "weights_sha256"
"""Key of ``infos`` with :func:`weights_sha256` of the networks; an older UMC wrote none."""

NEEDED = ("robot", "task", "stage", "model", "joint_names")
"""Fields without which a file does not say whose it is."""


def read_checkpoint(path: Path | str, device: str = "cpu") -> dict[str, Any]:
    """Load rsl_rl's dictionary onto a device without running code from the file.

    Raises:
        UmcError: If there is no such file, or it is damaged: the CRC of its zip, the SHA-256 of its weights, that of
            ``models.json`` beside it, types, or numbers that are not finite.
    """
    from umc.rl.external_networks import is_torchscript  # imports torch

    path = Path(path)
    if not path.is_file():
        raise UmcError(f"no checkpoint at {path}; give the path of a model_<iteration>.pt")
    if path.suffix == ".onnx" or is_torchscript(path):
        raise UmcError(
            f"{path} is a network without its training; give it to --policy with --task, or give its checkpoint"
        )
    verify_published(path)
    data = read_torch(path, "give another one", "checkpoint", device)
    if not isinstance(data, dict) or "actor_state_dict" not in data:
        raise UmcError(f"{path} holds no policy; give a model_<iteration>.pt that umc train wrote")
    try:
        _check_parts(data)
    except (TypeError, ValueError) as error:
        raise UmcError(f"{path} is damaged or no checkpoint ({error}); give another one") from error
    for name in (*WEIGHTS, "optimizer_state_dict"):
        for place, value in leaves(data.get(name, {}), name):
            if not _is_finite_leaf(value):
                raise UmcError(f"{path}: {place} is not finite; give an earlier checkpoint of the run, or another one")
    wanted = (data.get("infos") or {}).get(WEIGHTS_SHA256)
    if wanted is not None and wanted != weights_sha256(data):
        raise UmcError(f"{path} is damaged: its weights are not those that were saved; give another checkpoint")
    return data


def verify_published(path: Path) -> None:
    """Raise UmcError if ``models.json`` beside a checkpoint describes it and has another SHA-256."""
    if (path.parent / MODELS).is_file() and path.stem in read_models(path.parent):
        verified_file(path.stem, path.parent)


def _check_parts(data: Mapping[str, Any]) -> None:
    """Raise TypeError or ValueError for a part of rsl_rl's dictionary that is not valid."""
    import torch

    for name in WEIGHTS:
        weights = data.get(name, {})
        if not isinstance(weights, dict) or not all(isinstance(one, torch.Tensor) for one in weights.values()):
            raise TypeError(f"{name} is no dict of tensors")
    for name in ("optimizer_state_dict", "infos"):
        if not isinstance(data.get(name, {}), dict | None):
            raise TypeError(f"{name} is no dict")
    if missing := {"iter", "infos"} - data.keys():
        raise ValueError(f"{min(missing)} is missing")
    if type(data["iter"]) is not int or data["iter"] < 0:
        raise ValueError("iter is no count")


def is_finite(data: Any) -> bool:
    """Return whether all numbers in nested containers of tensors and plain values are finite."""
    return all(_is_finite_leaf(value) for _, value in leaves(data))


def _is_finite_leaf(value: Any) -> bool:
    import torch

    if isinstance(value, torch.Tensor):
        return not (value.is_floating_point() or value.is_complex()) or bool(torch.isfinite(value).all())
    return not isinstance(value, float) or math.isfinite(value)


def weights_sha256(data: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the networks in a checkpoint: names, types, shapes and values."""
    import torch

    digest = hashlib.sha256()
    for part in WEIGHTS:
        for name, tensor in sorted(data.get(part, {}).items()):
            digest.update(f"{part}.{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def checkpoint_info(data: Mapping[str, Any], path: Path | str) -> CheckpointInfo:
    """Return what a loaded checkpoint says about itself; ``path`` is for the error."""
    umc = (data.get("infos") or {}).get("umc")
    if not isinstance(umc, dict) or any(name not in umc for name in NEEDED):
        raise UmcError(
            f"{path} does not say which robot and model it belongs to: it is of Isaac Lab or rsl_rl; evaluate it with "
            f"--task ID --policy {path}, imitate it with --teacher {path}"
        )
    try:
        info = _INFO.validate_python(umc)
    except ValidationError as error:
        raise UmcError(f"{path}: the header is not valid ({first_mistake(error)}); give another checkpoint") from error
    match = TASK_NAME.fullmatch(info.task)
    if match is not None and (match[1].lower(), int(match[2])) != (info.robot, info.stage):
        raise UmcError(
            f"{path} says robot {info.robot} and Stage {info.stage}, but task {info.task}; give another checkpoint"
        )
    return info


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
    """Write a checkpoint with the SHA-256 of its weights, atomically: a crash leaves the previous file."""
    infos = {**(data.get("infos") or {}), WEIGHTS_SHA256: weights_sha256(data)}
    write_torch(Path(path), {**data, "infos": infos})


def checkpoints_in(run_folder: Path) -> list[Path]:
    """Return the checkpoints of a run, lowest iteration first."""
    found = [(CHECKPOINT_NAME.fullmatch(path.name), path) for path in run_folder.glob("model_*.pt")]
    return [path for _, path in sorted((int(match[1]), path) for match, path in found if match)]


def iterations_of(checkpoint: Path) -> int:
    """Return the iterations behind a checkpoint of a run, whose name counts them from 0; UmcError for another name."""
    match = CHECKPOINT_NAME.fullmatch(checkpoint.name)
    if match is None:
        raise UmcError(f"{checkpoint} is not named model_<iteration>.pt, as a run's checkpoints are; rename it")
    return int(match[1]) + 1


def set_aside_later(checkpoint: Path) -> list[Path]:
    """Move a run's checkpoints later than the one that it goes on from to a subfolder; return their new places.

    The last checkpoint of a run folder stands for the run: they would win over those that follow now.
    """
    folder, done = checkpoint.parent / f"later_than_{checkpoint.stem}_{run_stamp()}", iterations_of(checkpoint)
    later = [path for path in checkpoints_in(checkpoint.parent) if iterations_of(path) > done]
    if later:
        folder.mkdir()
    return [path.rename(folder / path.name) for path in later]


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


def network_overrides(tokens: list[str]) -> list[str]:
    """Return those of a run's overrides without which its weights do not make the same policy."""
    return [token for token in tokens if token.startswith(NETWORK)]


def trained_overrides(checkpoint: Path, info: CheckpointInfo, typed: Sequence[str] = ()) -> list[str]:
    """Return the ``env.`` overrides of the checkpoint's run, which evaluation and export have to repeat.

    A file of UMC 0.1 does not hold them; its run folder's record does. The list is empty where neither does. Those of
    ``env.detection`` are left out: who reports faults to a policy is chosen anew each time. So are those of the same
    keys as ``typed``, the overrides of the command line.

    Raises:
        UmcError: If one names code that is not of an installed task package, or a file.
    """
    recorded, keys = _env_overrides(checkpoint, info), {override_key(token) for token in typed}
    if other := [token for token in recorded if not token.startswith("env.")]:
        raise UmcError(f"{checkpoint} repeats {shown(other[0])}, which is no env.* override; give another checkpoint")
    tokens = [token for token in recorded if override_key(token) not in keys and not token.startswith(DETECTION)]
    require_trusted_code(tokens, str(checkpoint))
    require_no_files(tokens, str(checkpoint))
    return tokens


def interface_of(overrides: Iterable[str]) -> list[str]:
    """Return the overrides that decide what observations and actions mean, and the robot."""
    return [token for token in overrides if token.startswith(INTERFACE) and not token.startswith(CRITIC)]


def interface_differences(checkpoint: Path, info: CheckpointInfo, overrides: Iterable[str]) -> list[str]:
    """Return of :func:`interface_of` what only the checkpoint's run has, or only ``overrides``."""
    return sorted({*interface_of(_env_overrides(checkpoint, info))} ^ {*interface_of(overrides)})


def network_differences(checkpoint: Path, info: CheckpointInfo, overrides: Sequence[str]) -> list[str]:
    """Return of :func:`network_overrides` what only a checkpoint's run has, or only another run that starts from it."""
    # earlier files do not hold them
    own = info.network_overrides or network_overrides(recorded_overrides(checkpoint) or [])
    tokens = {*own} ^ {*network_overrides([*overrides])}
    # loading the weights of a Stage 1 leaves out groups, or refuses them
    may_change = (*MAY_CHANGE, "agent.obs_groups.actor") if info.stage == 1 else MAY_CHANGE
    return sorted(token for token in tokens if not token.startswith(may_change))


def recorded_overrides(checkpoint: Path) -> list[str] | None:
    """Return the overrides of a checkpoint's run by the ``run.json`` or ``models.json`` beside it; None without one."""
    if (checkpoint.parent / RUN_FILE).is_file():
        return read_record(checkpoint.parent)["overrides"]
    entry = read_models(checkpoint.parent).get(checkpoint.stem, {})
    return entry.get("trained", {}).get("overrides")


def _env_overrides(checkpoint: Path, info: CheckpointInfo) -> list[str]:
    if info.env_overrides is None and (checkpoint.parent / RUN_FILE).is_file():
        return env_overrides(read_record(checkpoint.parent)["overrides"])
    return list(info.env_overrides or ())


def trained_engine(checkpoint: Path, info: CheckpointInfo) -> str:
    """Return the name of the engine a checkpoint was trained on; empty if neither it nor its run folder says."""
    if info.physics or not (checkpoint.parent / RUN_FILE).is_file():
        return info.physics
    return read_record(checkpoint.parent).get("physics", "")


def trained_terrain(checkpoint: Path, info: CheckpointInfo) -> str:
    """Return the ground a checkpoint was trained on, as :func:`umc.terrains.ground_name` does; empty if unknown."""
    if info.terrain:
        return info.terrain
    chosen = [token for token in _env_overrides(checkpoint, info) if override_key(token) == TERRAIN_KEY]
    return chosen[-1].split("=", 1)[1] if chosen else ""
