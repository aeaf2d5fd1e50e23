# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What the cfgs of all robots share: one USD file, the same settings on each engine."""

from importlib.resources import files
from pathlib import Path

import isaaclab.sim as sim_utils
from isaaclab.actuators import ActuatorBaseCfg
from isaaclab.assets import ArticulationCfg
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


DATA = Path(str(files("umc.robots") / "data"))
"""USD and MJCF files of the robots of this package."""


def robot_cfg(
    usd: Path,
    joint_names: tuple[str, ...],
    body_names: tuple[str, ...],
    init_state: ArticulationCfg.InitialStateCfg,
    legs: ActuatorBaseCfg,
    position_iterations: int = SOLVER_POSITION_ITERATIONS,
) -> ArticulationCfg:
    """Return the cfg of a robot, with contact reports and without self-collision.

    Args:
        usd: The robot's USD file.
        joint_names: The order of joints in observations, actions and masks, on every engine.
        body_names: The order of bodies, on every engine.
        init_state: Start height and default pose.
        legs: Actuators of all joints; the critic of quadrupeds reads their gains under the name ``legs``.
        position_iterations: PhysX iterations per step that enforce contacts and joint limits.
    """
    return ArticulationCfg(
        prim_path="{ENV_REGEX_NS}/Robot",
        spawn=sim_utils.UsdFileCfg(
            usd_path=str(usd),
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
        ),
        init_state=init_state,
        soft_joint_pos_limit_factor=SOFT_LIMIT_FACTOR,
        joint_ordering=joint_names,
        body_ordering=body_names,
        actuators={"legs": legs},
    )
