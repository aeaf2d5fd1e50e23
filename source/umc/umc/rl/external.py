# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Policies that UMC did not train: a TorchScript or ONNX file, a checkpoint, or a function, for all envs at once.

What a file reads and returns is that of the task, or is described by a YAML file (:class:`PolicyDescription`). A
network that remembers is tested before its first step: several robots side by side have to get the actions that each
gets alone.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import importlib.util
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import torch
from isaaclab.envs import mdp as lab
from isaaclab.managers import ObservationGroupCfg, ObservationTermCfg
from isaaclab.utils.string import resolve_matching_names_values, string_to_callable
from pydantic import Field, field_validator
from tensordict import TensorDict

from umc.faults.kinds import ACTION
from umc.mdp.add_faults import MASK_GROUP
from umc.mdp.fault_terms import FAULTS_TERM
from umc.mdp.observations import (
    QUANTITIES,
    entries,
    fault_flag,
    group_terms,
    joint_mask,
    joint_sensor,
    phase_clock,
    without_sensor,
)
from umc.mdp.sensor_cfg import UNSUPPORTED_TERMS, SensorWrapper, action_terms
from umc.rl.external_networks import STATE_IN, STATE_OUT, is_torchscript, load_network, onnx_data, require_fits
from umc.rl.io_descriptor import OBSERVATIONS, control, function_name, observation_terms
from umc.robots.names import robot_names
from umc.utils.config import FileModel, read_yaml, validated
from umc.utils.description import AGAIN, read_description
from umc.utils.errors import UmcError, shown
from umc.utils.io import sha256
from umc.utils.text import read_json, read_text

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

GROUP = "policy"
"""Group of the task that a policy reads unless it is described otherwise."""

EXTERNAL_GROUP = "external_policy_"
"""Beginning of the names of groups that described policies read."""

EXPORTED = "policy"
"""Stem of the files that ``umc export`` writes."""

JOINT_FUNCTIONS = (*QUANTITIES, *UNSUPPORTED_TERMS, joint_mask)
"""Observation functions with a column per joint, besides those whose names begin with ``joint_``."""

WIDTHS = {lab.base_lin_vel: 3, lab.base_ang_vel: 3, lab.projected_gravity: 3, fault_flag: 3, phase_clock: 2}
"""Columns of observation functions that are not about joints."""

OWN_GROUP = ("observations", "history", "joints", "action_scale", "action_offset")
"""Fields of a description for which a policy reads other columns than the task's."""

SUFFIXES = (".pt", ".pth", ".jit", ".ts", ".onnx")
"""Endings of files with a network."""

YAML_SUFFIXES = (".yaml", ".yml")
"""Endings of descriptions."""

Number = Annotated[float, Field(strict=False)]


class TermDescription(FileModel):
    """A term that a policy reads: one of the task's, with other scale or clip."""

    term: Annotated[str, Field(pattern=r"^\w+(/\w+)?$")]
    """Its name in the task's group ``policy``, or ``group/term``."""
    scale: Number | Annotated[list[Number], Field(min_length=1)] | None = None
    """Factor, or one per column; the task's own without it."""
    clip: tuple[Number, Number] | None = Field(default=None, strict=False)
    """Least and largest value before scaling; the task's own without it."""

    def check_scale(self, width: int | None) -> None:
        """Raise UmcError unless there is a factor for each of so many columns; None is not known."""
        if isinstance(self.scale, list) and width not in (None, len(self.scale)):
            raise UmcError(f"the scale of {self.term} has {len(self.scale)} values, the term has {width} columns")

    @field_validator("clip")
    @classmethod
    def _ordered(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        if value is not None and not value[0] < value[1]:
            raise ValueError("give the least value, then the largest")
        return value


class PolicyDescription(FileModel):
    """What a policy reads and returns, as its YAML file says; defaults are those of the task."""

    file: Annotated[str, Field(min_length=1)]
    """Network, as a path from the YAML file's folder."""
    observations: Annotated[list[TermDescription | str], Field(min_length=1)] | None = None
    """Terms in the order of their columns."""
    history: Annotated[int, Field(ge=1, le=1000)] = 1
    """Env steps that the policy sees, the oldest first."""
    history_order: Literal["term", "step"] = "term"
    """Whether columns are all steps of the first term, then of the next, or all terms of the first step."""
    joints: Annotated[list[str], Field(min_length=1)] | None = None
    """All joints of the robot in the policy's order."""
    action_scale: Number | dict[str, Number] | None = None
    """Joint target per action [rad], or one by pattern of names."""
    action_offset: Literal["default"] | dict[str, Number] | None = None
    """Joint targets [rad] of zero actions: the default pose, or one by pattern of names."""
    clip_actions: Annotated[Number, Field(gt=0)] | None = None
    """Largest absolute action of the network."""
    activation: Literal["elu", "relu", "tanh", "selu", "gelu", "silu"] = "elu"
    """Between the layers of a checkpoint of rsl_rl or skrl, which does not say."""

    @property
    def reads_others(self) -> bool:
        """Whether it differs from the task in one of :data:`OWN_GROUP`."""
        return any(getattr(self, name) != type(self).model_fields[name].default for name in OWN_GROUP)

    def scales(self, number: int, width: int) -> list[float] | None:
        """Return the factors of a term's columns in the policy's order; None where it is not one per column."""
        term = cast("list[TermDescription]", self.observations)[number] if self.observations else None
        if term is None or not isinstance(term.scale, list):
            return None
        term.check_scale(width)
        return term.scale

    @field_validator("observations")
    @classmethod
    def _terms(cls, value: list[TermDescription | str] | None) -> list[TermDescription] | None:
        return None if value is None else [TermDescription(term=one) if isinstance(one, str) else one for one in value]

    @field_validator("action_scale")
    @classmethod
    def _not_zero(cls, value: float | dict[str, float] | None) -> float | dict[str, float] | None:
        if 0.0 in (value.values() if isinstance(value, dict) else [value]):
            raise ValueError("give another value than 0")
        return value


@dataclass(frozen=True)
class ExternalFile:
    """A policy's file with its description, before the simulation starts."""

    path: Path
    """File of the network, or ``package.module:function``."""
    description: PolicyDescription
    sha256: str
    """Of the network and its data files; of a function the file of its module, or its name where there is none."""
    group: str
    """Observation group that it reads."""
    data: tuple[Path, ...] = ()
    """Files beside an ONNX file that hold its weights."""
    sees_truth: bool = False
    """Whether it reads what working sensors without noise would report."""

    exported: Mapping[str, Any] | None = None
    """``policy.json`` beside a network of ``umc export``."""

    @property
    def function(self) -> str | None:
        """``package.module:function``, typed on the command line; None for a file."""
        return str(self.path) if ":" in self.path.name else None

    @property
    def is_code(self) -> bool:
        """Whether loading the file runs code that it holds; ONNX and checkpoints hold none."""
        return self.function is None and is_torchscript(self.path)


def read_external(text: str, number: int = 0, teacher: bool = False) -> ExternalFile:
    """Read what ``--policy`` names: a network, a YAML file that describes one, or ``package.module:function``.

    ``number`` tells the observation groups of several policies apart. A ``teacher`` reads a copy of the task's
    group, whatever is overridden there, and what working sensors without noise would report.
    """
    path = Path(text)
    if path.suffix in YAML_SUFFIXES:
        description = validated(PolicyDescription, read_yaml(read_text(path), text), text)
        path = _network(path.parent / description.file)
    elif ":" in path.name:
        source = _module_file(text.partition(":")[0])
        return ExternalFile(path, PolicyDescription(file=text), text if source is None else sha256(source), GROUP)
    else:
        path = _network(path)
        description = validated(PolicyDescription, {"file": path.name}, text)
    if path.suffix not in SUFFIXES:
        raise UmcError(
            f"{text} names no policy; give a {', '.join(SUFFIXES)} or .yaml file, or package.module:function"
        )
    if not os.path.isfile(path):
        raise UmcError(f"no network at {path}; give the path of a TorchScript or ONNX file, or a checkpoint")
    exported = _exported(path)
    if exported is not None and "clip_actions" not in description.model_fields_set:
        description = description.model_copy(update={"clip_actions": exported["control"]["action_clip"]})
    if description.history_order != "term" and description.history == 1:
        raise UmcError(f"{text}: history_order says nothing without a history; give a history or remove it")
    no_checkpoint = path.suffix == ".onnx" or is_torchscript(path)
    if no_checkpoint and description.activation != PolicyDescription.model_fields["activation"].default:
        raise UmcError(f"{text}: activation is for checkpoints, and {path} says its own; remove it")
    own = teacher or description.reads_others
    data = onnx_data(path) if path.suffix == ".onnx" else ()
    digest = sha256(path)
    if data:
        digest = hashlib.sha256("".join([digest, *map(sha256, data)]).encode()).hexdigest()
    group = f"{EXTERNAL_GROUP}{number}" if own else GROUP
    return ExternalFile(path, description, digest, group, data, teacher, exported)


def _network(path: Path) -> Path:
    """Return the network in a folder that ``umc export`` wrote; any other path as it is."""
    return path / f"{EXPORTED}.onnx" if os.path.isdir(path) else path


def _module_file(module: str) -> Path | None:
    """Return the source file of a module; None if it has none, or there is no such module."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):  # load_source says so
        return None
    return Path(spec.origin) if spec is not None and spec.origin and Path(spec.origin).is_file() else None


def _exported(path: Path) -> dict[str, Any] | None:
    """Return what ``umc export`` says beside its networks; None for a file of others."""
    beside = path.with_suffix(".json")
    if path.stem != EXPORTED or not beside.is_file():
        return None
    content = read_json(beside, AGAIN)
    return read_description(beside) if isinstance(content, dict) and "trained" in content else None


def require_as_exported(
    external: ExternalFile, env_cfg: Any, robot: str | None, joint_names: Sequence[str] | None = None
) -> None:
    """Raise UmcError unless a task is what a policy of ``umc export`` was exported for, in all that is not described.

    Without ``robot``, as for a task of another package, a robot of another name is accepted; without ``joint_names``
    they are read from the robot's file.
    """
    said, own = external.exported, external.description
    if said is None:
        return
    group, joints = entries(env_cfg.observations)[GROUP], list(said["trained"]["joint_names"])
    if joint_names is None:
        known = robot_names(env_cfg.scene.robot)
        joint_names = joints if known is None else known.joints
    exported = _interface(joints, said["control"], said["observations"][GROUP], own)
    terms = observation_terms(group, len(joint_names), external=True)
    task = _interface(joint_names, control(env_cfg, joint_names), terms, own)
    if robot is not None and not own.reads_others:
        exported, task = {"robot": said["trained"]["robot"], **exported}, {"robot": robot, **task}
    for name, value in exported.items():
        if value != task.get(name):
            raise UmcError(
                f"{external.path} was exported with {name} {shown(value)}, and the task has {shown(task.get(name))}; "
                "choose the policy's own --task and overrides, or describe it in a YAML file"
            )


def _interface(
    names: Sequence[str], acts: Mapping[str, Any], terms: Sequence[Mapping[str, Any]], described: PolicyDescription
) -> dict[str, Any]:
    """Return what an exported policy and a task have to agree on unless it is described, by its name."""
    found: dict[str, Any] = {}
    if described.joints is None:
        found["joints"] = list(names)
    for key, own in (("action_scale", described.action_scale), ("action_offset_rad", described.action_offset)):
        if own is None:
            found |= {f"{key} of {name}": value for name, value in zip(names, acts[key], strict=True)}
    if described.observations is None:
        found["observations"] = [term["function"] for term in terms]
        found |= {f"the scale of {number}. {term['function']}": term["scale"] for number, term in enumerate(terms, 1)}
    return found


def add_group(env_cfg: Any, external: ExternalFile, others: Sequence[str] = ()) -> None:
    """Add, in place, the observation group that a policy reads: copies of the task's terms, whose sensors can fail.

    Raises UmcError unless the task has the ``others``, groups that are inputs of the policy by name.
    """
    groups = entries(env_cfg.observations)
    for name in others:
        if groups.get(name) is None:
            raise UmcError(
                f"{external.path} reads {name}, and the task has no observation group of that name ({', '.join(groups)}"
                f"); an ONNX file's states are inputs NAME{STATE_IN} that it returns as NAME{STATE_OUT}"
            )
    if external.group == GROUP:
        if external.function is None:
            _terms_of(groups, GROUP)
        return
    description, group = external.description, cast(Any, ObservationGroupCfg())
    group.concatenate_terms, group.enable_corruption = False, False
    group.history_length, group.flatten_history_dim = description.history if description.history > 1 else None, False
    terms = cast("list[TermDescription] | None", description.observations)
    if terms is None:
        terms = [TermDescription(term=name) for name in _terms_of(groups, GROUP)]
        own = entries(groups[GROUP])
        if group.history_length is None:
            group.history_length, group.history_order = own.get("history_length"), own.get("history_order", "term")
    for number, wanted in enumerate(terms):
        name = wanted.term.rpartition("/")[2]
        setattr(group, f"term_{number}_{name}", _copy_term(env_cfg, external, wanted))
    groups[external.group] = group


def is_by_step(external: ExternalFile, group: Any) -> bool:
    """Return whether a policy reads all terms of a step before those of the next, as it or the task's group says."""
    # without a length Isaac Lab ignores the order
    own = entries(group).get("history_order") == "time" and bool(entries(group).get("history_length"))
    return external.description.history_order == "step" if external.description.history > 1 else own


def _copy_term(env_cfg: Any, external: ExternalFile, wanted: TermDescription) -> ObservationTermCfg:
    """Return a term of the task as a policy reads it, whose sensors can fail if there are faults."""
    owner, _, name = wanted.term.rpartition("/")
    found = _terms_of(entries(env_cfg.observations), owner or GROUP)
    if name not in found:
        raise UmcError(
            f"{external.path}: the task's group {owner or GROUP} has no term {name}; it has {', '.join(found)}"
        )
    term = copy.deepcopy(found[name])
    term.func = string_to_callable(term.func) if isinstance(term.func, str) else term.func
    term.flatten_history_dim = False
    if external.sees_truth:
        term = without_sensor(term)
    elif term.func is not joint_sensor and entries(env_cfg.events).get(FAULTS_TERM) is not None:
        if term.func in UNSUPPORTED_TERMS:
            raise UmcError(f"{external.path} reads {wanted.term}, for which there are no faults; leave it out")
        # a critic's true values would not fail
        term = SensorWrapper("robot", {}, action_terms(env_cfg)).wrap_term(term, wanted.term) or term
    if isinstance(wanted.scale, list):
        wanted.check_scale(_width(env_cfg, term))
        term.scale = None  # the columns get it in the policy's order of joints
    elif wanted.scale is not None:
        term.scale = wanted.scale
    if wanted.clip is not None:
        term.clip = wanted.clip
    if external.description.action_scale is not None or external.description.action_offset is not None:
        _use_own_units(term, external.description)
    return term


def _width(env_cfg: Any, term: ObservationTermCfg) -> int | None:
    """Return the columns of a term as far as they are known before the simulation."""
    func = _function(term)
    if func not in (*JOINT_FUNCTIONS, last_action) or not {"asset_cfg", "joint_ids"}.isdisjoint(term.params):
        return WIDTHS.get(func)
    names = robot_names(env_cfg.scene.robot)
    return None if names is None else len(names.joints)


def _terms_of(groups: Mapping[str, Any], name: str) -> dict[str, ObservationTermCfg]:
    if groups.get(name) is None:
        there = [group for group, cfg in groups.items() if cfg is not None]
        fix = f"; a YAML file names what a policy reads, as {there[0]}/TERM" if there else ""
        raise UmcError(f"the task has no observation group {name}; it has {', '.join(there) or 'none'}{fix}")
    return {key: term for key, term in entries(groups[name]).items() if isinstance(term, ObservationTermCfg)}


def _function(term: ObservationTermCfg) -> Callable[..., Any]:
    """Return what a term computes; of a joint sensor, what it wraps."""
    func: Any = term.params.get("func", term.func)
    return string_to_callable(func) if isinstance(func, str) else func


def _use_own_units(term: ObservationTermCfg, description: PolicyDescription) -> None:
    """Let a term that reports the task's last actions report the policy's, before its scale, clip and faults."""
    if _function(term) is not lab.last_action:
        return
    own = {"scale": description.action_scale, "offset": description.action_offset}
    params: dict[str, Any] = term.params
    if term.func is lab.last_action:
        term.func, term.params = last_action, {**params, **own}
    else:
        own = {**(params.get("func_params") or {}), **own}
        term.params = {**params, "func": last_action, "quantity": ACTION, "func_params": own}


def last_action(
    env: ManagerBasedRLEnv,
    action_name: str | None = None,
    scale: float | Mapping[str, float] | None = None,
    offset: Literal["default"] | Mapping[str, float] | None = None,
) -> torch.Tensor:
    """Return the last actions in a policy's units, and 0 before the first. Shape is (num_envs, num_actions)."""
    last = lab.last_action(env, action_name)
    return torch.where((last == 0.0).all(dim=1, keepdim=True), 0.0, _Units(env, scale, offset).own(last))


def joint_values(given: float | Mapping[str, float], names: Sequence[str]) -> list[float]:
    """Return a value per joint from one for all, or from values by pattern of names."""
    if not isinstance(given, Mapping):
        return [given] * len(names)
    try:
        numbers, _, values = resolve_matching_names_values(dict(given), list(names))
    except ValueError as error:
        raise UmcError(
            f"patterns of action_scale and action_offset have to fit joints, and no joint two ({shown(str(error))})"
        ) from error
    if len(numbers) < len(names):
        missing = next(name for number, name in enumerate(names) if number not in numbers)
        raise UmcError(f"action_scale and action_offset need a value for every joint; {missing} has none")
    return [value for _, value in sorted(zip(numbers, values, strict=True))]


def confirm_code(path: Path) -> None:
    """Ask whether to run the code in a file; raise UmcError unless the answer is yes."""
    if sys.stdin.isatty():
        print(f"the policy {path} is code. Run it? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    raise UmcError(f"the policy {path} is code (TorchScript); add --trust if you trust its origin")


class CheckedPolicy:
    """A policy whose actions have to be finite and as many as the task takes; UmcError names the env step."""

    def __init__(self, name: str, policy: Callable[[TensorDict], torch.Tensor], num_actions: int) -> None:
        self._name, self._policy, self._num_actions, self._step = name, policy, num_actions, 0

    def __call__(self, obs: TensorDict) -> torch.Tensor:
        """Return the policy's actions (num_envs, num_actions) for observation groups of the env."""
        actions, shape = self._policy(obs), (obs.batch_size[0], self._num_actions)
        found = tuple(actions.shape) if isinstance(actions, torch.Tensor) else type(actions).__name__
        if found != shape:
            raise UmcError(f"{self._name} returned {found} in env step {self._step}; return actions of shape {shape}")
        bad = ~torch.isfinite(actions).all(dim=1)
        if bad.any():
            raise UmcError(
                f"{self._name} returned actions that are not finite for robot {int(bad.nonzero()[0])} in env step "
                f"{self._step}; look at what it reads there"
            )
        self._step += 1
        return actions

    def reset(self, envs: torch.Tensor | None = None) -> None:
        """Forget what was seen in these envs, a mask of shape (num_envs,), or in all, which begin anew."""
        if envs is None:
            self._step = 0
        if (reset := getattr(self._policy, "reset", None)) is not None:
            reset(envs)


class ExternalPolicy:
    """A policy of others in a running environment; calling it gives actions as the task reads them."""

    def __init__(self, external: ExternalFile, env: ManagerBasedRLEnv) -> None:
        description = external.description
        self._network = load_network(external.path, env.num_envs, env.device, description.activation)
        self._columns = _Columns(external, env)
        self._actions = _Actions(description, env)
        dims: Any = env.observation_manager.group_obs_dim
        widths = [self._columns.width, *(dims[name][0] for name in self._network.groups)]
        require_fits(external.path, self._network, widths, self._columns.about, env.action_manager.total_action_dim)
        self.about = f"{external.path} reads {self._columns.about}, at {1 / env.step_dt:g} Hz"
        """What it reads, and how often, in a line."""
        self._raw = CheckedPolicy(str(external.path), self._infer, env.action_manager.total_action_dim)

    def _infer(self, obs: TensorDict) -> torch.Tensor:
        with torch.inference_mode():
            others = [self._columns.group(obs, name) for name in self._network.groups]
            return self._network(self._columns(obs), *others)

    def __call__(self, obs: TensorDict) -> torch.Tensor:
        """Return actions (num_envs, num_actions) for observation groups of the env."""
        return self._actions(self._raw(obs))

    def reset(self, envs: torch.Tensor | None = None) -> None:
        """Forget what was seen in these envs, a mask of shape (num_envs,), or in all, which begin anew."""
        self._raw.reset(envs)
        with torch.inference_mode():  # as what is reset was made
            self._network.reset(envs)


def load_source(external: ExternalFile) -> Any:
    """Return the network of a policy, or the function that makes it; UmcError if the file holds none."""
    if external.function is None:
        return load_network(external.path, activation=external.description.activation)
    module, _, name = external.function.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, SyntaxError, AttributeError, ValueError) as error:
        raise UmcError(f"{external.function} cannot be imported ({shown(str(error))}); correct it") from error
    if not callable(found):
        raise UmcError(f"{external.function} is no function ({type(found).__name__}); name one that makes the policy")
    return found


def load_external(external: ExternalFile, env: ManagerBasedRLEnv) -> Any:
    """Make a policy for a running environment."""
    if external.function is None:
        return ExternalPolicy(external, env)
    policy = load_source(external)(env)
    if not callable(policy):
        raise UmcError(f"{external.function} returned no policy; return a function of observation groups")
    return CheckedPolicy(external.function, cast(Any, policy), env.action_manager.total_action_dim)


class _Columns:
    """Puts the columns together that a network reads."""

    def __init__(self, external: ExternalFile, env: ManagerBasedRLEnv) -> None:
        description, manager = external.description, env.observation_manager
        cfg = entries(cast("Any", manager.cfg))[external.group]
        self._group, self._by_step = external.group, is_by_step(external, cfg)
        names = list(cast("Any", env.scene["robot"]).joint_names)
        order = description.joints
        if order is not None and sorted(order) != sorted(names):
            raise UmcError(f"{external.path}: joints have to be all of the robot's, once each: {', '.join(names)}")
        self._order = None if order is None else torch.tensor([names.index(name) for name in order], device=env.device)
        dims: Any = manager.group_obs_dim[external.group]
        terms = group_terms(env, external.group)
        self._terms = list(terms)
        shapes = manager.group_obs_term_dim[external.group]
        self._orders: list[torch.Tensor | None] = [None] * len(terms)
        self._scales: list[torch.Tensor | None] = [None] * len(terms)
        for number, (cfg, shape) in enumerate(zip(terms.values(), shapes, strict=True)):
            width = tuple(shape)[-1]
            if (scale := description.scales(number, width)) is not None:
                self._scales[number] = torch.tensor(scale, device=env.device)
            columns = None if order is None else _joints_of(cfg, env, names)
            if order is None or (columns is None and not _may_be_of_joints(cfg, width, len(names))) or width == 1:
                continue
            if columns is None or len(columns) != width:
                raise UmcError(
                    f"{external.path}: joints order the columns of joints, and it is not known which of {width} "
                    f"{function_name(cfg)} has for which joint; leave joints or the term out"
                )
            if sorted(columns) != sorted(order):
                raise UmcError(
                    f"{external.path}: joints order all joints, and {function_name(cfg)} reports "
                    f"{', '.join(columns)} only; leave joints or the term out"
                )
            self._orders[number] = torch.tensor([columns.index(name) for name in order], device=env.device)
        widths = [dims] if external.group == GROUP else dims
        self.about = ", ".join(
            f"{name.split('_', 2)[-1] if external.group != GROUP else name} {tuple(shape)[-1]}"
            for name, shape in zip(self._terms, shapes, strict=True)
        )
        self.width = sum(math.prod(shape) for shape in widths)

    def group(self, obs: TensorDict, name: str) -> torch.Tensor:
        """Return a group that the network reads by name."""
        found = cast(torch.Tensor, obs[name])
        return found if self._order is None or name != MASK_GROUP else found[:, self._order]

    def __call__(self, obs: TensorDict) -> torch.Tensor:
        if self._group == GROUP:
            return cast(torch.Tensor, obs[GROUP])
        parts = [cast(torch.Tensor, obs[self._group, name]) for name in self._terms]
        parts = [part if order is None else part[..., order] for part, order in zip(parts, self._orders, strict=True)]
        parts = [part if scale is None else part * scale for part, scale in zip(parts, self._scales, strict=True)]
        if self._by_step:
            return torch.cat(parts, dim=2).flatten(1)
        return torch.cat([part.flatten(1) for part in parts], dim=1)


def _joints_of(term: ObservationTermCfg, env: ManagerBasedRLEnv, names: Sequence[str]) -> list[str] | None:
    """Return the joints of a term's columns in their order; None for a term that is not about joints."""
    func = _function(term)
    if func in (lab.last_action, last_action):
        return list(joint_action(env)._joint_names)
    if func not in JOINT_FUNCTIONS and not getattr(func, "__name__", "").startswith("joint_"):
        return None
    asset_cfg = term.params.get("asset_cfg")
    numbers: Any = term.params.get("joint_ids") if asset_cfg is None else asset_cfg.joint_ids
    return list(names) if numbers is None or isinstance(numbers, slice) else [names[int(one)] for one in numbers]


def _may_be_of_joints(term: ObservationTermCfg, width: int, num_joints: int) -> bool:
    """Return whether a term that is not known to be about joints could have a column per joint."""
    asset_cfg = term.params.get("asset_cfg")
    of_bodies = "sensor_cfg" in term.params or getattr(asset_cfg, "body_names", None) is not None
    return width == num_joints and not of_bodies and function_name(term) not in OBSERVATIONS


class _Units:
    """Converts between the actions of a policy and those of the task: same joint targets, other scale and offset."""

    def __init__(
        self,
        env: ManagerBasedRLEnv,
        scale: float | Mapping[str, float] | None,
        offset: Literal["default"] | Mapping[str, float] | None,
    ) -> None:
        term = joint_action(env)
        names, device = tuple(term._joint_names), str(env.device)
        self._task_scale, self._task_offset = term._scale, term._offset
        self._scale, self._offset = self._task_scale, self._task_offset
        if scale is not None:
            self._scale = _on_device(tuple(joint_values(scale, names)), device)
        if isinstance(offset, Mapping):
            self._offset = _on_device(tuple(joint_values(offset, names)), device)
        elif offset is not None:
            self._offset = cast("Any", env.scene["robot"]).data.default_joint_pos.torch[:, term._joint_ids]

    def own(self, actions: torch.Tensor) -> torch.Tensor:
        """Return the policy's actions for the task's."""
        return (actions * self._task_scale + self._task_offset - self._offset) / self._scale

    def task(self, actions: torch.Tensor) -> torch.Tensor:
        """Return the task's actions for the policy's."""
        return (actions * self._scale + self._offset - self._task_offset) / self._task_scale


@cache
def _on_device(values: tuple[float, ...], device: str) -> torch.Tensor:
    """Return values as a tensor, copied once: a copy in every step would make the host wait for a GPU."""
    return torch.tensor(values, device=device)


def joint_action(env: ManagerBasedRLEnv) -> Any:
    """Return the action term of an environment; raise UmcError unless it has one, of joint positions."""
    terms: list[Any] = [env.action_manager.get_term(name) for name in env.action_manager.active_terms]
    terms = [term for term in terms if term.action_dim]
    if len(terms) != 1 or not isinstance(terms[0].cfg, lab.JointPositionActionCfg):
        raise UmcError("joints, action_scale and action_offset need a task with one action term, of joint positions")
    return terms[0]


class _Actions:
    """Turns the actions of a policy into those of the task: same joint targets, other scale, offset and order."""

    def __init__(self, description: PolicyDescription, env: ManagerBasedRLEnv) -> None:
        self._clip, self._back, self.units = description.clip_actions, None, None
        if description.joints is not None:
            names = joint_action(env)._joint_names
            if len(names) < len(description.joints):
                raise UmcError(f"joints need actions of all joints; the task's are of {', '.join(names)}")
            order = [description.joints.index(name) for name in names]
            self._back = torch.tensor(order, device=env.device)
        if description.action_scale is not None or description.action_offset is not None:
            self.units = _Units(env, description.action_scale, description.action_offset)

    def __call__(self, actions: torch.Tensor) -> torch.Tensor:
        if self._clip is not None:
            actions = actions.clamp(-self._clip, self._clip)
        if self._back is not None:
            actions = actions[:, self._back]
        return actions if self.units is None else self.units.task(actions)
