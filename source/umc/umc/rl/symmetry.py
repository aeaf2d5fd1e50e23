# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Mirror symmetry as data augmentation and loss: ``agent.mirror=true``.

A legged robot is symmetric, so every sample of a mini-batch is used twice: as it was, and as the mirrored robot would
have observed and done it (Mittal et al., "Symmetry Considerations for Learning Task Symmetric Robot Policies", ICRA
2024). rsl_rl's ``symmetry_cfg`` does the learning; :func:`add_mirrored` is its ``data_augmentation_func``.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from rsl_rl.extensions import Symmetry
from torch import Tensor, nn

from umc.robots.mirror import mirrored_joints
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from rsl_rl.models import MLPModel
    from rsl_rl.storage import RolloutStorage
    from tensordict import TensorDict

POLAR = (1.0, -1.0, 1.0)
"""Signs of a mirrored vector (velocity, gravity); x is forward, y to the left, z up."""

AXIAL = (-1.0, 1.0, -1.0)
"""Signs of a mirrored angular velocity."""

PLANAR = (1.0, -1.0, -1.0)
"""Signs of a mirrored command: forward, to the left, yaw rate."""

HALF_A_PERIOD = (-1.0, -1.0)
"""Signs of the sine and cosine of a gait's clock: left and right change places half a period later."""

VECTORS = {
    "base_lin_vel": POLAR,
    "projected_gravity": POLAR,
    "base_ang_vel": AXIAL,
    "command": PLANAR,
    "velocity_commands": PLANAR,
    "clock": HALF_A_PERIOD,
    "flag": (1.0, 1.0, 1.0),
}
"""Observation terms without a column per joint, by name."""

SIGNED = ("joint_pos", "joint_vel", "last_action", "actions")
"""Observation terms with a column per joint whose sign changes where the joint's axis does."""

PLAIN = ("mask",)
"""Observation terms with a column per joint that only change sides."""

PHYSICS = "physics"
"""Observation term of :class:`umc.mdp.randomized_physics` (mass, centre of mass, a gain per joint)."""

LIVE = "live"
"""Observation term of :func:`umc.mdp.live_faults`: a column per joint for each kind of fault."""


class Mirror:
    """Mirror of the observations and actions of a task, whose J joints are in the order of both.

    ``groups`` are the names and widths of the terms of each observation group, in order.
    """

    def __init__(
        self, groups: dict[str, list[tuple[str, int]]], joint_names: list[str], device: str | torch.device = "cpu"
    ) -> None:
        columns, signs = mirrored_joints(joint_names)
        self._joints = (columns, signs)
        self._plain = (columns, [1.0] * len(columns))
        self._device = device
        self._maps = {name: self._group(terms) for name, terms in groups.items()}
        self._actions = self._tensors(*self._joints)

    def observations(self, obs: TensorDict) -> TensorDict:
        """Mirror the observation groups, each of shape (N, width)."""
        mirrored = obs.clone(recurse=False)
        for name, (columns, signs) in self._maps.items():
            if name in obs:
                value = obs[name]
                mirrored[name] = (value[:, columns] * signs).to(value.dtype)
        return mirrored

    def actions(self, actions: Tensor) -> Tensor:
        """Mirror the joint targets [-], shape (N, J)."""
        columns, signs = self._actions
        return actions[:, columns] * signs

    def _tensors(self, columns: list[int], signs: list[float]) -> tuple[Tensor, Tensor]:
        return torch.tensor(columns, device=self._device), torch.tensor(signs, device=self._device)

    def _group(self, terms: list[tuple[str, int]]) -> tuple[Tensor, Tensor]:
        columns: list[int] = []
        signs: list[float] = []
        for name, width in terms:
            first = len(columns)
            term_columns, term_signs = self._term(name, width)
            columns += [first + column for column in term_columns]
            signs += term_signs
        return self._tensors(columns, signs)

    def _term(self, name: str, width: int) -> tuple[list[int], list[float]]:
        joints = len(self._joints[0])
        if name in VECTORS and len(VECTORS[name]) == width:
            return list(range(width)), list(VECTORS[name])
        if name in SIGNED and width == joints:
            return self._joints
        if name in PLAIN and width == joints:
            return self._plain
        if name == LIVE and width % joints == 0:
            columns = [first + column for first in range(0, width, joints) for column in self._plain[0]]
            return columns, [1.0] * width
        if name == PHYSICS and width == 1 + len(POLAR) + joints:
            first = 1 + len(POLAR)
            return [*range(first), *(first + column for column in self._plain[0])], [1.0, *POLAR, *self._plain[1]]
        raise UmcError(
            f"observation {name} of width {width} has no known mirror image; set agent.mirror=false, or add it to "
            "umc.rl.symmetry.VECTORS"
        )


_MIRRORS: weakref.WeakKeyDictionary[Any, Mirror] = weakref.WeakKeyDictionary()


def mirror_of(env: Any) -> Mirror:
    """Return the mirror of a manager-based environment, wrapped or not; it is made once."""
    bare = env.unwrapped
    if bare not in _MIRRORS:
        manager = bare.observation_manager
        groups = {
            name: [(term, int(shape[0])) for term, shape in zip(terms, manager.group_obs_term_dim[name], strict=True)]
            for name, terms in manager.active_terms.items()
            if manager.group_obs_concatenate[name]  # a policy that UMC did not train may read the others
        }
        _MIRRORS[bare] = Mirror(groups, list(bare.scene["robot"].joint_names), bare.device)
    return _MIRRORS[bare]


def add_mirrored(env: Any, obs: TensorDict | None, actions: Tensor | None) -> tuple[TensorDict | None, Tensor | None]:
    """Append the mirror images of N samples: observations (2 N, width) and joint targets (2 N, J); None stays None."""
    mirror = mirror_of(env)
    both: Any = None if obs is None else torch.cat([obs, mirror.observations(obs)], dim=0)  # type: ignore[list-item]
    return both, None if actions is None else torch.cat([actions, mirror.actions(actions)], dim=0)


AUGMENTED = ("observations", "actions", "old_actions_log_prob", "values", "returns")
"""Fields of a mini-batch that mirror images are appended to, beside the advantages."""


class OnePassSymmetry(Symmetry):
    """rsl_rl's mirror images made once per update, and its mirror loss without a second pass through the actor.

    rsl_rl 5.5 mirrors the same mini-batch again in every epoch; those of ``umc.rl.update.CachedRolloutStorage`` keep
    their images. It also asks the actor once more for the means of the mini-batch that PPO has just computed, mirrored
    samples included. The policy's distribution still holds them, with their gradient: the loss is the same number from
    half of the actor's learning time (``benchmarks/learning.py``). Remove it once ``rsl_rl.extensions.Symmetry`` does
    neither.
    """

    def augment_batch(self, batch: Any, original_batch_size: int) -> None:
        """Append mirror images to a mini-batch, in place."""
        cache = batch.cache
        if not cache:
            super().augment_batch(batch, original_batch_size)
            cache.update({name: getattr(batch, name) for name in AUGMENTED})
            return
        copies = cache["values"].shape[0] // original_batch_size
        # not cached: PPO may normalize them anew
        vars(batch).update(cache, advantages=batch.advantages.repeat(copies, 1))

    def compute_loss(self, actor: MLPModel, batch: RolloutStorage.Batch, original_batch_size: int) -> Tensor:
        """Return the mean squared difference [-] between the actions on mirrored samples and the mirrored actions."""
        means = actor.output_mean
        _, images = self.data_augmentation_func(env=self.env, obs=None, actions=means[:original_batch_size])
        mirrored = cast(Tensor, images).detach()[original_batch_size:]
        # skrl asks outside of autocast, where half-precision means are no match for images in float32
        loss = nn.functional.mse_loss(means[original_batch_size:].to(mirrored.dtype), mirrored)
        return loss if self.use_mirror_loss else loss.detach()


def make_symmetry(cfg: Mapping[str, Any], env: Any) -> OnePassSymmetry | None:
    """Return the symmetry that an agent cfg asks for, None for none; raise UmcError for what has no mirror image."""
    if not cfg.get("mirror"):
        return None
    weight = cfg["mirror_loss"]
    if weight < 0.0:
        raise UmcError(f"agent.mirror_loss is {weight}; it has to be 0 or more")
    mirror_of(env)
    return OnePassSymmetry(
        env, add_mirrored, use_data_augmentation=True, use_mirror_loss=weight > 0.0, mirror_loss_coeff=weight
    )
