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


def prepared(articulation_props) -> list[tuple[int, int]]:
    spawn = sim_utils.UsdFileCfg(usd_path="robot.usd", articulation_props=articulation_props)
    cfg = ArticulationCfg(prim_path="/World/Robot", spawn=spawn)
    prepare_robot(cfg)
    properties = cfg.spawn.articulation_props
    entries = properties if isinstance(properties, list) else [properties]
    return [(entry.solver_position_iteration_count, entry.solver_velocity_iteration_count) for entry in entries]


def test_isaac_labs_own_robots_have_none():
    legacy = sim_utils.ArticulationRootPropertiesCfg(
        solver_position_iteration_count=4, solver_velocity_iteration_count=0
    )
    assert prepared(legacy) == [ENOUGH]


def test_a_robot_without_properties_gets_some():
    assert prepared(None) == [ENOUGH]


def test_more_are_kept():
    more = sim_utils.ArticulationRootPropertiesCfg(
        solver_position_iteration_count=20, solver_velocity_iteration_count=40
    )
    assert prepared([more]) == [(20, 40)]


def test_a_robot_that_is_not_from_a_file_is_refused():
    cfg = ArticulationCfg(prim_path="/World/Robot", spawn=None)
    with pytest.raises(UmcError, match="spawn it from a file"):
        prepare_robot(cfg)
