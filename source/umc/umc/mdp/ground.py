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
    """Height of the robot's root above the ground under it; on flat ground, its height in the world.

    Args:
        env: The environment.
        asset_cfg: The robot.

    Returns:
        Height [m]. Shape is (num_envs,).
    """
    asset: Articulation = env.scene[asset_cfg.name]
    position = asset.data.root_pos_w.torch
    terrain = env.scene.terrain
    return position[:, 2] - terrain.height_at(position) if isinstance(terrain, TrackImporter) else position[:, 2]


def height_error_l2(
    env: ManagerBasedEnv, target_height: float, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")
) -> torch.Tensor:
    """Squared distance of the root's height above the ground from a target.

    Args:
        env: The environment.
        target_height: Height that is asked for [m].
        asset_cfg: The robot.

    Returns:
        Squared error [m^2]. Shape is (num_envs,).
    """
    return (height_above_ground(env, asset_cfg) - target_height).square()


def lower_than(
    env: ManagerBasedEnv, minimum_height: float, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")
) -> torch.Tensor:
    """Ends an episode when the root is too close to the ground.

    Args:
        env: The environment.
        minimum_height: Least height [m].
        asset_cfg: The robot.

    Returns:
        True where it is lower. Shape is (num_envs,).
    """
    return height_above_ground(env, asset_cfg) < minimum_height
