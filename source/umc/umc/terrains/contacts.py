# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Patches for walking on height fields with Newton, and when they can go."""

from __future__ import annotations

from typing import Any

import numpy as np

CONTACTS = 128
"""Contacts that the solver keeps per env: Newton finds one for each triangle, up to 70 under a walking A1."""

ROWS = 640
"""Constraint rows that it keeps per env: four for a contact (pyramidal cone), and the joints'."""


TRIANGLES = 800
"""Pairs of a shape and a triangle near it that Newton looks at, per env: 361 for each of 4,096 A1 in training."""


def use_newton_contacts(num_envs: int) -> None:
    """Let Newton instead of MuJoCo Warp find contacts, in the simulation that is being set up; PhysX is left alone.

    What: ``use_mujoco_contacts=False`` in the cfg of the MuJoCo Warp solver, and room for more contacts. By default
    Newton has room for a million pairs of shapes and triangles, whatever the number of envs, and drops the rest.
    Why: MuJoCo Warp cuts a height field into prisms and keeps 50 collisions of a body with them; at 2.5 cm a calf hits
    more ("height field collision overflow"). The A1 of a1_mlp_tracks_cpu, which walks over PhysX's mesh of the same
    ground at 0.64 m/s, does 0.06 m/s, and 14 of 16 robots fall in 10 s; with Newton's own contacts it does 0.56 m/s,
    and none falls, at three times the rate (newton 1.6.1; ``evaluate.py --healthy --num_envs 16 physics=newton_mjwarp
    --checkpoint RUN`` with and without the call in ``track_importer.py``).
    When it can go: once the pretrained A1 walks on Newton's tracks without it (``tests/cli/test_scripts.py``).
    """
    from isaaclab.sim import SimulationContext
    from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCollisionPipelineCfg

    context = SimulationContext.instance()
    physics: Any = None if context is None else context.cfg.physics
    solver = getattr(physics, "solver_cfg", None)
    if isinstance(solver, MJWarpSolverCfg) and solver.use_mujoco_contacts:
        solver.use_mujoco_contacts = False
        solver.nconmax, solver.njmax = max(solver.nconmax or 0, CONTACTS), max(solver.njmax or 0, ROWS)
        pairs = max(NewtonCollisionPipelineCfg().max_triangle_pairs, TRIANGLES * num_envs)
        physics.collision_cfg = NewtonCollisionPipelineCfg(max_triangle_pairs=pairs)


def apply_ground_friction_to_height_fields() -> None:
    """Give Newton's height fields the friction of their ground's material, in the simulation that is being set up.

    What: next to no friction (:data:`umc.terrains.GROUND_MATERIAL`) for all height fields, before the solver is made.
    Why: Isaac Lab makes them without a material, so Newton's default of 1 stands, and a foot with less never slips.
    When it can go: once ``NewtonManager._inject_terrain_heightfields`` reads the material that is bound to the mesh
    (``tests/terrains/test_friction.py``).
    """
    from isaaclab.physics import PhysicsEvent
    from isaaclab.sim import SimulationContext
    from isaaclab_newton.physics import NewtonCfg, NewtonManager

    context = SimulationContext.instance()
    if context is not None and isinstance(context.cfg.physics, NewtonCfg):
        NewtonManager.register_callback(_take_friction, PhysicsEvent.PHYSICS_READY, name="umc_ground_friction")


def _take_friction(_: object) -> None:
    from isaaclab_newton.physics import NewtonManager
    from newton import GeoType

    from umc.terrains.ground import GROUND_MATERIAL

    model: Any = NewtonManager.get_model()
    friction = model.shape_material_mu.numpy()
    friction[np.asarray(model.shape_type.numpy()) == int(GeoType.HFIELD)] = GROUND_MATERIAL.dynamic_friction
    model.shape_material_mu.assign(friction)
