# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What evaluate and play share: checkpoints, env cfg, and a running environment."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.evaluation.checkpoints import (
    Checkpoint,
    engine_override,
    ground_override,
    interface_overrides,
    read_checkpoints,
    read_externals,
    require_detector,
)
from umc.rl.checkpoint import CheckpointInfo, require_match
from umc.rl.pretrained import is_pretrained
from umc.tasks.registry import checked_task, checked_task_of_any_package, pretrained_policy
from umc.utils.config import read_overrides
from umc.utils.errors import UmcError
from umc.utils.naming import robot_and_stage

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

    from umc.rl.policy import Policy


AS_EVALUATED = {
    "action": "mean (no exploration noise)",
    "randomised": "starts and physics, as in training",
}
"""What reports say about every evaluation."""


@dataclass
class Session:
    """Checkpoints and their task, before the simulation starts."""

    options: argparse.Namespace
    checkpoints: tuple[Checkpoint, ...]
    """All of the same robot."""
    task: str
    """Gym id."""
    env_cfg: Any
    """Env cfg with presets and overrides applied."""
    device: str
    remarks: tuple[str, ...] = ()
    """Lines for the screen about what was chosen."""
    repeated: tuple[str, ...] = ()
    """Overrides that repeat the training of the policies, its ground among them."""
    typed_device: str | None = None
    """Value of ``--device``."""

    @property
    def checkpoint(self) -> Path:
        """Return the path of the first checkpoint."""
        return self.checkpoints[0].path

    @property
    def info(self) -> CheckpointInfo:
        """Return the metadata of the first checkpoint."""
        return self.checkpoints[0].info


def prepare(options: argparse.Namespace, overrides: list[str], stage: int | None = None, once: bool = True) -> Session:
    """Read the checkpoints and resolve their task, at ``stage`` if given; with ``once`` no checkpoint twice."""
    from umc.tasks.parts import FIELD, prepare_task
    from umc.tasks.task_cfg import check_launch, pick_device, resolve_cfgs

    texts, remarks = _pretrained(options)
    checkpoints = read_checkpoints(texts, options.robot, once) if texts is not None or not options.policy else ()
    task = _task_of(checkpoints, options, stage)
    for one in checkpoints:  # a network that cannot be made is refused before the simulation starts
        _ = one.identity
    typed_device, device = options.device, pick_device(options.device)
    changes = read_overrides(overrides, FIELD)
    overrides = [token for token in overrides if not token.startswith(f"{FIELD}.")]
    engine, about_engine = engine_override(checkpoints, overrides, device, task)
    interface, about_interface = interface_overrides(checkpoints, overrides)
    repeated = [*engine, *interface]
    env_cfg, _ = resolve_cfgs(task, None, [*repeated, *overrides])
    ground, about_ground = ground_override(checkpoints, env_cfg, overrides)
    if ground:
        repeated += ground
        env_cfg, _ = resolve_cfgs(task, None, [*repeated, *overrides])
    about_task = prepare_task(task, env_cfg, changes, options.offline)
    externals = read_externals(options.policy or (), task, env_cfg, options.trust)
    check_launch(env_cfg, options)
    env_cfg.sim.device = device
    options.device = device
    checkpoints = (*checkpoints, *externals)
    require_detector(checkpoints, env_cfg)
    remarks = (*remarks, *about_engine, *about_interface, *about_ground, *about_task)
    return Session(options, checkpoints, task, env_cfg, device, remarks, tuple(repeated), typed_device)


def without_policy(
    options: argparse.Namespace, overrides: Sequence[str], task: str | None, launches: bool = True
) -> Session:
    """Resolve a task in which no policy walks; UmcError if it is unknown, or this machine cannot launch it.

    Without ``launches`` it is only looked at.
    """
    from umc.tasks.task_cfg import check_launch, pick_device, resolve_cfgs

    task = checked_task(task)
    device = options.device = pick_device(options.device) if launches else "cpu"
    engine, remarks = engine_override((), overrides, device)
    env_cfg, _ = resolve_cfgs(task, None, [*engine, *overrides])
    if launches:
        check_launch(env_cfg, options)
    env_cfg.sim.device = device
    return Session(options, (), task, env_cfg, device, tuple(remarks))


def _task_of(checkpoints: Sequence[Checkpoint], options: argparse.Namespace, stage: int | None) -> str:
    """Return the task that is asked for, else that of the first checkpoint, at a stage if one is given."""
    if not checkpoints:
        if options.task is None:
            raise UmcError("--policy does not say for which robot it is; give the --task that it runs in")
        return checked_task_of_any_package(options.task)
    info = checkpoints[0].info
    own = info.task if stage is None else f"{info.task.rpartition('Stage')[0]}Stage{stage}"
    task = checked_task(own) if options.task is None else checked_task_of_any_package(options.task)
    require_match(info, checkpoints[0].path, robot_and_stage(task)[0])
    return task


def _pretrained(options: argparse.Namespace) -> tuple[list[str] | None, list[str]]:
    """Return the checkpoints as typed, but paths for pretrained policies, and a line about each of those."""
    texts: list[str] | None = options.checkpoint
    asked = [text for text in texts or () if is_pretrained(text)]
    if options.agent is not None and not asked:
        raise UmcError("--agent needs --checkpoint pretrained; another checkpoint names its own agent")
    found = {text: pretrained_policy(text, options.task, options.robot, options.agent) for text in asked}
    replaced = None if texts is None else [str(found[text][0]) if text in found else text for text in texts]
    return replaced, [line for _, line in found.values()]


@contextlib.contextmanager
def open_session(session: Session) -> Iterator[tuple[ManagerBasedRLEnv, list[Policy]]]:
    """Start the environment and load all policies, so that one that does not fit is refused before any runs."""
    import torch
    from isaaclab_rl.entrypoints.common import apply_env_overrides, close_env

    from umc.rl.external import ExternalPolicy
    from umc.rl.external_networks import exact_products
    from umc.tasks.memory import check_memory
    from umc.tasks.simulation import simulation
    from umc.utils.console import quiet
    from umc.utils.threads import SMALL, torch_threads

    check_memory(session.env_cfg, robot_and_stage(session.task)[0], session.device)
    if session.device == "cpu":
        torch.set_num_threads(torch_threads(SMALL).count)
    count = session.env_cfg.scene.num_envs
    for remark in session.remarks:
        print(remark)
    print(f"{session.task}, {count} envs on {session.device}", flush=True)
    with exact_products(), simulation(session.env_cfg, session.options, session.device) as (finish_phase, cleanup):
        with quiet():
            apply_env_overrides(session.options, session.env_cfg)
            env = _make(session)
            cleanup.callback(close_env, env)
            finish_phase("robots and kernels")
            inner: Any = env.unwrapped
            policies = [one.load(inner) for one in session.checkpoints]
            finish_phase("policy")
        for one in policies:
            if isinstance(one, ExternalPolicy):
                print(one.about, flush=True)
        yield inner, policies


def _make(session: Session) -> Any:
    """Make the environment; a visualizer that is not installed is the user's mistake."""
    import gymnasium as gym

    try:
        return gym.make(session.task, cfg=session.env_cfg)
    except ImportError as error:
        if not session.options.visualizer:
            raise
        names = ",".join(session.options.visualizer)
        # Isaac Lab's own advice after the first sentence is about its source checkout
        raise UmcError(f"--viz {names}: {str(error).split('. ')[0]}; install it with pip") from error
