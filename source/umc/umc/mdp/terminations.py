# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Termination terms that Isaac Lab does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from isaaclab.managers import SceneEntityCfg

from umc.mdp.rewards import height_above_ground

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedEnv, ManagerBasedRLEnv


def non_finite_state(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")) -> torch.Tensor:
    """End an episode whose physics state is not finite, so that the env is reset before its state is observed.

    A NaN compares false with every threshold, so no other termination sees it (measured on Newton under violent
    actions).
    """
    asset: Articulation = env.scene[asset_cfg.name]
    data = asset.data
    parts = (data.joint_pos, data.joint_vel, data.root_pos_w, data.root_quat_w, data.root_lin_vel_w)
    return ~torch.isfinite(torch.cat([part.torch for part in parts], dim=1)).all(1)


def roll_pitch_beyond(
    env: ManagerBasedRLEnv, max_roll: float, max_pitch: float, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")
) -> torch.Tensor:
    """End an episode when the trunk's absolute roll or pitch [rad] exceeds a limit. Shape is (num_envs,)."""
    asset: Articulation = env.scene[asset_cfg.name]
    # from gravity, not from the quaternion: a tenth of the operations
    forward, left, up = asset.data.projected_gravity_b.torch.unbind(1)
    roll, pitch = torch.atan2(-left, -up), torch.asin(forward.clamp(-1.0, 1.0))
    return (roll.abs() > max_roll) | (pitch.abs() > max_pitch)


def height_below_minimum(
    env: ManagerBasedEnv, minimum_height: float, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")
) -> torch.Tensor:
    """End an episode when the root is less than a height [m] above the ground."""
    return height_above_ground(env, asset_cfg) < minimum_height
