# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Reward and termination terms that measure height from the ground, which may be rough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from isaaclab.managers import SceneEntityCfg

from umc.terrains.tracks import TrackImporter

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedEnv


def height_above_ground(env: ManagerBasedEnv, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")) -> torch.Tensor:
    """Height [m] of the robot's root above the ground under it, shape (num_envs,).

    On flat ground, its height in the world.
    """
    asset: Articulation = env.scene[asset_cfg.name]
    position = asset.data.root_pos_w.torch
    terrain = env.scene.terrain
    return position[:, 2] - terrain.height_at(position) if isinstance(terrain, TrackImporter) else position[:, 2]


def height_error_l2(
    env: ManagerBasedEnv, target_height: float, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")
) -> torch.Tensor:
    """Squared distance [m^2] of the root's height above the ground from a target [m]. Shape is (num_envs,)."""
    return (height_above_ground(env, asset_cfg) - target_height).square()


def height_below_minimum(
    env: ManagerBasedEnv, minimum_height: float, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")
) -> torch.Tensor:
    """End an episode when the root is less than a height [m] above the ground."""
    return height_above_ground(env, asset_cfg) < minimum_height
