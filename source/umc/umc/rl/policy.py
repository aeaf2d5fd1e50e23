# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Load a policy from a checkpoint, without runner, optimizer or simulator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from rsl_rl.utils import resolve_class
from tensordict import TensorDict

from umc.models.size import check_network
from umc.rl.checkpoint import CheckpointInfo, checkpoint_info, read_checkpoint, require_match
from umc.rl.models import MaskedModel
from umc.utils.code_names import require_trusted_code
from umc.utils.config import merged, override_key, read_yaml
from umc.utils.errors import UmcError, shown
from umc.utils.io import leaves, sha256
from umc.utils.text import read_text

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

ACTOR_SET = "actor"
"""rsl_rl's name of the policy and of the groups that it reads."""

CRITIC_SET = "critic"
"""The same of the value function."""

AGENT_FILE = "params/agent.yaml"
"""File in a run folder that holds the agent cfg."""

LEGACY_FIELDS = ("stochastic", "init_noise_std", "noise_std_type", "state_dependent_std")
"""Fields that Isaac Lab's model cfgs keep for older rsl_rl; the model classes do not take them."""


class Policy(Protocol):
    """From observation groups to actions."""

    def __call__(self, obs: TensorDict) -> torch.Tensor:
        """Return actions for observation groups."""
        ...

    def reset(self, envs: torch.Tensor | None) -> None:
        """Forget what was seen in these envs, a mask of shape (num_envs,), or in all."""
        ...


@dataclass(frozen=True)
class LoadedPolicy:
    """A policy with what is known about its origin; calling it gives mean actions."""

    actor: MaskedModel
    info: CheckpointInfo
    path: Path
    sha256: str
    """Fingerprint of the checkpoint file."""
    clip: float | None
    """Largest absolute action, as the agent was trained with; None for no bound."""

    def __call__(self, obs: TensorDict) -> torch.Tensor:
        """Return mean actions (num_envs, num_joints), without exploration noise, for observation groups of the env."""
        with torch.inference_mode():
            actions = self.actor(obs)
        return actions if self.clip is None else actions.clamp(-self.clip, self.clip)

    def reset(self, envs: torch.Tensor | None) -> None:
        """Forget what was seen in these envs, a mask of shape (num_envs,), or in all."""
        self.actor.reset(envs)


def stored_agent(checkpoint: Path, info: CheckpointInfo) -> dict[str, Any]:
    """Return the agent cfg that a checkpoint was trained with, as a dictionary.

    The run keeps it in :data:`AGENT_FILE`. Where that file is missing, it is the registered cfg with the overrides that
    the checkpoint holds.
    """
    path = checkpoint.parent / AGENT_FILE
    if path.is_file():
        fix = "restore it, or move the checkpoint out of its run folder"
        try:
            agent = read_yaml(read_text(path), str(path), tuples=True)
        except UmcError as error:
            raise UmcError(f"{error} ({path} is damaged); {fix}") from error
        if not _is_agent(agent):
            raise UmcError(f"{path} is not an agent configuration; {fix}")
        names = [f"{place.rpartition('.')[2]}={value}" for place, value in leaves(agent) if isinstance(value, str)]
        require_trusted_code(names, str(path))
        check_network(agent[ACTOR_SET], len(info.joint_names), f"{path}, {ACTOR_SET}")
        return agent
    require_trusted_code(info.network_overrides, str(checkpoint))
    agent = merged(registered_agent(info.task, info.agent), _agent_values(info.network_overrides))
    if not _is_agent(agent):
        raise UmcError(f"{checkpoint} names {info.agent}, which is no agent of {info.task}; give another checkpoint")
    check_network(agent[ACTOR_SET], len(info.joint_names), f"{checkpoint}, {ACTOR_SET}")
    return agent


def _agent_values(overrides: Iterable[str]) -> dict[str, Any]:
    """Return the values of ``agent.`` overrides, as Isaac Lab reads them, by dotted path."""
    from isaaclab_tasks.utils.hydra import _parse_val

    return {override_key(token).removeprefix("agent."): _parse_val(token.partition("=")[2]) for token in overrides}


def _is_agent(agent: Any) -> bool:
    """Return whether a cfg has what a policy is made from."""
    if not isinstance(agent, dict) or not all(isinstance(agent.get(key), dict) for key in (ACTOR_SET, "obs_groups")):
        return False
    clip, groups = agent.get("clip_actions"), agent["obs_groups"].values()
    is_clip = isinstance(clip, int | float) and not isinstance(clip, bool) and clip > 0
    lists = all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in groups)
    return lists and ACTOR_SET in agent["obs_groups"] and (clip is None or is_clip)


def registered_agent(task: str, agent: str) -> dict[str, Any]:
    """Return an agent cfg as it is registered with a task (gym id), as a dictionary."""
    import gymnasium
    from isaaclab.utils import to_dict
    from isaaclab_tasks.utils import load_cfg_from_registry

    try:
        return to_dict(load_cfg_from_registry(task, agent))
    except (ValueError, KeyError, gymnasium.error.Error) as error:
        raise UmcError(f"task {task} with agent {agent} is not registered here; update umc") from error


def build_model(
    agent: Mapping[str, Any], widths: Mapping[str, int], outputs: int, obs_set: str = ACTOR_SET
) -> MaskedModel:
    """Make an actor or a critic with fresh weights."""
    cfg = {name: value for name, value in agent[obs_set].items() if name not in LEGACY_FIELDS}
    groups: list[str] = agent["obs_groups"][obs_set]
    missing = [group for group in groups if group not in widths]
    if missing:
        raise UmcError(f"the {obs_set} reads {', '.join(missing)}, which the task does not have; choose its own --task")
    try:
        model_class, options = resolve_class(cfg)
    except (KeyError, TypeError, ValueError, ImportError, AttributeError) as error:
        raise UmcError(
            f"the {obs_set} has no class_name that can be imported; give one of the models of umc"
        ) from error
    if not (isinstance(model_class, type) and issubclass(model_class, MaskedModel)):
        raise UmcError(f"{cfg.get('class_name')} is no model of umc; train with one of the registered agents")
    example = TensorDict({group: torch.zeros(1, widths[group]) for group in groups}, batch_size=[1])
    return model_class(example, {obs_set: list(groups)}, obs_set, outputs, **options)


def load_policy(
    checkpoint: Path | str,
    widths: Mapping[str, int],
    device: str = "cpu",
    robot: str | None = None,
    joint_names: Sequence[str] | None = None,
) -> LoadedPolicy:
    """Make a policy, in evaluation mode, from a checkpoint."""
    path = Path(checkpoint)
    data = read_checkpoint(path, device)
    info = checkpoint_info(data, path)
    require_match(info, path, robot)
    if joint_names is not None and list(joint_names) != list(info.joint_names):
        raise UmcError(f"{path} was trained with other joints or another joint order; train it again")
    agent = stored_agent(path, info)
    try:
        actor = build_model(agent, widths, len(info.joint_names))
    except UmcError:
        raise
    except Exception as error:  # options are handed to torch's modules, which raise any kind
        reason = shown(f"{type(error).__name__}: {error}")
        raise UmcError(f"{path}: the actor cannot be made from its cfg ({reason}); restore {AGENT_FILE}") from error
    try:
        actor.load_state_dict(data["actor_state_dict"])
    except (RuntimeError, UmcError) as error:  # torch's and our models'
        raise UmcError(
            f"the weights in {path} do not fit the model of its run; put {AGENT_FILE} of its run folder beside it"
        ) from error
    actor = actor.to(device).eval().requires_grad_(False)
    return LoadedPolicy(actor, info, path, sha256(path), agent.get("clip_actions"))


def load_policy_for(checkpoint: Path | str, env: ManagerBasedRLEnv, robot: str) -> LoadedPolicy:
    """Make a policy for a running environment of a robot; UmcError if it does not fit."""
    dims: Any = env.observation_manager.group_obs_dim
    widths = {name: shape[0] for name, shape in dims.items() if isinstance(shape, tuple)}
    articulation: Any = env.scene["robot"]
    return load_policy(checkpoint, widths, env.device, robot, articulation.joint_names)
