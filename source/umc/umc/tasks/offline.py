# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Runs Isaac Lab's stock velocity tasks without its asset server: :func:`make_offline`."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from isaaclab.assets import ArticulationCfg
from isaaclab.terrains import TerrainImporterCfg

from umc.robots.names import is_remote
from umc.robots.spawn import DATA
from umc.tasks.bodies import cfgs_within, selections
from umc.terrains import FLAT_GROUND_CFG
from umc.utils.errors import UmcError

LOCAL_ROBOTS = {"Unitree/A1/a1.usd": DATA / "a1.usda", "Unitree/Go2/go2.usd": DATA / "go2.usda"}
"""Robots of this package by the end of the path of those on the server whose place they take."""

LOCAL_BODIES = {".*_foot": ".*_calf"}
"""Patterns of bodies that the server's files have, and those that have their place here: feet are welded to calves."""

LOOKS = ("texture_file", "visual_material")
"""Fields that change nothing but the picture."""


def make_offline(env_cfg: Any) -> list[str]:
    """Replace what a task's cfg loads from Isaac Lab's asset server by local files, in place.

    The ground plane becomes this package's, whose friction is that of the feet alone; A1 and Go2 become this package's;
    sky textures and the ground's visual material are dropped, and markers such as command arrows are switched off.
    Rewards, observations, commands and everything else stay as they are.

    Returns:
        A line for each change.

    Raises:
        UmcError: For a file that has no local counterpart, such as another robot's; set its path before this call.
    """
    env_cfg.scene = copy.deepcopy(env_cfg.scene)  # tasks share the cfgs of robots
    changes: list[str] = []
    for where, holder in cfgs_within({"scene": env_cfg.scene, "commands": env_cfg.commands}):
        if isinstance(holder, TerrainImporterCfg) and holder.terrain_type == "plane":
            holder.terrain_type, holder.usd_path = "usd", FLAT_GROUND_CFG.usd_path
            changes.append(f"{where}: an endless plane of this package")
        if getattr(holder, "debug_vis", False):
            holder.debug_vis = False
            changes.append(f"{where}.debug_vis: off")
        for name in LOOKS:
            looks = getattr(holder, name, None)
            if is_remote(looks) or any(is_remote(value) for _, value in _strings(looks)):
                setattr(holder, name, None)
                changes.append(f"{where}.{name}: none")
        if isinstance(holder, ArticulationCfg):
            changes += _local_robot(env_cfg, holder, where)
    missing = [(where, value) for where, value in _strings(env_cfg.scene, "scene") if is_remote(value)]
    if missing:
        where, path = missing[0]
        raise UmcError(f"{path} has no local counterpart; download it once and set {where} before make_offline")
    return changes


def _local_robot(env_cfg: Any, robot: ArticulationCfg, where: str) -> list[str]:
    """Take a robot of this package for one on the server; return what has changed."""
    path = getattr(robot.spawn, "usd_path", None)
    local = next((file for end, file in LOCAL_ROBOTS.items() if is_remote(path) and str(path).endswith(end)), None)
    if local is None:
        return []
    spawn: Any = robot.spawn
    spawn.usd_path = str(local)
    changes = [f"{where}.spawn.usd_path: {local.name} of this package"]
    for place, selection in selections(env_cfg):
        names = selection.body_names
        patterns = [names] if isinstance(names, str) else list(names or ())
        own = [LOCAL_BODIES.get(name, name) for name in patterns]
        if own != patterns:
            selection.body_names = own[0] if isinstance(names, str) else own
            changes.append(f"{place}.body_names: {names} becomes {selection.body_names}")
    return changes


def _strings(cfg: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every string of a cfg and the cfgs within it."""
    for place, holder in cfgs_within(cfg, where):
        for name, value in vars(holder).items():
            if isinstance(value, str):
                yield f"{place}.{name}", value
