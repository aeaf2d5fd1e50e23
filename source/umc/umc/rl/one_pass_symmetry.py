# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""rsl_rl's mirror loss without its second pass through the actor.

rsl_rl 5.5 asks the actor once more for the means of the mini-batch that PPO has just asked for, mirrored samples
included. The policy's distribution still holds them, with their gradient: the loss is the same number from half of the
actor's learning (``benchmarks/learning.py``). Can go when ``rsl_rl.extensions.Symmetry`` does not call the actor again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from rsl_rl.extensions import Symmetry
from torch import Tensor, nn

if TYPE_CHECKING:
    from rsl_rl.models import MLPModel
    from rsl_rl.storage import RolloutStorage


class OnePassSymmetry(Symmetry):
    """Symmetry whose loss reads the means that PPO's pass over the augmented mini-batch left in the actor."""

    def compute_loss(self, actor: MLPModel, batch: RolloutStorage.Batch, original_batch_size: int) -> Tensor:
        """Compare what the actor does in the mirror with the mirror image of what it does.

        Args:
            actor: The actor, after its pass over the augmented mini-batch.
            batch: The augmented mini-batch.
            original_batch_size: How many of its samples are no mirror images.

        Returns:
            Mean squared difference [-], without a gradient where it is not learnt from.
        """
        if not self.use_data_augmentation:
            return super().compute_loss(actor, batch, original_batch_size)
        means = actor.output_mean
        _, images = self.data_augmentation_func(env=self.env, obs=None, actions=means[:original_batch_size])
        mirrored = cast(torch.Tensor, images).detach()[original_batch_size:]
        loss = nn.functional.mse_loss(means[original_batch_size:], mirrored)
        return loss if self.use_mirror_loss else loss.detach()
