# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Which columns of a flat observation belong to which joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn

from umc.utils.errors import UmcError

JOINT_FEATURES = ("position", "velocity", "last action")
"""What the paper's joint observation o_i in R^3 holds, in this order."""


@dataclass(frozen=True)
class JointLayout:
    """The columns of a flat observation: three for each joint, the rest belong to the base."""

    joint_names: tuple[str, ...]
    """J joint names in the order of observations, actions and masks."""
    obs_dim: int
    """Width D of the flat observation."""
    joint_columns: tuple[tuple[int, ...], ...]
    """For each joint its columns of (position, velocity, last action)."""
    neighbours: tuple[tuple[int, ...], ...] = ()
    """For each joint, and last for the base, who is next to it in the robot's kinematic tree: indices of joints, J is
    the base (umc.robots.graph.joint_neighbours reads them). Empty unless needed."""

    def __post_init__(self) -> None:
        if not self.joint_names:
            raise UmcError("the joint layout needs at least one joint name")
        repeated = sorted({name for name in self.joint_names if self.joint_names.count(name) > 1})
        if repeated:
            raise UmcError(f"joint names must be unique, these repeat: {', '.join(repeated)}")
        if len(self.joint_columns) != len(self.joint_names):
            raise UmcError(f"{len(self.joint_names)} joint names but columns for {len(self.joint_columns)} joints")
        for name, columns in zip(self.joint_names, self.joint_columns, strict=True):
            if len(columns) != len(JOINT_FEATURES):
                raise UmcError(f"joint {name} has {len(columns)} columns, it needs one for each of {JOINT_FEATURES}")
        taken = list(chain.from_iterable(self.joint_columns))
        outside = [column for column in taken if not 0 <= column < self.obs_dim]
        if outside:
            raise UmcError(
                f"the joint columns reach column {max(outside, key=abs)}, the observation has {self.obs_dim} columns:"
                " check joint_names and joint_start against the task's observation terms"
            )
        if len(set(taken)) != len(taken):
            raise UmcError("a column belongs to two joints: each joint needs columns of its own")
        if self.neighbours:
            self._check_neighbours()

    def _check_neighbours(self) -> None:
        """Refuse neighbours that are no undirected graph over the joints and the base."""
        edges = {(token, other) for token, near in enumerate(self.neighbours) for other in near}
        tokens = self.num_joints + 1
        if len(self.neighbours) != tokens or any(
            not 0 <= other < tokens or other == token or (other, token) not in edges for token, other in edges
        ):
            raise UmcError(
                f"neighbours must be {tokens} lists of indices from 0 to {self.num_joints} (the base), both ways and"
                " without a token itself: umc.robots.graph.joint_neighbours reads them off the robot"
            )

    @classmethod
    def term_major(
        cls,
        joint_names: Sequence[str],
        obs_dim: int,
        joint_start: int,
        neighbours: Sequence[Sequence[int]] = (),
    ) -> JointLayout:
        """Make the layout of Isaac Lab's concatenated terms: all positions, all velocities, all last actions.

        Columns outside [joint_start, joint_start + 3 J) belong to the base.
        """
        count = len(joint_names)
        columns = tuple(
            tuple(joint_start + feature * count + joint for feature in range(len(JOINT_FEATURES)))
            for joint in range(count)
        )
        return cls(tuple(joint_names), obs_dim, columns, tuple(tuple(near) for near in neighbours))

    @property
    def num_joints(self) -> int:
        """Number of joints J."""
        return len(self.joint_names)

    @property
    def base_columns(self) -> tuple[int, ...]:
        """Columns that belong to no joint, in ascending order."""
        taken = set(chain.from_iterable(self.joint_columns))
        return tuple(column for column in range(self.obs_dim) if column not in taken)

    @property
    def base_dim(self) -> int:
        """Number of base columns."""
        return self.obs_dim - len(JOINT_FEATURES) * self.num_joints


class JointColumns(nn.Module):
    """A layout's indices as buffers: masks and splits batches on any device, in TorchScript and ONNX too."""

    def __init__(self, layout: JointLayout) -> None:
        super().__init__()
        self.obs_dim = layout.obs_dim
        self.num_joints = layout.num_joints
        # Token J is always alive: base columns belong to it.
        owner = [layout.num_joints] * layout.obs_dim
        for joint, columns in enumerate(layout.joint_columns):
            for column in columns:
                owner[column] = joint
        self.owner: Tensor
        self.joint_index: Tensor
        self.base_index: Tensor
        self.register_buffer("owner", torch.tensor(owner, dtype=torch.long), persistent=False)
        joint_index = torch.tensor(layout.joint_columns, dtype=torch.long).flatten()
        self.register_buffer("joint_index", joint_index, persistent=False)
        self.register_buffer("base_index", torch.tensor(layout.base_columns, dtype=torch.long), persistent=False)

    def masked_tokens(self, joint_mask: Tensor) -> Tensor:
        """Append a token that is never masked to a joint mask (B, J), True or 1 = masked: (B, J + 1) bool."""
        never = torch.zeros_like(joint_mask[:, :1], dtype=torch.bool)
        return torch.cat([joint_mask > 0.5, never], dim=1)

    def masked_columns(self, masked_tokens: Tensor) -> Tensor:
        """Spread masked tokens (B, J + 1) over the columns of the observation, (B, D) bool."""
        return masked_tokens.index_select(1, self.owner)

    def fill_masked(self, obs: Tensor, masked_tokens: Tensor, value: float) -> Tensor:
        """Replace all that masked tokens (B, J + 1) report in observations (B, D) by a value, NaN and inf too."""
        # A select and not a product: nan * 0 is nan.
        return obs.masked_fill(self.masked_columns(masked_tokens), value)

    def split(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Split observations (B, D) into base (B, D - 3 J) and joints (B, J, 3)."""
        joints = obs.index_select(1, self.joint_index).view(-1, self.num_joints, 3)
        return obs.index_select(1, self.base_index), joints
