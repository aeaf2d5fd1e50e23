# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Policies that UMC did not train: a TorchScript or ONNX file, a checkpoint, or a function, for all envs at once.

What a file reads and returns is that of the task, or is described by a YAML file (:class:`PolicyDescription`). A
network that remembers is tested before its first step: several robots side by side have to get the actions that each
gets alone.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import torch
from isaaclab.managers import ObservationGroupCfg, ObservationTermCfg
from isaaclab.utils.string import resolve_matching_names_values
from pydantic import Field, field_validator
from tensordict import TensorDict

from umc.mdp.observations import joint_mask, joint_sensor
from umc.mdp.sensor_cfg import entries
from umc.rl.external_networks import STATE_IN, STATE_OUT, is_torchscript, load_network, require_fits
from umc.utils.config import FileModel, read_yaml, validated
from umc.utils.errors import UmcError, shown
from umc.utils.io import read_json, read_text, sha256

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

GROUP = "policy"
"""Group of the task that a policy reads unless it is described otherwise."""

EXPORTED = "policy"
"""Stem of the files that ``umc export`` writes."""

MASK_GROUP = "joint_mask"
"""Group that says which joints' sensors are dead."""

SUFFIXES = (".pt", ".pth", ".jit", ".ts", ".onnx")
"""Endings of files with a network."""

YAML_SUFFIXES = (".yaml", ".yml")
"""Endings of descriptions."""

Number = Annotated[float, Field(strict=False)]


class TermDescription(FileModel):
    """A term that a policy reads: one of the task's, with other scale or clip."""

    term: Annotated[str, Field(pattern=r"^\w+(/\w+)?$")]
    """Its name in the task's group ``policy``, or ``group/term``."""
    scale: Number | list[Number] | None = None
    """Factor, or one per column; the task's own without it."""
    clip: tuple[Number, Number] | None = Field(default=None, strict=False)
    """Least and largest value before scaling; the task's own without it."""


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

    @field_validator("observations")
    @classmethod
    def _terms(cls, value: list[TermDescription | str] | None) -> list[TermDescription] | None:
        return None if value is None else [TermDescription(term=one) if isinstance(one, str) else one for one in value]


@dataclass(frozen=True)
class ExternalFile:
    """A policy's file with its description, before the simulation starts."""

    path: Path
    """File of the network, or ``package.module:function``."""
    description: PolicyDescription
    sha256: str
    """Of the network; of a function its name."""
    group: str
    """Observation group that it reads."""

    @property
    def function(self) -> str | None:
        """``package.module:function``, typed on the command line; None for a file."""
        return str(self.path) if ":" in self.path.name else None

    @property
    def is_code(self) -> bool:
        """Whether loading the file runs code that it holds; ONNX and checkpoints hold none."""
        return self.function is None and is_torchscript(self.path)


def read_external(text: str, number: int = 0, own_group: bool = False) -> ExternalFile:
    """Read what ``--policy`` names: a network, a YAML file that describes one, or ``package.module:function``.

    ``number`` tells the observation groups of several policies apart. With ``own_group`` the policy reads a copy of the
    task's group, without noise, whatever is overridden there.
    """
    path = Path(text)
    if path.suffix in YAML_SUFFIXES:
        description = validated(PolicyDescription, read_yaml(read_text(path), text), text)
        path = path.parent / description.file
    elif ":" in path.name:
        return ExternalFile(path, PolicyDescription(file=text), text, GROUP)
    else:
        path = path / f"{EXPORTED}.onnx" if path.is_dir() else path
        description = validated(PolicyDescription, {"file": path.name, **_exported_clip(path)}, text)
    if path.suffix not in SUFFIXES:
        raise UmcError(
            f"{text} names no policy; give a {', '.join(SUFFIXES)} or .yaml file, or package.module:function"
        )
    if not path.is_file():
        raise UmcError(f"no network at {path}; give the path of a TorchScript or ONNX file, or a checkpoint")
    own = own_group or description.observations is not None or description.history > 1
    return ExternalFile(path, description, sha256(path), f"external_policy_{number}" if own else GROUP)


def _exported_clip(path: Path) -> dict[str, Any]:
    """Return what ``umc export`` says beside its networks about the largest action."""
    beside = path.with_suffix(".json")
    if path.stem != EXPORTED or not beside.is_file():
        return {}
    content = read_json(beside, "export the policy again")
    control = content.get("control") if isinstance(content, dict) else None
    return {"clip_actions": control.get("action_clip")} if isinstance(control, dict) else {}


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
        return
    description, group = external.description, cast(Any, ObservationGroupCfg())
    group.concatenate_terms, group.enable_corruption = False, False
    if description.history > 1:
        group.history_length, group.flatten_history_dim = description.history, False
    terms = cast("list[TermDescription] | None", description.observations)
    if terms is None:
        terms = [TermDescription(term=name) for name in _terms_of(groups, GROUP)]
    for number, wanted in enumerate(terms):
        owner, _, name = wanted.term.rpartition("/")
        found = _terms_of(groups, owner or GROUP)
        if name not in found:
            raise UmcError(
                f"{external.path}: the task's group {owner or GROUP} has no term {name}; it has {', '.join(found)}"
            )
        term = copy.deepcopy(found[name])
        term.noise = None
        if wanted.scale is not None:
            term.scale = tuple(wanted.scale) if isinstance(wanted.scale, list) else wanted.scale
        if wanted.clip is not None:
            term.clip = wanted.clip
        setattr(group, f"term_{number}_{name}", term)
    groups[external.group] = group


def _terms_of(groups: Mapping[str, Any], name: str) -> dict[str, ObservationTermCfg]:
    if groups.get(name) is None:
        raise UmcError(f"the task has no observation group {name}; it has {', '.join(groups)}")
    return {key: term for key, term in entries(groups[name]).items() if isinstance(term, ObservationTermCfg)}


def joint_values(given: float | Mapping[str, float], names: Sequence[str]) -> list[float]:
    """Return a value per joint from one for all, or from values by pattern of names."""
    if not isinstance(given, Mapping):
        return [given] * len(names)
    try:
        numbers, _, values = resolve_matching_names_values(dict(given), list(names))
    except ValueError as error:
        raise UmcError(f"a pattern of the policy's actions fits no joint ({shown(str(error))})") from error
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


class ExternalPolicy:
    """A policy of others in a running environment; calling it gives actions as the task reads them."""

    def __init__(self, external: ExternalFile, env: ManagerBasedRLEnv) -> None:
        self._external, self._step = external, 0
        description = external.description
        robot: Any = env.scene["robot"]
        self._network = load_network(external.path, env.num_envs, env.device, description.activation)
        self._columns = _Columns(external, env)
        self._actions = _Actions(description, env, robot.joint_names)
        dims: Any = env.observation_manager.group_obs_dim
        widths = [self._columns.width, *(dims[name][0] for name in self._network.groups)]
        require_fits(external.path, self._network, widths, self._columns.about, len(robot.joint_names))

    def __call__(self, obs: TensorDict) -> torch.Tensor:
        """Return actions (num_envs, num_joints) for observation groups of the env."""
        with torch.inference_mode():
            others = [self._columns.group(obs, name) for name in self._network.groups]
            actions = self._network(self._columns(obs, self._actions.own), *others)
        bad = ~torch.isfinite(actions).all(dim=1)
        if bad.any():
            robot = int(bad.nonzero()[0])
            raise UmcError(
                f"{self._external.path} returned actions that are not finite for robot {robot} in env step "
                f"{self._step}; look at what it reads there"
            )
        self._step += 1
        return self._actions(actions)

    def reset(self, envs: torch.Tensor | None = None) -> None:
        """Forget what was seen in the masked envs, shape (num_envs,), or in all, which begin anew."""
        if envs is None:
            self._step = 0
        with torch.inference_mode():  # as what is reset was made
            self._network.reset(envs)


def load_source(external: ExternalFile) -> Any:
    """Return the network of a policy, or the function that makes it; UmcError if the file holds none."""
    if external.function is None:
        return load_network(external.path, activation=external.description.activation)
    module, _, name = external.function.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UmcError(f"--policy {external.function} cannot be imported ({shown(str(error))}); correct it") from error


def load_external(external: ExternalFile, env: ManagerBasedRLEnv) -> Any:
    """Make a policy for a running environment."""
    if external.function is None:
        return ExternalPolicy(external, env)
    policy = load_source(external)(env)
    if not callable(policy):
        raise UmcError(f"{external.function} returned no policy; return a function of observation groups")
    return policy


class _Columns:
    """Puts the columns together that a network reads."""

    def __init__(self, external: ExternalFile, env: ManagerBasedRLEnv) -> None:
        description, manager = external.description, env.observation_manager
        self._group, self._by_step = external.group, description.history_order == "step"
        names = list(cast("Any", env.scene["robot"]).joint_names)
        order = description.joints
        if order is not None and sorted(order) != sorted(names):
            raise UmcError(f"{external.path}: joints have to be all of the robot's, once each: {', '.join(names)}")
        self._order = None if order is None else torch.tensor([names.index(name) for name in order], device=env.device)
        dims: Any = manager.group_obs_dim[external.group]
        self._terms = manager.active_terms[external.group]
        cfgs = manager._group_obs_term_cfgs[external.group]  # no public way to the terms
        self._sensors = [
            (isinstance(cfg.func, joint_sensor) or cfg.func is joint_mask) and cfg.params.get("asset_cfg") is None
            for cfg in cfgs
        ]
        self._last_action = [
            isinstance(cfg.func, joint_sensor) and getattr(cfg.params["func"], "__name__", "") == "last_action"
            for cfg in cfgs
        ]
        widths = [dims] if external.group == GROUP else dims
        self.about = ", ".join(
            f"{name.split('_', 2)[-1] if external.group != GROUP else name} {tuple(shape)[-1]}"
            for name, shape in zip(self._terms, manager.group_obs_term_dim[external.group], strict=True)
        )
        self.width = sum(int(torch.tensor(tuple(shape)).prod()) for shape in widths)
        if external.group == GROUP:
            self._splits = [int(shape[-1]) for shape in manager.group_obs_term_dim[GROUP]]

    def group(self, obs: TensorDict, name: str) -> torch.Tensor:
        """Return a group that the network reads by name."""
        found = cast(torch.Tensor, obs[name])
        return found if self._order is None or name != MASK_GROUP else found[:, self._order]

    def __call__(self, obs: TensorDict, own: Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor] | None) -> Any:
        """Return the columns; ``own`` turns the task's last actions into the policy's."""
        if self._group == GROUP:
            parts = list(cast(torch.Tensor, obs[GROUP]).split(self._splits, dim=1))
        else:
            parts = [cast(torch.Tensor, obs[self._group, name]) for name in self._terms]
        mask = cast("torch.Tensor | None", obs.get(MASK_GROUP))
        for number, part in enumerate(parts):
            if own is not None and self._last_action[number]:
                part = own(part, mask)
            if self._order is not None and self._sensors[number]:
                part = part[..., self._order]
            parts[number] = part
        if parts[0].dim() == 2:
            return torch.cat(parts, dim=1)
        if self._by_step:
            return torch.cat(parts, dim=2).flatten(1)
        return torch.cat([part.flatten(1) for part in parts], dim=1)


class _Actions:
    """Turns the actions of a policy into those of the task: same joint targets, other scale, offset and order."""

    def __init__(self, description: PolicyDescription, env: ManagerBasedRLEnv, names: Sequence[str]) -> None:
        self._clip, self._device = description.clip_actions, env.device
        self._back = None
        if description.joints is not None:
            order = [description.joints.index(name) for name in names]
            self._back = torch.tensor(order, device=env.device)
        self.own: Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor] | None = None
        self._converts = description.action_scale is not None or description.action_offset is not None
        if not self._converts:
            return
        terms = [env.action_manager.get_term(name) for name in env.action_manager.active_terms]
        terms = [term for term in terms if term.action_dim]
        if len(terms) != 1 or not all(hasattr(terms[0], name) for name in ("_scale", "_offset")):
            raise UmcError("action_scale and action_offset need a task with one action term, of joint positions")
        term: Any = terms[0]
        self._task_scale, self._task_offset = term._scale, term._offset
        scale, offset = description.action_scale, description.action_offset
        self._scale = self._task_scale
        if scale is not None:
            self._scale = torch.tensor(joint_values(scale, names), device=self._device)
        self._offset = self._task_offset
        if isinstance(offset, dict):
            self._offset = torch.tensor(joint_values(offset, names), device=self._device)
        elif offset == "default":
            self._offset = cast("Any", env.scene["robot"]).data.default_joint_pos.torch.clone()
        self.own = self._own

    def _own(self, last: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Return the task's last actions as the policy's; those of dead sensors read 0 in both."""
        own = (last * self._task_scale + self._task_offset - self._offset) / self._scale
        none = (last == 0.0).all(dim=-1, keepdim=True)  # before the first action, which reads 0 in any units
        last = torch.where(none, 0.0, own)
        if mask is not None:
            last = torch.where(mask.bool() if last.dim() == 2 else mask.bool()[:, None], 0.0, last)
        return last

    def __call__(self, actions: torch.Tensor) -> torch.Tensor:
        if self._clip is not None:
            actions = actions.clamp(-self._clip, self._clip)
        if self._back is not None:
            actions = actions[:, self._back]
        if self._converts:
            actions = (actions * self._scale + self._offset - self._task_offset) / self._task_scale
        return actions
