# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Any robot gets the PhysX iterations that its limits need."""

import isaaclab.sim as sim_utils
import pytest
from isaaclab.assets import ArticulationCfg
from umc.mdp.physics import prepare_robot
from umc.robots.spawn import SOLVER_POSITION_ITERATIONS, SOLVER_VELOCITY_ITERATIONS
from umc.utils.errors import UmcError

ENOUGH = (SOLVER_POSITION_ITERATIONS, SOLVER_VELOCITY_ITERATIONS)


def properties(position: int, velocity: int) -> sim_utils.ArticulationRootPropertiesCfg:
    return sim_utils.ArticulationRootPropertiesCfg(
        solver_position_iteration_count=position, solver_velocity_iteration_count=velocity
    )


@pytest.mark.parametrize(
    ("before", "after"), [(properties(4, 0), ENOUGH), (None, ENOUGH), ([properties(20, 40)], (20, 40))]
)
def test_a_robot_has_enough_iterations_and_keeps_more(before, after):
    spawn = sim_utils.UsdFileCfg(usd_path="robot.usd", articulation_props=before)
    cfg = ArticulationCfg(prim_path="/World/Robot", spawn=spawn)
    prepare_robot(cfg)
    found = cfg.spawn.articulation_props
    (found,) = found if isinstance(found, list) else [found]
    assert (found.solver_position_iteration_count, found.solver_velocity_iteration_count) == after
    with pytest.raises(UmcError, match="spawn it from a file"):
        prepare_robot(ArticulationCfg(prim_path="/World/Robot", spawn=None))
