# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Load a policy from a checkpoint, without runner, optimizer or simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from rsl_rl.utils import resolve_class
from tensordict import TensorDict

from umc.rl.checkpoint import CheckpointInfo, checkpoint_info, read_checkpoint, require_match
from umc.rl.models import MaskedModel
from umc.utils.errors import UmcError
from umc.utils.io import sha256

ACTOR_SET = "actor"
"""rsl_rl's name of the policy and of the groups that it reads."""

CRITIC_SET = "critic"
"""The same of the value function."""

AGENT_FILE = "params/agent.yaml"
"""File in a run folder that holds the agent cfg."""

LEGACY_FIELDS = ("stochastic", "init_noise_std", "noise_std_type", "state_dependent_std")
"""Fields that Isaac Lab's model cfgs keep for older rsl_rl; the model classes do not take them."""


class _AgentLoader(yaml.SafeLoader):
    """Plain YAML and the tuples that Isaac Lab writes; anything else that would run code is refused."""


def _tuple(loader: yaml.SafeLoader, node: yaml.SequenceNode) -> tuple[Any, ...]:
    return tuple(loader.construct_sequence(node))


_AgentLoader.add_constructor("tag:yaml.org,2002:python/tuple", _tuple)


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


def stored_agent(checkpoint: Path, info: CheckpointInfo) -> dict[str, Any]:
    """Return the agent cfg that a checkpoint was trained with, as a dictionary.

    The run keeps it in :data:`AGENT_FILE`; the registered cfg replaces it where that file is missing.
    """
    path = checkpoint.parent / AGENT_FILE
    if path.is_file():
        try:
            agent = yaml.load(path.read_text(encoding="utf-8"), Loader=_AgentLoader)
        except yaml.YAMLError as error:
            raise UmcError(f"{path} is damaged; restore it, or move the checkpoint out of its run folder") from error
        if not isinstance(agent, dict) or ACTOR_SET not in agent or "obs_groups" not in agent:
            raise UmcError(
                f"{path} is not an agent configuration; restore it, or move the checkpoint out of its folder"
            )
        return agent
    return registered_agent(info.task, info.agent)


def registered_agent(task: str, agent: str) -> dict[str, Any]:
    """Return an agent cfg as it is registered with a task (gym id), as a dictionary."""
    from isaaclab.utils import to_dict
    from isaaclab_tasks.utils import load_cfg_from_registry

    try:
        return to_dict(load_cfg_from_registry(task, agent))
    except (ValueError, KeyError) as error:
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
    model_class, options = resolve_class(cfg)
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
    actor = build_model(agent, widths, len(info.joint_names))
    try:
        actor.load_state_dict(data["actor_state_dict"])
    except (RuntimeError, UmcError) as error:  # torch's and our models'
        raise UmcError(f"the weights in {path} do not fit the model of its run; {AGENT_FILE} is missing?") from error
    actor = actor.to(device).eval().requires_grad_(False)
    return LoadedPolicy(actor, info, path, sha256(path), agent.get("clip_actions"))
