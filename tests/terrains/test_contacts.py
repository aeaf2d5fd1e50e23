# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
from types import SimpleNamespace
from typing import Any

import pytest
from isaaclab.sim import SimulationContext
from isaaclab_newton.physics import NewtonCollisionPipelineCfg
from umc.tasks.base import physics_presets
from umc.terrains.contacts import use_newton_contacts

PAIRS_ON_A_GPU = 1_477_852
"""Most pairs that Newton reported for 4,096 A1 on tracks, in training on an H100."""


def room_for(num_envs: int, monkeypatch: pytest.MonkeyPatch) -> int:
    physics: Any = physics_presets(njmax=200, nconmax=40).newton_mjwarp
    monkeypatch.setattr(SimulationContext, "instance", lambda: SimpleNamespace(cfg=SimpleNamespace(physics=physics)))
    use_newton_contacts(num_envs)
    assert not physics.solver_cfg.use_mujoco_contacts
    return physics.collision_cfg.max_triangle_pairs


def test_newton_has_room_for_the_triangles_under_thousands_of_robots(monkeypatch: pytest.MonkeyPatch) -> None:
    assert room_for(4096, monkeypatch) > 1.5 * PAIRS_ON_A_GPU


def test_few_robots_keep_newton_s_own_room(monkeypatch: pytest.MonkeyPatch) -> None:
    assert room_for(8, monkeypatch) == NewtonCollisionPipelineCfg().max_triangle_pairs
