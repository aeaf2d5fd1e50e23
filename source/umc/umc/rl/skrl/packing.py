# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Pack observation groups into the one tensor that skrl's agents take for the actor, and one for the critic.

skrl's own Isaac Lab wrapper passes the groups ``policy`` and ``critic`` only: joint mask and fault flag would be lost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import torch
from skrl.envs.wrappers.torch import Wrapper
from tensordict import TensorDict
from torch import Tensor

from umc.utils.errors import UmcError


class Packing:
    """Columns of each group in a packed observation, in the order of packing."""

    def __init__(self, widths: Mapping[str, int]) -> None:
        self.widths = dict(widths)

    @classmethod
    def of(cls, obs: Mapping[str, Tensor], groups: Sequence[str]) -> Packing:
        """Return the packing of some groups of an environment; a missing group raises :class:`UmcError`."""
        missing = [group for group in groups if group not in obs]
        if missing:
            raise UmcError(f"the agent reads {', '.join(missing)}, which the task does not have; correct obs_groups")
        return cls({group: obs[group].shape[-1] for group in groups})

    @property
    def space(self) -> gym.spaces.Box:
        """Space of one packed observation."""
        return gym.spaces.Box(-math.inf, math.inf, (sum(self.widths.values()),))

    def pack(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Concatenate groups (B, width) to packed observations (B, sum of widths)."""
        return torch.cat([obs[group] for group in self.widths], dim=-1)

    def unpack(self, packed: Tensor) -> TensorDict:
        """Split packed observations (B, sum of widths) into groups (B, width)."""
        parts = packed.split(list(self.widths.values()), dim=-1)
        return TensorDict(dict(zip(self.widths, parts, strict=True)), batch_size=packed.shape[:1])


class PackedEnv(Wrapper):
    """An Isaac Lab environment as skrl sees it, reset once, here; skrl's own trainers take it, too.

    ``clip_actions`` is the largest absolute action that reaches the environment; None for no bound.
    """

    def __init__(self, env: Any, obs_groups: Mapping[str, Sequence[str]], clip_actions: float | None = None) -> None:
        super().__init__(env)
        self.clip_actions = clip_actions
        # without a seed: the environment has its own, and the stock wrapper would set skrl's, 0
        obs, self._infos = env.reset()
        self.actor_packing = Packing.of(obs, obs_groups["actor"])
        self.critic_packing = Packing.of(obs, obs_groups["critic"])
        self._pack(obs)

    @property
    def observation_space(self) -> gym.spaces.Box:
        """Space of the actor's observations."""
        return self.actor_packing.space

    @property
    def state_space(self) -> gym.spaces.Box:
        """Space of the critic's observations."""
        return self.critic_packing.space

    @property
    def action_space(self) -> gym.spaces.Box:
        """Space of one env's actions."""
        return self._unwrapped.single_action_space

    def reset(self) -> tuple[Tensor, dict[str, Any]]:
        """Return the current observations: envs reset by themselves."""
        return self._observations, self._infos

    def state(self) -> Tensor:
        """Return the critic's current observations."""
        return self._states

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Any]]:
        """Apply actions (E, J); return packed observations, rewards, terminated, truncated (E, 1) and extras."""
        if self.clip_actions is not None:
            actions = actions.clamp(-self.clip_actions, self.clip_actions)
        obs, rewards, terminated, truncated, self._infos = self._env.step(actions)
        self._pack(obs)
        if self._unwrapped.cfg.is_finite_horizon:  # then a time-out is an end like any other
            terminated, truncated = terminated | truncated, torch.zeros_like(truncated)
        columns = rewards.view(-1, 1), terminated.view(-1, 1), truncated.view(-1, 1)
        return self._observations, *columns, self._infos

    def render(self, *_args: Any, **_kwargs: Any) -> None:
        """Do nothing: Isaac Lab renders by itself."""

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def _pack(self, obs: Mapping[str, Tensor]) -> None:
        self._observations = self.actor_packing.pack(obs)
        self._states = self.critic_packing.pack(obs)
