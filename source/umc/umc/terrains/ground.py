# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A flat ground from a USD file in this package: Isaac Lab's own ``plane`` is downloaded from the cloud."""

from importlib.resources import files

from isaaclab.terrains import TerrainImporterCfg
from isaaclab_physx.sim.spawners.materials import PhysxRigidBodyMaterialCfg

GROUND_MATERIAL = PhysxRigidBodyMaterialCfg(
    friction_combine_mode="multiply", restitution_combine_mode="multiply", static_friction=1.0, dynamic_friction=1.0
)
"""Friction 1, multiplied with that of the foot."""

FLAT_GROUND_CFG = TerrainImporterCfg(
    prim_path="/World/ground",
    terrain_type="usd",
    usd_path=str(files("umc.terrains") / "data" / "ground.usda"),
    collision_group=-1,
    physics_material=GROUND_MATERIAL,
    debug_vis=False,
)
"""An endless plane."""
