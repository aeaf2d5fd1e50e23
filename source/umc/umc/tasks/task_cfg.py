# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""From a command line to Isaac Lab cfgs, by Isaac Lab's own functions; every mistake becomes one line."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import importlib.util
import inspect
import numbers
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from umc.rl.critics import LIVE_GROUP
from umc.rl.skrl.cfg import require_skrl
from umc.tasks.limits import check_values
from umc.utils.cli import did_you_mean
from umc.utils.config import SELECTORS, override_key
from umc.utils.distributed import num_gpus, ranks_from_env
from umc.utils.errors import UmcError, shown
from umc.utils.naming import library_of
from umc.utils.process import environment

FLAGS = {
    "env.sim.device": "--device",
    "agent.device": "--device",
    "env.seed": "--seed",
    "agent.resume": "--resume",
    "agent.load_run": "--checkpoint",
    "agent.load_checkpoint": "--checkpoint",
}
"""Fields that a flag decides: an override of them would be ignored."""

EXAMPLES = {"env": "env.scene.num_envs", "agent": "agent.algorithm.gamma"}
"""A field of each section."""

LONGEST_OVERRIDE = 4096
"""Longest override that is read [characters]: parsers recurse into brackets."""

NEEDED = re.compile(
    r"agent\.\w+|env\.(?!curriculum$)\w+|env\.sim\.physics"
    r"|env\.scene\.(terrain|robot(\.(spawn|init_state(\.joint_pos)?|actuators(\.\w+)?))?)|.+\.params"
)
"""Sections that cannot be null; most terms, noise and pushes can."""

TAKEN = ("self", "env", "env_ids")
"""Arguments of a term's function that Isaac Lab gives itself."""

ENGINES = {"ovphysx": ("ovphysx", "newton_mjwarp"), "newton_mjwarp": ("newton", "ovphysx")}
"""Python package of each engine that needs no Isaac Sim, and the other one."""

PHYSX_LIBRARY = "libGL.so.1"
"""System library that ovphysx links, also where nothing is drawn."""


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


def offers_engine(task: str, engine: str) -> bool:
    """Return whether ``physics=<engine>`` can be given for a task."""
    from isaaclab_tasks.utils import PresetCfg, load_cfg_from_registry

    sim = getattr(load_cfg_from_registry(task, "env_cfg_entry_point"), "sim", None)
    physics = getattr(sim, "physics", None)
    return isinstance(physics, PresetCfg) and hasattr(physics, engine)


def resolve_cfgs(task: str, agent: str | None, overrides: list[str]) -> tuple[Any, Any]:
    """Return env and agent cfg (None: no agent) of a task with presets and overrides; raise UmcError for a wrong one.

    Isaac Lab applies ``env.`` and ``agent.`` overrides without asking whether the field exists: a misspelt one would be
    ignored in silence. They are checked here first.
    """
    with one_line_errors():
        from isaaclab_tasks.utils import resolve_task_config

        from umc.tasks.bodies import check_robot

        presets = [token for token in overrides if override_key(token) in SELECTORS]
        env_cfg, agent_cfg = resolve_task_config(task, agent, overrides=presets)
        before = {"env": env_cfg, "agent": agent_cfg}
        check_overrides(before, overrides)
        env_cfg, agent_cfg = resolve_task_config(task, agent, overrides=overrides)
        check_presets(before, {"env": env_cfg, "agent": agent_cfg}, overrides)
        check_values(env_cfg, agent_cfg)
        if library_of(agent or "") == "skrl":
            require_skrl(agent_cfg)
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

    try:
        with environment(HYDRA_FULL_ERROR="1"):  # else Hydra prints and exits by itself
            yield
    except UmcError:
        raise
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise UmcError(" ".join(lines) or type(error).__name__) from error


def check_overrides(sections: dict[str, Any], overrides: list[str]) -> None:
    """Raise UmcError for an override of an unknown field, of one that a flag sets, or by a value of another type."""
    from isaaclab_tasks.utils.hydra import _parse_val

    keys = [override_key(token) for token in overrides]
    for token, key in zip(overrides, keys, strict=True):
        _check_override(sections, token, key)
        section, *path = key.split(".")
        if section in SELECTORS or any(key.startswith(f"{other}.") for other in keys if other != key):
            continue  # another override replaces a part of the tree above it
        current, value = _field(sections[section], section, path), _parse_val(token.split("=", 1)[1])
        if (
            value is None
            and NEEDED.fullmatch(key)
            and (isinstance(current, Mapping) or dataclasses.is_dataclass(current))
        ):
            raise UmcError(f"{shown(token)}: {key} cannot be null; set fields of it instead")
        if value is None and key == "env.ui_window_class_type":
            continue  # no window
        if "severity" in path and isinstance(value, dict):
            continue  # a distribution in the place of a number: add_faults checks what is in it
        wanted = _wanted(current, value)
        if wanted is not None:
            raise UmcError(f"{shown(token)}: {key} takes {wanted}")


def _check_override(sections: Mapping[str, Any], token: str, key: str) -> None:
    """Raise UmcError for an override that names no field that could be changed."""
    if len(token) > LONGEST_OVERRIDE:
        raise UmcError(f"the override of {shown(key)} has {len(token)} characters; shorten it to {LONGEST_OVERRIDE}")
    section, *path = key.split(".")
    if section in SELECTORS:
        if key == token.rstrip("="):
            raise UmcError(f"{token} names no preset; write it as physics=ovphysx, or leave it out")
        return
    name = section.lstrip("+~")
    if name in sections and name != section:
        sign = section.removesuffix(name)
        raise UmcError(f"{shown(token)}: fields can be neither added nor deleted; leave out {sign}")
    if section not in sections:
        raise UmcError(f"unknown override {shown(token)}; overrides begin with env., agent. or physics=")
    if sections[section] is None:
        raise UmcError(f"{shown(token)}: there is no {section} here whose fields could change; leave it out")
    if not all(path) or not path:
        raise UmcError(f"{shown(token)}: name a field of {section}, such as {EXAMPLES[section]}")
    if key in FLAGS:
        raise UmcError(f"{shown(token)}: nothing reads {key} here; give {FLAGS[key]}")


def _wanted(current: Any, value: Any) -> str | None:
    """Return what a field takes, in words, if ``value`` is something else; None if it may be right."""
    if callable(current) and not _is_function(value):
        return "the name of a function or class, as module:name"
    if value is None or current is None:
        return None
    if isinstance(current, bool):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(current, numbers.Number):
        return None if _is_number(value) else f"a {'finite ' if isinstance(value, float) else ''}number"
    if isinstance(current, str):
        return None if isinstance(value, str) else f"text; put it in quotes: '\"{value}\"'"
    if isinstance(current, list | tuple):
        return _wanted_list(current, value)
    if dataclasses.is_dataclass(current):  # a word names a preset: check_presets
        return None if isinstance(value, str) else "a preset; to change a field of it, add its name with a dot"
    return None


def _wanted_list(current: Sequence[Any], value: Any) -> str | None:
    numeric = bool(current) and all(_is_number(item) for item in current)
    # names may be a single pattern, numbers a mapping from names: who reads the field checks what is in it
    if isinstance(value, dict) if numeric else isinstance(value, str):
        return None
    if not isinstance(value, list | tuple) or (numeric and not all(_is_number(item) for item in value)):
        return f"a list of {'numbers' if numeric else 'values'}, such as {list(current)}"
    # the ends of a range are a tuple
    if numeric and isinstance(current, tuple) and len(value) != len(current):
        return f"{len(current)} values, such as {list(current)}"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_function(name: Any) -> bool:
    from isaaclab.utils.string import string_to_callable

    try:
        return isinstance(name, str) and callable(string_to_callable(name))
    except (ValueError, TypeError, ImportError, AttributeError):
        return False


def check_presets(before: dict[str, Any], after: dict[str, Any], overrides: list[str]) -> None:
    """Raise UmcError for a word that has replaced a section of the cfg, since it names no preset of it."""
    keys = [override_key(token) for token in overrides]
    for key in keys:
        section, *path = key.split(".")
        if section not in before or any(key.startswith(f"{other}.") for other in keys if other != key):
            continue
        if not dataclasses.is_dataclass(_field(before[section], section, path)):
            continue
        word = _field(after[section], section, path)
        if isinstance(word, str):
            raise UmcError(f"{key} has no preset {shown(word)}; to change a field of it, add its name with a dot")


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
            parameters = [one for one in inspect.signature(function).parameters if one not in TAKEN]
            cfg = {**dict.fromkeys(parameters), **cfg.params}
        else:
            cfg = getattr(cfg, name)
        where = f"{where}.{name}"
    return cfg


def _names(cfg: Any) -> list[str]:
    if isinstance(cfg, Mapping):
        return list(cfg)
    return [name for name in vars(cfg) if not name.startswith("_")] if dataclasses.is_dataclass(cfg) else []


def check_mirror(agent_cfg: Any, overrides: Iterable[str]) -> None:
    """Raise UmcError if overrides give a mirror loss to an agent without mirror images."""
    given = {override_key(token) for token in overrides}
    if "agent.mirror_loss" in given and "agent.mirror" not in given and not agent_cfg.mirror:
        raise UmcError("agent.mirror_loss has no effect without mirror images; add agent.mirror=true")


def check_groups(env_cfg: Any, agent_cfg: Any) -> None:
    """Raise UmcError for observation groups that the task does not have."""
    groups = [name for name in _names(env_cfg.observations) if getattr(env_cfg.observations, name) is not None]
    known = [*groups, LIVE_GROUP] if agent_cfg.critic_sees_faults else groups
    if not isinstance(agent_cfg.obs_groups, Mapping):
        raise UmcError("agent.obs_groups is not set as a whole; give agent.obs_groups.actor or agent.obs_groups.critic")
    for reader, read in agent_cfg.obs_groups.items():
        if not isinstance(read, list) or not read or any(name not in known for name in read):
            raise UmcError(
                f"agent.obs_groups.{reader} is {read}; it lists some of {', '.join(known)}, in quotes: "
                f"""'agent.obs_groups.{reader}=["{known[0]}"]'"""
            )
    _check_joint_columns(env_cfg, agent_cfg)


def _check_joint_columns(env_cfg: Any, agent_cfg: Any) -> None:
    """Raise UmcError if the actor would mask other columns of the group ``policy`` than those of the joints.

    Tasks of other packages, and networks that read no mask and all columns alike, are left as they are.
    """
    from umc.rl.io_descriptor import JOINT_TERMS, joint_columns
    from umc.rl.model_cfg import UmcModelCfg
    from umc.tasks.bodies import BodyNamesCfg

    actor, groups = agent_cfg.actor, agent_cfg.obs_groups.get("actor", ())
    if not isinstance(getattr(env_cfg, "bodies", None), BodyNamesCfg) or not isinstance(actor, UmcModelCfg):
        return
    if groups[:1] != ["policy"] or (actor.mask_group not in groups and actor.hidden_dims):
        return
    count = len(actor.joint_names)
    found = joint_columns(env_cfg.observations.policy, count)
    for number, function in enumerate(JOINT_TERMS):
        start = actor.joint_start + number * count
        columns = found.get(function, (start, start + count))  # unknown: left to the network
        if columns != (start, start + count):
            there = "lacks it" if columns is None else f"has it in {columns[0]} to {columns[1] - 1}"
            raise UmcError(
                f"the actor reads {function} in columns {start} to {start + count - 1} of the group policy, and the "
                f"task {there}; leave out histories of its terms, or correct agent.actor.joint_start"
            )


def check_launch(env_cfg: Any, options: argparse.Namespace) -> None:
    """Raise UmcError for what cannot start here, such as an engine that is not installed."""
    from isaaclab.app import validate_launch

    with one_line_errors():
        _, needs_kit = validate_launch(env_cfg, options)
    if needs_kit and importlib.util.find_spec("isaacsim") is None:
        fix = "choose physics=newton_mjwarp or physics=ovphysx"
        if env_cfg.sim.physics is None:
            fix = "set sim.physics = umc.tasks.base.physics_presets(njmax=200, nconmax=40) in the task's cfg"
        raise UmcError(f"{needs_kit[0]} needs Isaac Sim, which is not installed; {fix}")
    engine = physics_name(env_cfg)
    package, other = ENGINES.get(engine, (None, None))
    if package is not None and importlib.util.find_spec(package) is None:
        raise UmcError(
            f"physics={engine} needs the Python package {package}, which is not installed; install the version in "
            f"requirements.lock, or choose physics={other}"
        )
    if engine == "ovphysx" and sys.platform == "linux":
        try:
            ctypes.CDLL(PHYSX_LIBRARY)
        except OSError as error:
            raise UmcError(
                f"physics=ovphysx needs {PHYSX_LIBRARY}, which this system lacks; install it (Debian, Ubuntu: "
                f"apt-get install libgl1), or choose physics={other}"
            ) from error


def pick_device(device: str | None) -> str:
    """Return the device asked for, else the first GPU, else the CPU; each of several ranks gets a GPU of its own."""
    import torch

    ranks, count = ranks_from_env(), num_gpus()
    if ranks.is_distributed and device not in (None, "cpu", "cuda"):
        raise UmcError(f"--device {device}: each process takes the GPU of its number; give cuda, cpu or no --device")
    try:
        chosen = torch.device(("cuda" if count else "cpu") if device is None else device)
    except RuntimeError as error:
        raise UmcError(f"unknown device {device or "''"}; choose cpu, cuda or cuda:N") from error
    if chosen.type == "cpu":
        return "cpu"
    if chosen.type != "cuda":
        raise UmcError(f"cannot simulate on {device}; choose cpu, cuda or cuda:N")
    # schedulers such as SLURM show each process its own GPU only
    number = ranks.local_rank if ranks.is_distributed and count > 1 else chosen.index or 0
    if number < count:
        return f"cuda:{number}"
    if ranks.is_distributed and count:
        raise UmcError(
            f"process {number} of this machine has no GPU (there are {count}); give torchrun --nproc_per_node {count}, "
            "or --device cpu"
        )
    if not count:
        built = torch.version.cuda
        why = "has no CUDA" if built is None else f"with CUDA {built} finds no GPU, or only an older driver"
        fix = "install one with CUDA" if built is None else "update the NVIDIA driver (nvidia-smi shows it)"
        what = f"no device {device} on this machine: torch {torch.__version__} {why}"
        raise UmcError(f"{what}; {fix} or give --device cpu")
    raise UmcError(f"no device {device} on this machine ({count} GPUs); choose another or --device cpu")


def physics_name(env_cfg: Any) -> str:
    """Return the name of the engine preset that a resolved env cfg stands for."""
    from isaaclab_rl.entrypoints.common import _physics_backend_name

    return _physics_backend_name(env_cfg.sim.physics)
