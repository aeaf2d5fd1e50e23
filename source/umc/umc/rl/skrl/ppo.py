# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""skrl's PPO, made from an agent cfg, and what a run asks of an algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from skrl.agents.torch import ExperimentCfg
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.memories.torch import RandomMemory
from skrl.resources.schedulers.torch import KLAdaptiveLR
from torch import Tensor

from umc.rl.models import MaskedModel
from umc.rl.policy import ACTOR_SET, CRITIC_SET, build_model
from umc.rl.skrl.models import SkrlActor, SkrlCritic, skrl_models
from umc.rl.skrl.packing import PackedEnv
from umc.utils.errors import UmcError

SCHEDULERS = {"KLAdaptiveLR": KLAdaptiveLR}
"""Learning rate schedulers by the name that an agent cfg gives them."""

EVERYTHING = {"actor": True, "critic": True, "optimizer": True, "iteration": True}
"""What a run that goes on takes from its checkpoint."""


class MaskedPpo(PPO):
    """skrl's PPO for networks that normalise by themselves and environments that reset by themselves."""

    policy: SkrlActor
    value: SkrlCritic

    def record_transition(
        self,
        *,
        states: Tensor,
        next_states: Tensor,
        rewards: Tensor,
        truncated: Tensor,
        **transition: Any,
    ) -> None:
        """Store a transition.

        Where time ran out, the environment has been reset already: skrl would add the value of the next episode's
        first state to the reward. The value of the last state that was seen stands in, as in rsl_rl.

        Args:
            states: What the critic read, (E, W).
            next_states: What it reads now, (E, W).
            rewards: Rewards (E, 1); stay as they are.
            truncated: Whether time ran out, (E, 1).
            **transition: All else that skrl's PPO takes.
        """
        super().record_transition(
            states=states,
            next_states=torch.where(truncated, states, next_states),
            rewards=rewards.clone(),  # skrl adds to it in place
            truncated=truncated,
            **transition,
        )

    def update(self, *, timestep: int, timesteps: int) -> None:
        """Learn from the stored transitions; then the normalisers do, as in rsl_rl.

        Args:
            timestep: Number of this step.
            timesteps: Number of all steps.
        """
        super().update(timestep=timestep, timesteps=timesteps)
        assert self.memory is not None
        self.policy.learn_statistics(self.memory.get_tensor_by_name("observations").flatten(0, 1))
        self.value.learn_statistics(self.memory.get_tensor_by_name("states").flatten(0, 1))


class SkrlAlgorithm:
    """An agent of skrl with the operations that runs, resuming and the hand-over between stages ask for.

    Args:
        agent: The agent.
    """

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
        """The actor, as rsl_rl knows it."""
        return self.agent.policy.network

    def save(self) -> dict[str, Any]:
        """Networks and optimizer as rsl_rl stores them: either library reads the other's."""
        return {
            "actor_state_dict": self.agent.policy.network.state_dict(),
            "critic_state_dict": self.agent.value.network.state_dict(),
            "optimizer_state_dict": self.optimizer.state_dict(),
        }

    def load(self, data: Mapping[str, Any], load_cfg: Mapping[str, bool] | None, strict: bool) -> bool:
        """Take over what :meth:`save` gave.

        Args:
            data: The checkpoint.
            load_cfg: What to take of ``actor``, ``critic``, ``optimizer`` and ``iteration``; None takes everything.
            strict: Whether weights must fit exactly.

        Returns:
            Whether the iteration is to be taken, too.
        """
        wanted = EVERYTHING if load_cfg is None else load_cfg
        if wanted.get("actor"):
            self.agent.policy.network.load_state_dict(data["actor_state_dict"], strict=strict)
        if wanted.get("critic"):
            self.agent.value.network.load_state_dict(data["critic_state_dict"], strict=strict)
        if wanted.get("optimizer"):
            self.optimizer.load_state_dict(data["optimizer_state_dict"])
        return wanted.get("iteration", False)


def make_agent(env: PackedEnv, cfg: Mapping[str, Any]) -> MaskedPpo:
    """An agent with fresh networks, ready to learn.

    Args:
        env: Environment, packed.
        cfg: Agent cfg as a dictionary (:func:`umc.rl.skrl.cfg.skrl_cfg`).

    Returns:
        The agent.

    Raises:
        UmcError: If the cfg does not fit the environment, or names something that there is not.
    """
    actions = env.action_space.shape[0]
    # in this order and with nothing random between: so a seed gives the same weights as with rsl_rl
    actor = build_model(cfg, env.actor_packing.widths, actions, ACTOR_SET)
    critic = build_model(cfg, env.critic_packing.widths, 1, CRITIC_SET)
    rollouts = cfg["num_steps_per_env"]
    agent = MaskedPpo(
        models=skrl_models(env, actor, critic),
        memory=RandomMemory(memory_size=rollouts, num_envs=env.num_envs, device=env.device),
        observation_space=env.observation_space,
        state_space=env.state_space,
        action_space=env.action_space,
        device=env.device,
        cfg=ppo_cfg(cfg["algorithm"], rollouts),
    )
    agent.init()
    agent.enable_training_mode(True)
    return agent


def ppo_cfg(algorithm: Mapping[str, Any], rollouts: int) -> PPO_CFG:
    """The cfg that skrl knows.

    Args:
        algorithm: :class:`umc.rl.skrl.cfg.UmcSkrlPpoCfg` as a dictionary.
        rollouts: Steps between two updates.

    Returns:
        The cfg; skrl itself writes no files.

    Raises:
        UmcError: If there is no such learning rate scheduler.
    """
    name = algorithm["learning_rate_scheduler"]
    if name is not None and name not in SCHEDULERS:
        raise UmcError(f"unknown learning_rate_scheduler {name}; choose one of {', '.join(SCHEDULERS)}, None")
    return PPO_CFG(
        **{**algorithm, "learning_rate_scheduler": None if name is None else SCHEDULERS[name]},
        rollouts=rollouts,
        time_limit_bootstrap=True,  # else an episode that ran out of time would flow into the next one
        experiment=ExperimentCfg(write_interval=0, checkpoint_interval=0),
    )
