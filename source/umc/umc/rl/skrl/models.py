# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""skrl models that hold the very networks which rsl_rl trains: same weights, same actions, same log-probabilities."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import torch
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from torch import Tensor
from torch.distributions import Normal

from umc.rl.models import MaskedModel
from umc.rl.skrl.packing import PackedEnv, Packing


class SkrlActor(GaussianMixin, Model):
    """A Gaussian policy around a network of UMC.

    The noise is the network's own distribution, so that log-probability and entropy are rsl_rl's to the bit.

    Args:
        network: The actor.
        packing: What it reads.
        action_space: Space of one env's actions.
        device: Where it computes.
    """

    def __init__(
        self, network: MaskedModel, packing: Packing, action_space: gym.spaces.Box, device: str | torch.device
    ) -> None:
        Model.__init__(self, observation_space=packing.space, action_space=action_space, device=device)
        GaussianMixin.__init__(self, clip_log_std=False)
        self.network = network
        self.packing = packing

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[Tensor, dict[str, Any]]:
        """Compute mean, noise and a sample.

        Args:
            inputs: ``observations``: packed observations (B, W).
            role: Unused.

        Returns:
            Mean actions (B, J), and ``log_std`` and sampled ``actions``, each (B, J).
        """
        actions = self.network(self.packing.unpack(inputs["observations"]), stochastic_output=True)
        return self.network.output_mean, {"log_std": self.network.output_std.log(), "actions": actions}

    def act(self, inputs: dict[str, Any], *, role: str = "") -> tuple[Tensor, dict[str, Any]]:
        """Sample actions.

        Args:
            inputs: ``observations``: packed observations (B, W); ``taken_actions`` (B, J), where the log-probability
                of these is wanted.
            role: Unused.

        Returns:
            Sampled actions (B, J), and ``mean_actions``, ``log_std`` and ``log_prob`` (B, 1).
        """
        mean, outputs = self.compute(inputs, role)
        actions = outputs["actions"]
        log_prob = self.network.get_output_log_prob(inputs.get("taken_actions", actions))
        return actions, {"log_std": outputs["log_std"], "log_prob": log_prob.unsqueeze(-1), "mean_actions": mean}

    def get_entropy(self, *, role: str = "") -> Tensor:
        """Entropy of the last observations' distribution, (B, 1)."""
        return self.network.output_entropy.unsqueeze(-1)

    def distribution(self, *, role: str = "") -> Normal:
        """Distribution of the last observations' actions."""
        return Normal(self.network.output_mean, self.network.output_std)

    def learn_statistics(self, observations: Tensor) -> None:
        """Let the network's normaliser learn from packed observations (B, W), living sensors only."""
        self.network.update_normalization(self.packing.unpack(observations))


class SkrlCritic(DeterministicMixin, Model):
    """A value function around a network of UMC.

    Args:
        network: The critic.
        packing: What it reads.
        action_space: Space of one env's actions.
        device: Where it computes.
    """

    def __init__(
        self, network: MaskedModel, packing: Packing, action_space: gym.spaces.Box, device: str | torch.device
    ) -> None:
        Model.__init__(self, state_space=packing.space, action_space=action_space, device=device)
        DeterministicMixin.__init__(self)
        self.network = network
        self.packing = packing

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[Tensor, dict[str, Any]]:
        """Compute values.

        Args:
            inputs: ``states``: packed observations (B, W).
            role: Unused.

        Returns:
            Values (B, 1), and nothing more.
        """
        return self.network(self.packing.unpack(inputs["states"])), {}

    def learn_statistics(self, states: Tensor) -> None:
        """Let the network's normaliser learn from packed observations (B, W)."""
        self.network.update_normalization(self.packing.unpack(states))


def skrl_models(env: PackedEnv, actor: MaskedModel, critic: MaskedModel) -> dict[str, Model]:
    """Both networks under the names that skrl's agents know.

    Args:
        env: Environment, packed.
        actor: The actor.
        critic: The critic.

    Returns:
        ``policy`` and ``value``.
    """
    return {
        "policy": SkrlActor(actor, env.actor_packing, env.action_space, env.device),
        "value": SkrlCritic(critic, env.critic_packing, env.action_space, env.device),
    }
