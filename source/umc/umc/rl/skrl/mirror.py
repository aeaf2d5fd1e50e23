# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Mirror images for skrl's PPO, ``agent.mirror=true``, by what skrl's update calls for each mini-batch.

The memory appends the images, the gradient scaler adds the mirror loss, and the schedule of the learning rate leaves
the images out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from skrl.memories.torch import RandomMemory
from skrl.resources.schedulers.torch import KLAdaptiveLR
from tensordict import TensorDict
from torch import Tensor
from torch.amp.grad_scaler import GradScaler

from umc.rl.models import MaskedModel
from umc.rl.skrl.packing import PackedEnv
from umc.rl.symmetry import OnePassSymmetry

REPEATED = ("log_prob", "values", "returns", "advantages")
"""Tensors of a mini-batch that are the same for a sample and its image."""


class MirrorAugmentation:
    """Mirror images, mirror loss and KL divergence of the mini-batches of an update."""

    def __init__(self, symmetry: OnePassSymmetry, env: PackedEnv, actor: MaskedModel) -> None:
        self.symmetry = symmetry
        self.env = env
        self.actor = actor
        self.losses: list[Tensor] = []
        """Mirror losses of the mini-batches so far [-]."""
        self.divergences: list[Tensor] = []
        """KL divergences of the true samples of an epoch's mini-batches so far [-]."""
        self._batch: dict[str, Tensor] = {}

    def augmented(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Append the images of N samples to a mini-batch."""
        actor, critic = self.env.actor_packing, self.env.critic_packing
        groups = {**actor.unpack(batch["observations"]), **critic.unpack(batch["states"])}
        obs = TensorDict(cast(Any, groups), batch_size=batch["actions"].shape[:1])
        both, actions = self.symmetry.data_augmentation_func(env=self.env, obs=obs, actions=batch["actions"])
        self._batch = {
            **{name: batch[name].repeat(2, 1) for name in REPEATED},
            "observations": actor.pack(both),
            "states": critic.pack(both),
            "actions": actions,
        }
        return self._batch

    def total_loss(self, loss: Tensor) -> Tensor:
        """Add the mirror loss to that of the mini-batch which the actor has seen last."""
        size = len(self._batch["actions"]) // 2
        mirror_loss = self.symmetry.compute_loss(self.actor, cast(Any, None), size)  # the actor holds its means
        self.losses.append(mirror_loss.detach())
        with torch.no_grad():  # skrl's estimate
            log_prob = self.actor.get_output_log_prob(self._batch["actions"]).unsqueeze(-1)
            ratio = (log_prob - self._batch["log_prob"])[:size]
            self.divergences.append((ratio.exp() - 1.0 - ratio).mean())
        return loss + self.symmetry.mirror_loss_coeff * mirror_loss

    def mean_loss(self) -> float:
        """Return the mean of the mirror losses, and forget them."""
        mean = torch.stack(self.losses).mean().item()
        self.losses.clear()
        self.divergences.clear()
        return mean


class MirroredMemory(RandomMemory):
    """A rollout whose mini-batches end with the mirror images of their samples."""

    def __init__(self, mirroring: MirrorAugmentation, **options: Any) -> None:
        super().__init__(**options)
        self.mirroring = mirroring

    def sample(self, names: list[str], **options: Any) -> Iterator[list[Tensor]]:
        """Yield mini-batches one by one."""
        for values in super().sample(names, **options):
            batch = self.mirroring.augmented(dict(zip(names, values, strict=True)))
            yield [batch[name] for name in names]


class MirrorLossScaler(GradScaler):
    """A gradient scaler that adds the mirror loss first."""

    def __init__(self, mirroring: MirrorAugmentation, **options: Any) -> None:
        super().__init__(**options)
        self.mirroring = mirroring

    def scale(self, outputs: Tensor) -> Tensor:
        """Return the loss to minimise, scaled."""
        return super().scale(self.mirroring.total_loss(outputs))


class OriginalSamplesKLAdaptiveLR(KLAdaptiveLR):
    """Adapt the learning rate to the KL divergence of the true samples, as rsl_rl does.

    An image comes with the log-probability of its sample, from which it differs as far as the policy is not symmetric.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, *, divergences: list[Tensor], **options: Any) -> None:
        self.divergences = divergences
        super().__init__(optimizer, **options)

    def step(self, kl: Tensor | float | None = None, *, epoch: int | None = None) -> None:
        """Adapt it by the mean of an epoch, in place of the mean ``kl`` over images, too."""
        if kl is not None:
            kl = torch.stack(self.divergences).mean().item()
            self.divergences.clear()
        super().step(kl, epoch=epoch)
