# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""skrl's PPO around the networks that rsl_rl trains: same weights, same actions, same log-probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import torch
from skrl.agents.torch import ExperimentCfg
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.resources.schedulers.torch import KLAdaptiveLR
from torch import Tensor

from umc.rl.models import MaskedModel
from umc.rl.policy import ACTOR_SET, CRITIC_SET, build_model
from umc.rl.skrl.cfg import skrl_ppo
from umc.rl.skrl.mirror import MirrorAugmentation, MirroredMemory, MirrorLossScaler, OriginalSamplesKLAdaptiveLR
from umc.rl.skrl.packing import PackedEnv, Packing
from umc.rl.symmetry import make_symmetry

SYMMETRY_LOSS = "Loss / Symmetry loss"
"""Name of the mirror loss among what skrl tracks."""


class SkrlActor(GaussianMixin, Model):
    """A Gaussian policy around a UMC actor."""

    def __init__(
        self, network: MaskedModel, packing: Packing, action_space: gym.spaces.Box, device: str | torch.device
    ) -> None:
        Model.__init__(self, observation_space=packing.space, action_space=action_space, device=device)
        GaussianMixin.__init__(self, clip_log_std=False)
        self.network = network
        self.packing = packing

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[Tensor, dict[str, Any]]:
        """Return mean actions (B, J), with ``log_std``, for packed ``observations`` (B, W)."""
        mean = self.network(self.packing.unpack(inputs["observations"]))
        assert self.network.distribution is not None  # an actor's
        self.network.distribution.update(mean)  # the mirror loss and the log read it
        return mean, {"log_std": self.network.output_std.log()}


class SkrlCritic(DeterministicMixin, Model):
    """A value function around a UMC critic."""

    def __init__(
        self, network: MaskedModel, packing: Packing, action_space: gym.spaces.Box, device: str | torch.device
    ) -> None:
        Model.__init__(self, state_space=packing.space, action_space=action_space, device=device)
        DeterministicMixin.__init__(self)
        self.network = network
        self.packing = packing

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[Tensor, dict[str, Any]]:
        """Return values (B, 1) for packed ``states`` (B, W)."""
        return self.network(self.packing.unpack(inputs["states"])), {}


class MaskedPpo(PPO):
    """skrl's PPO for networks that normalise by themselves and environments that reset by themselves."""

    policy: SkrlActor
    value: SkrlCritic

    def __init__(self, mirroring: MirrorAugmentation | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.mirroring = mirroring
        if mirroring is not None:
            self.scaler = MirrorLossScaler(mirroring, device=self._device_type, enabled=self.cfg.mixed_precision)

    def record_transition(
        self,
        *,
        states: Tensor,
        next_states: Tensor,
        rewards: Tensor,
        truncated: Tensor,
        **transition: Any,
    ) -> None:
        """Store a transition with states (E, W) and the rest (E, 1).

        Where time ran out, the environment has been reset already: skrl would add the value of the next episode's
        first state to the reward. The value of the last state that was seen replaces it, as in rsl_rl.
        """
        super().record_transition(
            states=states,
            next_states=torch.where(truncated, states, next_states),
            rewards=rewards.clone(),  # skrl adds to it in place
            truncated=truncated,
            **transition,
        )

    def update(self, *, timestep: int, timesteps: int) -> None:
        """Learn from the stored transitions, then update the normalisers, as rsl_rl does."""
        super().update(timestep=timestep, timesteps=timesteps)
        if self.mirroring is not None:
            self.track_data(SYMMETRY_LOSS, self.mirroring.mean_loss())
        assert self.memory is not None
        for model, name in ((self.policy, "observations"), (self.value, "states")):
            packed = self.memory.get_tensor_by_name(name).flatten(0, 1)
            model.network.update_normalization(model.packing.unpack(packed))


class SkrlAlgorithm:
    """A skrl agent with the operations that training runs and :mod:`umc.rl.transfer` need of an algorithm."""

    def __init__(self, agent: MaskedPpo) -> None:
        self.agent = agent

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """Optimizer of actor and critic."""
        return self.agent.optimizer

    @property
    def learning_rate(self) -> float:
        """Learning rate of actor and critic."""
        return self.optimizer.param_groups[0]["lr"]

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = value

    def get_policy(self) -> MaskedModel:
        """Return the actor, as rsl_rl does."""
        return self.agent.policy.network

    def save(self) -> dict[str, Any]:
        """Return networks and optimizer as rsl_rl stores them: either library reads the other's."""
        return {
            "actor_state_dict": self.agent.policy.network.state_dict(),
            "critic_state_dict": self.agent.value.network.state_dict(),
            "optimizer_state_dict": self.optimizer.state_dict(),
        }

    def load(self, data: Mapping[str, Any], load_cfg: Mapping[str, bool] | None, strict: bool) -> bool:
        """Load what :meth:`save` returned, or its parts in ``load_cfg``; return whether to load the iteration."""
        parts = ("actor", "critic", "optimizer", "iteration")
        wanted = dict.fromkeys(parts, True) if load_cfg is None else load_cfg
        if wanted.get("actor"):
            self.agent.policy.network.load_state_dict(data["actor_state_dict"], strict=strict)
        if wanted.get("critic"):
            self.agent.value.network.load_state_dict(data["critic_state_dict"], strict=strict)
        if wanted.get("optimizer"):
            self.optimizer.load_state_dict(data["optimizer_state_dict"])
        return wanted.get("iteration", False)


def make_agent(env: PackedEnv, cfg: Mapping[str, Any]) -> MaskedPpo:
    """Make an agent with new networks, ready to learn."""
    actions = env.action_space.shape[0]
    # in this order and with nothing random between: so a seed gives the same weights as with rsl_rl
    actor = build_model(cfg, env.actor_packing.widths, actions, ACTOR_SET)
    critic = build_model(cfg, env.critic_packing.widths, 1, CRITIC_SET)
    symmetry = make_symmetry(cfg, env)
    mirroring = None if symmetry is None else MirrorAugmentation(symmetry, env, actor)
    rollouts = cfg["num_steps_per_env"]
    size = {"memory_size": rollouts, "num_envs": env.num_envs, "device": env.device}
    agent = MaskedPpo(
        mirroring,
        models={
            "policy": SkrlActor(actor, env.actor_packing, env.action_space, env.device),
            "value": SkrlCritic(critic, env.critic_packing, env.action_space, env.device),
        },
        memory=RandomMemory(**size) if mirroring is None else MirroredMemory(mirroring, **size),
        observation_space=env.observation_space,
        state_space=env.state_space,
        action_space=env.action_space,
        device=env.device,
        cfg=ppo_cfg(cfg["algorithm"], rollouts, mirroring),
    )
    agent.init()
    agent.enable_training_mode(True)
    return agent


def ppo_cfg(algorithm: Mapping[str, Any], rollouts: int, mirroring: MirrorAugmentation | None = None) -> PPO_CFG:
    """Return skrl's own cfg, which writes no files, for the values of rsl_rl's PPO."""
    values = skrl_ppo(algorithm)
    scheduler = None
    if schedule := values["learning_rate_scheduler_kwargs"]:
        scheduler = KLAdaptiveLR if mirroring is None else OriginalSamplesKLAdaptiveLR
        schedule |= {} if mirroring is None else {"divergences": mirroring.divergences}
    return PPO_CFG(
        **values,
        learning_rate_scheduler=scheduler,
        rollouts=rollouts,
        time_limit_bootstrap=True,  # else an episode that ran out of time would continue in the next one
        experiment=ExperimentCfg(write_interval=0, checkpoint_interval=0),
    )
