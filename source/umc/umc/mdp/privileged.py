# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Observation terms beside the joints: the gait clock, zeros, and privileged physics for the critic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from isaaclab.actuators.newton import read_group_parameter
from isaaclab.managers import ManagerTermBase, ObservationTermCfg, SceneEntityCfg

from umc.mdp.rewards import gait_phase

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedEnv, ManagerBasedRLEnv


def zeros(env: ManagerBasedEnv, width: int) -> torch.Tensor:
    """Zeros in the columns of a signal that the policy does not get. Shape is (num_envs, width)."""
    return torch.zeros(env.num_envs, width, device=env.device)


def phase_clock(env: ManagerBasedRLEnv, period: float) -> torch.Tensor:
    """Sine and cosine of the gait clock with a stride of ``period`` [s]. Shape is (num_envs, 2)."""
    angle = 2.0 * math.pi * gait_phase(env, period)
    return torch.stack((angle.sin(), angle.cos()), dim=1)


class randomized_physics(ManagerTermBase):
    """Start-up randomisation of each env: trunk mass and centre of mass, motor strength of every joint.

    Friction is left out: the engines draw it per shape and offer no common way to read it.
    """

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedEnv) -> None:
        super().__init__(cfg, env)
        self._values: torch.Tensor | None = None

    def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
        """Read the values again when all envs are reset at once: the first time, start-up events have just run."""
        if env_ids is None or isinstance(env_ids, slice):
            self._values = None

    def __call__(self, env: ManagerBasedEnv, asset_cfg: SceneEntityCfg, actuator: str) -> torch.Tensor:
        """Return mass over its mean [-], centre of mass [m] (3) and gain over its mean per joint [-].

        Shape is (num_envs, 4 + num_joints). ``asset_cfg`` names the body, ``actuator`` the group of actuators.
        """
        if self._values is None:
            asset: Articulation = env.scene[asset_cfg.name]
            mass = asset.data.body_mass.torch[:, asset_cfg.body_ids].reshape(env.num_envs, 1)
            com = asset.data.body_com_pos_b.torch[:, asset_cfg.body_ids].reshape(env.num_envs, 3)
            gain = read_group_parameter(asset.actuators, actuator, "controller", "kp").reshape(env.num_envs, -1)
            self._values = torch.cat((mass / mass.mean(), com, gain / gain.mean(0)), dim=1).clone()
        return self._values
