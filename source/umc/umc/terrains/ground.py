# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A flat ground from a USD file in this package: Isaac Lab's own ``plane`` is downloaded from the cloud."""

from importlib.resources import files

from isaaclab.terrains import TerrainImporterCfg
from isaaclab_physx.sim.spawners.materials import PhysxRigidBodyMaterialCfg

GROUND_FRICTION = 1.0e-4
"""Friction that is less than any foot's [-]; MuJoCo Warp warns of 0."""

GROUND_MATERIAL = PhysxRigidBodyMaterialCfg(
    friction_combine_mode="max",
    restitution_combine_mode="multiply",
    static_friction=GROUND_FRICTION,
    dynamic_friction=GROUND_FRICTION,
)
"""The foot's friction alone: of two frictions the greater counts, as always with MuJoCo, and by PhysX's `max`. (PhysX's
`multiply` with 1 would do the same there, but MuJoCo would take the 1 wherever a foot has less.)"""

FLAT_GROUND_CFG = TerrainImporterCfg(
    prim_path="/World/ground",
    terrain_type="usd",
    usd_path=str(files("umc.terrains") / "data" / "ground.usda"),
    collision_group=-1,
    physics_material=GROUND_MATERIAL,
    debug_vis=False,
)
"""An endless plane."""
