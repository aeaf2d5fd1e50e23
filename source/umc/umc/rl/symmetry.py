# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Learning from the mirror image, too: ``agent.mirror=true``.

A legged robot's left and right are alike, so every sample of a mini-batch counts twice: as it was, and as the mirrored
robot would have seen and done it (Mittal et al., "Symmetry Considerations for Learning Task Symmetric Robot Policies",
ICRA 2024). rsl_rl's own ``symmetry_cfg`` does the learning; this is its ``data_augmentation_func``.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

from umc.robots.mirror import mirrored_joints
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from tensordict import TensorDict

POLAR = (1.0, -1.0, 1.0)
"""Signs of a vector (velocity, gravity) in the mirror; x is forward, y to the left, z up."""

AXIAL = (-1.0, 1.0, -1.0)
"""Signs of an angular velocity."""

PLANAR = (1.0, -1.0, -1.0)
"""Signs of a command: forward, to the left, yaw rate."""

HALF_A_PERIOD = (-1.0, -1.0)
"""Signs of the sine and cosine of a gait's clock: left and right change places half a period later."""

VECTORS = {
    "base_lin_vel": POLAR,
    "projected_gravity": POLAR,
    "base_ang_vel": AXIAL,
    "command": PLANAR,
    "clock": HALF_A_PERIOD,
    "flag": (1.0, 1.0, 1.0),
}
"""Observation terms that are no joints', by name."""

SIGNED = ("joint_pos", "joint_vel", "last_action")
"""Observation terms with a column per joint, which turns round with its joint."""

PLAIN = ("mask",)
"""Observation terms with a column per joint that only change sides."""

PHYSICS = "physics"
"""Observation term of :class:`umc.mdp.randomized_physics` (mass, centre of mass, a gain per joint)."""


LIVE = "live"
"""Observation term of :func:`umc.mdp.live_faults`: a column per joint for each kind of fault."""


class Mirror:
    """Mirrors observations and actions of a task.

    Args:
        groups: Observation groups: names and widths of their terms, in order.
        joint_names: J joints in the order of observations and actions.

    Raises:
        UmcError: If nobody knows what a term looks like in the mirror, or a joint has no partner.
    """

    def __init__(self, groups: dict[str, list[tuple[str, int]]], joint_names: list[str]) -> None:
        columns, signs = mirrored_joints(joint_names)
        self._joints = (columns, signs)
        self._plain = (columns, [1.0] * len(columns))
        self._maps = {name: self._group(terms) for name, terms in groups.items()}
        self._actions = _tensors(*self._joints)
        self._device = torch.device("cpu")

    def observations(self, obs: TensorDict) -> TensorDict:
        """What the mirrored robots would see.

        Args:
            obs: Groups of observations. Shape of each is (N, width).

        Returns:
            Groups of the same shapes.
        """
        mirrored = obs.clone(recurse=False)
        for name in self._maps:
            if name in obs:
                value = obs[name]
                self._move(value.device)
                columns, signs = self._maps[name]
                mirrored[name] = (value[:, columns] * signs).to(value.dtype)
        return mirrored

    def actions(self, actions: torch.Tensor) -> torch.Tensor:
        """What the mirrored robots would do.

        Args:
            actions: Joint targets [-]. Shape is (N, J).

        Returns:
            Joint targets. Shape is (N, J).
        """
        self._move(actions.device)
        columns, signs = self._actions
        return actions[:, columns] * signs

    def _move(self, device: torch.device) -> None:
        """Keep the tables where they are used: each copy to a GPU waits for it."""
        if device == self._device:
            return
        self._device = device
        self._maps = {name: (columns.to(device), signs.to(device)) for name, (columns, signs) in self._maps.items()}
        self._actions = (self._actions[0].to(device), self._actions[1].to(device))

    def _group(self, terms: list[tuple[str, int]]) -> tuple[torch.Tensor, torch.Tensor]:
        columns: list[int] = []
        signs: list[float] = []
        for name, width in terms:
            first = len(columns)
            ours, sign = self._term(name, width)
            columns += [first + column for column in ours]
            signs += sign
        return _tensors(columns, signs)

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
            f"nobody knows what observation {name} of width {width} looks like in the mirror; set agent.mirror=false, "
            "or add it to umc.rl.symmetry.VECTORS"
        )


_MIRRORS: weakref.WeakKeyDictionary[Any, Mirror] = weakref.WeakKeyDictionary()


def mirror_of(env: Any) -> Mirror:
    """The mirror of an environment, made once.

    Args:
        env: Manager-based environment, wrapped or not.

    Returns:
        Its mirror.

    Raises:
        UmcError: If an observation or a joint has no mirror image.
    """
    bare = env.unwrapped
    if bare not in _MIRRORS:
        manager = bare.observation_manager
        groups = {
            name: [(term, int(shape[0])) for term, shape in zip(terms, manager.group_obs_term_dim[name], strict=True)]
            for name, terms in manager.active_terms.items()
        }
        _MIRRORS[bare] = Mirror(groups, list(bare.scene["robot"].joint_names))
    return _MIRRORS[bare]


def add_mirrored(
    env: Any, obs: TensorDict | None, actions: torch.Tensor | None
) -> tuple[TensorDict | None, torch.Tensor | None]:
    """rsl_rl's ``data_augmentation_func``: samples, then their mirror images.

    Args:
        env: The environment.
        obs: Groups of observations. Shape of each is (N, width).
        actions: Joint targets [-]. Shape is (N, J).

    Returns:
        The two, twice as many; None stays None.
    """
    mirror = mirror_of(env)
    both: Any = None if obs is None else torch.cat([obs, mirror.observations(obs)], dim=0)  # type: ignore[list-item]
    return both, None if actions is None else torch.cat([actions, mirror.actions(actions)], dim=0)


def _tensors(columns: list[int], signs: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(columns), torch.tensor(signs)
