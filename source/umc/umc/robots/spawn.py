# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Spawn configuration of every robot: one USD file, the same settings on each engine."""

from importlib.resources import files

import isaaclab.sim as sim_utils
from isaaclab_newton.sim.schemas import NewtonArticulationCfg
from isaaclab_physx.sim.schemas import PhysxArticulationCfg, PhysxRigidBodyCfg

MAX_DEPENETRATION_VELOCITY = 1.0
"""Speed at which PhysX separates overlapping shapes [m/s] (Isaac Lab's own legged robots)."""

SOLVER_POSITION_ITERATIONS = 8
"""PhysX iterations per step; twice those of Isaac Lab's own Unitree robots, with which a locked joint of G1 slips.
H1 needs more (:mod:`umc.robots.h1`)."""

SOLVER_VELOCITY_ITERATIONS = 16
"""PhysX iterations that enforce joint speed limits. With none, as in those robots, joints at their speed limit push a
floating robot; docs/engines.md has the figures."""

SOFT_LIMIT_FACTOR = 0.9
"""Share of the joint range that the soft limits keep (unitree_rl_gym and Isaac Lab's legged robots)."""


def robot_usd(name: str, position_iterations: int = SOLVER_POSITION_ITERATIONS) -> sim_utils.UsdFileCfg:
    """Return the spawn configuration of ``<name>.usda``, with contact reports and without self-collision.

    Args:
        name: File name without suffix, for example ``"a1"``.
        position_iterations: PhysX iterations per step that enforce contacts and joint limits.
    """
    return sim_utils.UsdFileCfg(
        usd_path=str(files("umc.robots") / "data" / f"{name}.usda"),
        activate_contact_sensors=True,
        rigid_props=[PhysxRigidBodyCfg(max_depenetration_velocity=MAX_DEPENETRATION_VELOCITY)],
        articulation_props=[
            PhysxArticulationCfg(
                enabled_self_collisions=False,
                solver_position_iteration_count=position_iterations,
                solver_velocity_iteration_count=SOLVER_VELOCITY_ITERATIONS,
            ),
            NewtonArticulationCfg(self_collision_enabled=False),
        ],
    )
