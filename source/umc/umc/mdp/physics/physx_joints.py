# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Joint limits in PhysX, which has them all: hard position limits, speed limits and effort limits of its drives."""

from __future__ import annotations

import torch

from .engine import EngineJoints


class PhysxJoints(EngineJoints):
    """The joints of one robot in PhysX.

    PhysX keeps joint properties in host memory: a write has to wait for the device, and asks it first for the ids of
    the envs to write.
    """

    def write_positions(
        self, lower: torch.Tensor, upper: torch.Tensor, soft: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor
    ) -> None:
        """See the base class."""
        ids = envs.nonzero().squeeze(1)
        if not len(ids):
            return
        data = self.asset.data
        default = data.default_joint_pos.torch[ids]
        self.asset.write_joint_position_limit_to_sim_index(
            limits=torch.stack((lower[ids], upper[ids]), dim=-1), env_ids=ids.int(), warn_limit_violation=False
        )
        # the writer moves the default pose into the limits (actions are offsets from it), and rescales the soft limits
        data.default_joint_pos.torch[ids] = default
        data.soft_joint_pos_limits.torch[ids] = soft[ids]

    def write_speeds(self, speed: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        """See the base class."""
        ids = envs.nonzero().squeeze(1)
        if len(ids):
            self.asset.write_joint_velocity_limit_to_sim_index(limits=speed[ids], env_ids=ids.int())

    def write_drive_efforts(self, effort: torch.Tensor, envs: torch.Tensor) -> None:
        """See the base class."""
        ids = envs.nonzero().squeeze(1)
        if len(ids):
            self.asset.write_joint_effort_limit_to_sim_index(limits=effort[ids], env_ids=ids.int())
