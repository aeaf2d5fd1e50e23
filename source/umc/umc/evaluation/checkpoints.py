# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints to evaluate or film, and what an evaluation repeats of their training: engine, ground, observations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.rl.checkpoint import (
    TERRAIN_KEY,
    CheckpointInfo,
    checkpoint_info,
    interface_of,
    read_checkpoint,
    require_match,
    trained_engine,
    trained_overrides,
    trained_terrain,
)
from umc.tasks.registry import checked_checkpoint, checked_robot
from umc.utils.config import override_key
from umc.utils.errors import UmcError
from umc.utils.io import sha256

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

    from umc.rl.external import ExternalFile
    from umc.rl.policy import Policy

GROUND_PRESETS = ("flat", "perlin")
"""Presets of the tasks that choose a ground."""


@dataclass(frozen=True)
class Checkpoint:
    """A policy's checkpoint."""

    path: Path
    info: CheckpointInfo
    sha256: str
    """Of the file."""
    detection: str = field(default="", kw_only=True)
    """What reports faults to it, as :func:`umc.mdp.detection.read_detection` reads it; as the env has it if empty."""

    @property
    def stem(self) -> str:
        """Return its name in the paths of results."""
        return self.path.stem

    @property
    def about(self) -> dict[str, Any]:
        """Return what reports say about it, in plain values."""
        own = {"detection": self.detection} if self.detection else {}
        return {"path": str(self.path), "sha256": self.sha256, **asdict(self.info), **own}

    @property
    def identity(self) -> list[Any]:
        """Return what decides its actions, in plain values; UmcError for a network that cannot be made."""
        from umc.rl.policy import stored_agent

        return [self.sha256, stored_agent(self.path, self.info), *self._watched_by()]

    def load(self, env: ManagerBasedRLEnv) -> Policy:
        """Make the policy for a running environment; UmcError if it does not fit."""
        from umc.rl.policy import load_policy_for

        return load_policy_for(self.path, env, self.info.robot)

    def report_faults(self, env: ManagerBasedRLEnv) -> None:
        """Let an env report its faults to this policy as :attr:`detection` says, from the next reset on."""
        if self.detection:
            from umc.mdp.detection import read_detection
            from umc.mdp.fault_terms import fault_term

            fault_term(env).set_detection(read_detection(self.detection))

    def _watched_by(self) -> list[str]:
        """Return what of :attr:`detection` decides results."""
        from umc.mdp.detection import read_detection

        if not self.detection:
            return []
        file = read_detection(self.detection).file
        return [self.detection, *([] if file is None else [sha256(Path(file))])]


@dataclass(frozen=True)
class External(Checkpoint):
    """A policy that UMC did not train; its info holds robot, task and joints of the task it runs in."""

    external: ExternalFile

    @property
    def stem(self) -> str:
        """Return its name in the paths of results: as typed, since several descriptions can share a network."""
        return self.info.model.replace(":", "_")

    @property
    def about(self) -> dict[str, Any]:
        """Return what reports say about it, in plain values."""
        return {**super().about, "reads": self.external.description.model_dump(mode="json")}

    @property
    def identity(self) -> list[Any]:
        """Return what decides its actions, in plain values."""
        return [self.sha256, self.external.description.model_dump(mode="json"), *self._watched_by()]

    def described(self, file: str) -> bytes:
        """Return the content of a YAML file that describes it, with its network in ``file``."""
        return json.dumps({**self.external.description.model_dump(mode="json"), "file": file}).encode()

    def load(self, env: ManagerBasedRLEnv) -> Policy:
        """Make the policy for a running environment; UmcError if it does not fit."""
        from umc.rl.external import load_external

        return load_external(self.external, env)


def read_checkpoints(
    texts: Sequence[str] | None, robot: str | None = None, once: bool = True
) -> tuple[Checkpoint, ...]:
    """Read the checkpoints of one robot; with ``once``, raise UmcError if one is named twice."""
    if texts is None:
        raise UmcError("--checkpoint is missing; give a model_<iteration>.pt or a run folder")
    if not texts:
        raise UmcError("--checkpoint is empty; give one or several model_<iteration>.pt or run folders")
    if robot is not None:
        robot = checked_robot(robot)
    found: list[Checkpoint] = []
    for text in texts:
        path = checked_checkpoint(text)
        info = checkpoint_info(read_checkpoint(path), path)
        if robot is not None:
            require_match(info, path, robot)
        elif found and info.robot != found[0].info.robot:
            raise UmcError(
                f"{path} was trained for robot {info.robot}, {found[0].path} for {found[0].info.robot}; "
                "evaluate each robot separately"
            )
        fingerprint = sha256(path)
        for other in found:
            if once and other.sha256 == fingerprint:
                raise UmcError(f"{path} is the same checkpoint as {other.path}; give each once")
        found.append(Checkpoint(path, info, fingerprint))
    return tuple(found)


def read_externals(texts: Sequence[str], task: str, env_cfg: Any, trust: bool) -> tuple[External, ...]:
    """Read policies that UMC did not train, and add what they read to a task's cfg, in place.

    Raises UmcError for a policy that is named twice, and for TorchScript without ``trust`` or a yes on the terminal.
    """
    from umc import __version__
    from umc.rl.external import add_group, confirm_code, load_source, read_external, require_as_exported
    from umc.tasks.parts import known_names
    from umc.utils.naming import TASK_NAME, robot_and_stage

    robot, stage = robot_and_stage(task)
    names = known_names(env_cfg.scene.robot)
    if names is None:
        raise UmcError(
            f"{task}: the joints of its robot are unknown, since its cfg spawns no USD file; convert its URDF once and "
            "spawn it by UsdFileCfg(usd_path=...)"
        )
    found: list[External] = []
    for number, text in enumerate(texts):
        external = read_external(text, number)
        known = [(one.sha256, one.external.description) for one in found]
        if (external.sha256, external.description) in known:
            raise UmcError(f"--policy {text} is the same policy as another; give each once")
        if external.is_code and not trust:
            confirm_code(external.path)
        source = load_source(external)  # what is no policy is refused before the simulation starts
        require_as_exported(external, env_cfg, robot if TASK_NAME.fullmatch(task) else None, names.joints)
        add_group(env_cfg, external, () if external.function else source.groups)
        info = CheckpointInfo(
            robot=robot,
            task=task,
            stage=stage,
            model=external.function or Path(text).stem,
            joint_names=list(names.joints),
            seed=0,
            iteration=0,
            umc_version=__version__,
            agent="",
            experiment="",
            env_overrides=[],
        )
        found.append(External(external.path, info, external.sha256, external))
    return tuple(found)


def require_detector(checkpoints: Sequence[Checkpoint], env_cfg: Any) -> None:
    """Raise UmcError if the detector that an env cfg names is of another robot than the policies."""
    from umc.detection import read_detector

    file = getattr(getattr(env_cfg, "detection", None), "file", None)
    if file is not None:
        detector = read_detector(Path(file))
        own = list(detector.detector.layout.joint_names)
        for one in checkpoints[:1]:
            names = one.info.joint_names
            if isinstance(one, External) and set(names) == set(own):
                names = own  # its task's order is known once the env runs, which compares it then
            detector.require(one.info.robot, names)


def with_detections(checkpoints: Sequence[Checkpoint], texts: Sequence[str], env_cfg: Any) -> tuple[Checkpoint, ...]:
    """Return every policy once for each source of what is reported to it; UmcError for one that cannot be.

    ``env_cfg`` is checked with each of them, and stays as it is.
    """
    from umc.mdp.detection import check_detection, read_detection
    from umc.tasks.limits import check_values

    if len(set(texts)) < len(texts):
        raise UmcError(f"--detection {' '.join(texts)} names a source twice; give each once")
    kept = env_cfg.detection
    for text in texts:
        cfg = env_cfg.detection = read_detection(text)
        check_detection(cfg)
        check_values(env_cfg, None)
        require_detector(checkpoints, env_cfg)
    env_cfg.detection = kept
    return tuple(replace(one, detection=text) for one in checkpoints for text in texts)


def detector_remarks(checkpoints: Sequence[Checkpoint], env_cfg: Any) -> list[str]:
    """Return a line for each detector that reports to another policy than the one beside which it was trained."""
    from umc.detection import read_detector
    from umc.mdp.detection import read_detection

    found: dict[str, None] = {}  # each line once, in order
    for one in checkpoints:
        cfg = read_detection(one.detection) if one.detection else getattr(env_cfg, "detection", None)
        file = getattr(cfg, "file", None)
        remark = None if file is None else read_detector(Path(file)).remark(one.sha256)
        found |= {} if remark is None else {remark: None}
    return list(found)


def common_value(checkpoints: Sequence[Checkpoint], values: Sequence[str | None], what: str, key: str) -> str | None:
    """Return what all policies were trained on as far as known; None if it is not; raise UmcError if they differ."""
    known = sorted({value for value in values if value})
    if len(known) > 1:
        which = ", ".join(f"{one.path}: {value or 'unknown'}" for one, value in zip(checkpoints, values, strict=True))
        choices = " or ".join(f"{key}={value}" for value in known)
        raise UmcError(f"the policies were trained on different {what} ({which}); choose one with {choices}")
    return known[0] if known else None


def engine_override(
    checkpoints: Sequence[Checkpoint], overrides: Sequence[str], device: str, task: str | None = None
) -> tuple[list[str], list[str]]:
    """Choose the engine that the policies were trained on, unless the user names one; return override and remark.

    A task that offers no choice of engines keeps its own.
    """
    from umc.tasks.task_cfg import default_engine, names_engine, offers_engine

    if names_engine(overrides):
        return [], []
    engines = [trained_engine(one.path, one.info) for one in checkpoints]
    engine = common_value(checkpoints, engines, "engines", "physics")
    line = f"engine: {engine}, which the policy was trained on"
    if engine is None:
        engine, line = default_engine(device)
        if task is not None and not offers_engine(task, engine):
            return [], ["engine: the task's own"]
    return [f"physics={engine}"], [line]


def ground_override(
    checkpoints: Sequence[Checkpoint], env_cfg: Any, overrides: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Choose the ground that the policies were trained on, unless the user names one; return override and remark."""
    from umc.terrains import ground_name

    if not checkpoints or names_ground(overrides):
        return [], []
    task_ground = ground_name(env_cfg.scene.terrain)
    grounds = [trained_terrain(one.path, one.info) for one in checkpoints]
    ground = common_value(checkpoints, grounds, "grounds", TERRAIN_KEY)
    if ground is None or ground == task_ground or ground not in GROUND_PRESETS:
        return [], []
    line = f"ground: {ground}, which the policy was trained on (the task's own: {TERRAIN_KEY}={task_ground})"
    return [f"{TERRAIN_KEY}={ground}"], [line]


def names_ground(overrides: Sequence[str]) -> bool:
    """Return whether an override or a preset chooses the ground."""
    chosen = [token.partition("=")[2].split(",") for token in overrides if override_key(token) == "presets"]
    return any(override_key(token).startswith(TERRAIN_KEY) for token in overrides) or any(
        name in GROUND_PRESETS for names in chosen for name in names
    )


def interface_overrides(checkpoints: Sequence[Checkpoint], overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """Repeat the overrides of the training that concern robot, actions and observations, unless the user types them."""

    def of(one: Checkpoint) -> list[str]:
        return interface_of(trained_overrides(one.path, one.info, overrides))

    if not checkpoints:
        return [], []
    first, *others = checkpoints
    repeated = of(first)
    for other in others:
        if different := sorted({*repeated} ^ {*of(other)}):
            raise UmcError(
                f"{first.path} and {other.path} were trained with different overrides ({' '.join(different)}); "
                "evaluate them separately, or set each override on the command line"
            )
    return repeated, [f"as in the training: {' '.join(repeated)}"] if repeated else []
