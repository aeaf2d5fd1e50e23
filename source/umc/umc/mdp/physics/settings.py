# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a robot's cfg needs so that an engine holds its joints to limits."""

from __future__ import annotations

from typing import Any, cast

from isaaclab.assets import ArticulationCfg
from isaaclab_physx.sim.schemas import PhysxArticulationCfg

from umc.robots.spawn import SOLVER_POSITION_ITERATIONS, SOLVER_VELOCITY_ITERATIONS
from umc.utils.errors import UmcError


def prepare_robot(cfg: ArticulationCfg) -> None:
    """Give a robot, in place, at least the PhysX solver iterations that windows and speed limits need.

    Newton reads none. Raises UmcError if it is not spawned from a file whose articulation properties can be set.
    """
    spawn = cast(Any, cfg.spawn)
    if not hasattr(spawn, "articulation_props"):
        raise UmcError(
            "speed limits need solver iterations that this robot's spawn cfg cannot set; spawn it from a file"
        )
    properties = spawn.articulation_props
    entries = list(properties) if isinstance(properties, list | tuple) else [properties] if properties else []
    solvers = [entry for entry in entries if hasattr(entry, "solver_velocity_iteration_count")]
    if not solvers:
        solvers = [PhysxArticulationCfg()]
        spawn.articulation_props = [*entries, *solvers]
    for solver in solvers:
        solver.solver_position_iteration_count = max(
            solver.solver_position_iteration_count or 0, SOLVER_POSITION_ITERATIONS
        )
        solver.solver_velocity_iteration_count = max(
            solver.solver_velocity_iteration_count or 0, SOLVER_VELOCITY_ITERATIONS
        )
