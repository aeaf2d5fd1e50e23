# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""An environment of a task on the fake GPU."""

from __future__ import annotations

import pytest
from fake_cuda import CUDA
from fake_scene import FakeEnv, patch_newton
from umc.mdp.observations import _columns_on

ENVS = 4


@pytest.fixture
def make_env(monkeypatch):
    """Make an env of a task's cfg, and what stands in for Warp, inside a fake GPU."""
    _columns_on.cache_clear()

    def make(gpu, cfg):
        env = FakeEnv(cfg, ENVS, str(CUDA))
        warp = patch_newton(monkeypatch, env.scene["robot"])
        gpu.truth = True  # limits are finite, and some joints have the engine's drives
        env.load_managers()
        gpu.truth = False
        env.reset(slice(None))
        return env, warp

    yield make
    _columns_on.cache_clear()  # keeps fake tensors
