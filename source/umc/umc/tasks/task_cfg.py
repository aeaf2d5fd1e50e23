# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""From a command line to Isaac Lab cfgs, by Isaac Lab's own functions; every mistake becomes one line."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.util
import inspect
import numbers
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from umc.rl.critics import LIVE_GROUP
from umc.utils.cli import at_least_one, did_you_mean
from umc.utils.config import override_key
from umc.utils.distributed import ranks_from_env
from umc.utils.errors import UmcError

HYDRA_QUIET = [
    "hydra/job_logging=disabled",
    "hydra/hydra_logging=disabled",
    "hydra.run.dir=.",
    "hydra.output_subdir=null",
]
"""Keeps Hydra from making folders and from taking over logging, where it is asked to compose (``+key=value``)."""

FLAGS = {
    "env.sim.device": "--device",
    "agent.device": "--device",
    "env.seed": "--seed",
    "agent.resume": "--resume",
    "agent.load_run": "--checkpoint",
    "agent.load_checkpoint": "--checkpoint",
}
"""Fields that a flag decides: an override of them would be ignored."""

SELECTORS = ("physics", "renderer", "presets")
"""Tokens that choose presets; see ``isaaclab_tasks.utils.preset_cli``."""

ENGINES = {"ovphysx": ("ovphysx", "newton_mjwarp"), "newton_mjwarp": ("newton", "ovphysx")}
"""Python package of each engine that needs no Isaac Sim, and the other one."""


def names_engine(overrides: Sequence[str]) -> bool:
    """Return whether an override or a preset chooses the engine."""
    presets = {name for token in overrides if override_key(token) == "presets" for name in token[8:].split(",")}
    return bool(presets & {*ENGINES, "isaacsim_physx"}) or any(
        override_key(token).lstrip("+~") == "physics" or override_key(token).startswith("env.sim.physics")
        for token in overrides
    )


def default_engine(device: str) -> tuple[str, str]:
    """Return the faster engine of a device (ovphysx on a CPU, Newton on a GPU), and a line that names it."""
    cpu = device == "cpu" and importlib.util.find_spec("ovphysx") is not None
    engine = "ovphysx" if cpu else "newton_mjwarp"
    place = "CPU" if device == "cpu" else "GPU"
    return engine, f"engine: {engine}, the default on a {place} (physics={ENGINES[engine][1]} for the other)"


def resolve_cfgs(task: str, agent: str | None, overrides: list[str]) -> tuple[Any, Any]:
    """Return env and agent cfg (None: no agent) of a task with presets and overrides; raise UmcError for a wrong one.

    Isaac Lab applies ``env.`` and ``agent.`` overrides without asking whether the field exists: a misspelt one would be
    ignored in silence. They are checked here first.
    """
    with one_line_errors():
        from isaaclab_tasks.utils import resolve_task_config

        from umc.tasks.bodies import check_robot, name_bodies

        presets = [token for token in overrides if override_key(token) in SELECTORS]
        env_cfg, agent_cfg = resolve_task_config(task, agent, overrides=presets)
        check_overrides({"env": env_cfg, "agent": agent_cfg}, overrides)
        raw = any(override_key(token).split(".")[0] not in ("env", "agent", *SELECTORS) for token in overrides)
        env_cfg, agent_cfg = resolve_task_config(task, agent, overrides=overrides + (HYDRA_QUIET if raw else []))
        name_bodies(env_cfg)
        check_robot(env_cfg)
        _check_complete(task, env_cfg)
        return env_cfg, agent_cfg


def _check_complete(task: str, env_cfg: Any) -> None:
    """Refuse a cfg with fields that a subclass has to set and has not: the simulation would print all of it."""
    try:
        env_cfg.validate()
    except TypeError as error:
        fields = [line.removeprefix("  - ") for line in str(error).splitlines() if line.startswith("  - ")]
        raise UmcError(f"the cfg of {task} has to set {', '.join(fields) or error}") from error


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what Isaac Lab and Hydra raise over a user's override into a :class:`UmcError` of one line."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    before = os.environ.get("HYDRA_FULL_ERROR")
    os.environ["HYDRA_FULL_ERROR"] = "1"  # else Hydra prints and exits by itself
    try:
        yield
    except UmcError:
        raise
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise UmcError(" ".join(lines) or type(error).__name__) from error
    finally:
        if before is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = before


def check_overrides(sections: dict[str, Any], overrides: list[str]) -> None:
    """Raise UmcError for an override of an unknown field, of one that a flag sets, or of a number by another type."""
    from isaaclab_tasks.utils.hydra import _parse_val

    keys = [override_key(token) for token in overrides]
    for token, key in zip(overrides, keys, strict=True):
        section, *path = key.split(".")
        if section not in sections:
            continue
        if key in FLAGS:
            raise UmcError(f"{token}: nothing reads {key} here; give {FLAGS[key]}")
        if any(key.startswith(f"{other}.") for other in keys if other != key):
            continue  # another override replaces a part of the tree above it
        current = _field(sections[section], section, path)
        value = _parse_val(token.split("=", 1)[1])
        number = isinstance(current, numbers.Number) and not isinstance(current, bool)
        if number and value is not None and not isinstance(value, numbers.Number):
            raise UmcError(f"{token}: {key} takes a number")


def _field(cfg: Any, where: str, path: list[str]) -> Any:
    """Return the value of a field that an override names; None for a term's parameter left at its default."""
    for name in path:
        known = _names(cfg)
        if name not in known:
            hint = did_you_mean(name, known)
            raise UmcError(f"unknown override {where}.{name}: {where} has no field {name}{hint and ';'}{hint}")
        if isinstance(cfg, Mapping):
            cfg = cfg[name]
        elif name == "params" and hasattr(cfg, "func"):
            function = cfg.func.__call__ if isinstance(cfg.func, type) else cfg.func
            cfg = {**dict.fromkeys(inspect.signature(function).parameters), **cfg.params}
        else:
            cfg = getattr(cfg, name)
        where = f"{where}.{name}"
    return cfg


def _names(cfg: Any) -> list[str]:
    if isinstance(cfg, Mapping):
        return list(cfg)
    return [name for name in vars(cfg) if not name.startswith("_")] if dataclasses.is_dataclass(cfg) else []


def check_sizes(env_cfg: Any, agent_cfg: Any) -> None:
    """Raise UmcError for counts below 1, however they were given."""
    at_least_one(env_cfg.scene.num_envs, "env.scene.num_envs")
    at_least_one(agent_cfg.max_iterations, "agent.max_iterations")
    at_least_one(agent_cfg.num_steps_per_env, "agent.num_steps_per_env")
    at_least_one(agent_cfg.save_interval, "agent.save_interval")


def check_groups(env_cfg: Any, agent_cfg: Any) -> None:
    """Raise UmcError for observation groups that the task does not have."""
    groups = [name for name in _names(env_cfg.observations) if getattr(env_cfg.observations, name) is not None]
    known = [*groups, LIVE_GROUP] if getattr(agent_cfg, "critic_sees_faults", False) else groups
    if not isinstance(agent_cfg.obs_groups, Mapping):
        raise UmcError("agent.obs_groups is not set as a whole; give agent.obs_groups.actor or agent.obs_groups.critic")
    for reader, read in agent_cfg.obs_groups.items():
        if not isinstance(read, list) or not read or any(name not in known for name in read):
            raise UmcError(
                f"agent.obs_groups.{reader} is {read}; it lists some of {', '.join(known)}, in quotes: "
                f"""'agent.obs_groups.{reader}=["{known[0]}"]'"""
            )


def check_launch(env_cfg: Any, options: argparse.Namespace) -> None:
    """Raise UmcError for what cannot start here, such as an engine that is not installed."""
    from isaaclab.app import validate_launch

    with one_line_errors():
        _, needs_kit = validate_launch(env_cfg, options)
    if needs_kit and importlib.util.find_spec("isaacsim") is None:
        raise UmcError(
            f"{needs_kit[0]} needs Isaac Sim, which is not installed; choose physics=newton_mjwarp or physics=ovphysx"
        )
    engine = physics_name(env_cfg)
    package, other = ENGINES.get(engine, (None, None))
    if package is not None and importlib.util.find_spec(package) is None:
        raise UmcError(
            f"physics={engine} needs the Python package {package}, which is not installed; install the version in "
            f"requirements.lock, or choose physics={other}"
        )


def pick_device(device: str | None) -> str:
    """Return the device asked for, else the first GPU, else the CPU; each of several ranks gets a GPU of its own."""
    import torch

    ranks, count = ranks_from_env(), torch.cuda.device_count()
    if ranks.several and device not in (None, "cpu", "cuda"):
        raise UmcError(f"--device {device}: each process takes the GPU of its number; give cuda, cpu or no --device")
    try:
        chosen = torch.device(device or ("cuda" if count else "cpu"))
    except RuntimeError as error:
        raise UmcError(f"unknown device {device}; choose cpu, cuda or cuda:N") from error
    if chosen.type == "cpu":
        return "cpu"
    if chosen.type != "cuda":
        raise UmcError(f"cannot simulate on {device}; choose cpu, cuda or cuda:N")
    # schedulers such as SLURM show each process its own GPU only
    number = ranks.local_rank if ranks.several and count > 1 else chosen.index or 0
    if number < count:
        return f"cuda:{number}"
    if ranks.several and count:
        raise UmcError(
            f"process {number} of this machine has no GPU (there are {count}); give torchrun --nproc_per_node {count}, "
            "or --device cpu"
        )
    raise UmcError(f"no device {device} on this machine ({count} GPUs); choose another or --device cpu")


def physics_name(env_cfg: Any) -> str:
    """Return the name of the engine preset that a resolved env cfg stands for."""
    from isaaclab_rl.entrypoints.common import _physics_backend_name

    return _physics_backend_name(env_cfg.sim.physics)
