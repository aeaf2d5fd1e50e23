# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What rsl_rl's PPO does again in every epoch, done once, and Adam in one pass over its parameters."""

from __future__ import annotations

import copy
from collections.abc import Generator
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.storage import RolloutStorage


class CachedRolloutStorage(RolloutStorage):
    """A rollout whose mini-batches are gathered once per update.

    rsl_rl 5.5 draws one permutation per update and gathers the same mini-batches from it in every epoch. Here later
    epochs get them again, and with them what the first epoch has put into ``cache``, such as mirror images. Remove it
    once ``RolloutStorage.mini_batch_generator`` keeps them, or draws a permutation per epoch.
    """

    def mini_batch_generator(
        self, num_mini_batches: int, num_epochs: int = 8
    ) -> Generator[RolloutStorage.Batch, None, None]:
        """Yield shuffled flat mini-batches, a new object with the same tensors in each epoch."""
        batches: list[Any] = list(super().mini_batch_generator(num_mini_batches, 1))
        for batch in batches:
            batch.cache = {}
        for _ in range(num_epochs):
            yield from map(copy.copy, batches)

    def recurrent_mini_batch_generator(
        self, num_mini_batches: int, num_epochs: int = 8
    ) -> Generator[RolloutStorage.Batch, None, None]:
        """Yield mini-batches of whole rollouts, flat: steps, then envs.

        ``masks`` says at which steps (T, N) an episode starts, ``hidden_states[0]`` is the actor's memory before the
        first one. rsl_rl's are trajectories padded with zeros.
        """
        starts = torch.cat([torch.zeros_like(self.dones[:1]), self.dones[:-1]]).squeeze(-1).bool()
        memory = self.saved_hidden_state_a[0][0]  # type: ignore[index]
        size = self.num_envs // num_mini_batches
        batches: list[Any] = []
        for envs in torch.randperm(self.num_envs, device=self.device)[: size * num_mini_batches].split(size):

            def flat(values: Any, envs: torch.Tensor = envs) -> Any:
                return values[:, envs].flatten(0, 1)

            batch: Any = RolloutStorage.Batch(
                observations=flat(self.observations),
                actions=flat(self.actions),
                values=flat(self.values),
                advantages=flat(self.advantages),
                returns=flat(self.returns),
                old_actions_log_prob=flat(self.actions_log_prob),
                old_distribution_params=tuple(map(flat, self.distribution_params)),  # type: ignore[arg-type]
                hidden_states=(memory[:, envs], None),
                masks=starts[:, envs],
            )
            batch.cache = {}
            batches.append(batch)
        for _ in range(num_epochs):
            yield from map(copy.copy, batches)


def speed_up(alg: PPO) -> None:
    """Let an algorithm's updates gather mini-batches once, and let Adam run in one kernel on a CPU."""
    rollout = alg.storage
    alg.storage = CachedRolloutStorage(
        rollout.training_type,
        rollout.num_envs,
        rollout.num_transitions_per_env,
        rollout.observations[0],  # type: ignore[arg-type]
        rollout.actions_shape,
        rollout.device,
    )
    if isinstance(alg.optimizer, torch.optim.Adam) and torch.device(alg.device).type == "cpu":
        _fuse(alg.optimizer)


def _fuse(optimizer: torch.optim.Adam) -> None:
    """Take torch's fused Adam instead of its loop over parameters; checkpoints do not say so and any may be loaded."""

    def fused(optimizer: torch.optim.Optimizer) -> None:
        for group in optimizer.param_groups:
            group["fused"] = True

    def unfused(_optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        for group in state["param_groups"]:
            group["fused"] = None

    fused(optimizer)
    optimizer.register_load_state_dict_post_hook(fused)
    optimizer.register_state_dict_post_hook(unfused)
