# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A simulation that does nothing leaves the CPU to others."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
import warp as wp

WATCHED_S = 1.0
MOST_WAKE_UPS = 5_000
"""Of all threads in that time; without the patch one of them wakes up 17,000 times."""


def wake_ups() -> int:
    """How often the threads of this process have waited for something."""
    status = [file.read_text() for file in Path("/proc/self/task").glob("*/status")]
    return sum(int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0]) for text in status)


@pytest.mark.engine
@pytest.mark.skipif(sys.platform != "linux" or wp.is_cuda_available(), reason="the patch is for Linux without CUDA")
def test_the_threads_of_an_idle_engine_sleep():
    import umc.utils.patches
    from isaaclab.scene import InteractiveScene, InteractiveSceneCfg
    from isaaclab.sim import SimulationCfg, build_simulation_context
    from umc.robots import A1_CFG
    from umc.tasks.base import physics_presets

    umc.utils.patches.apply()
    engine = physics_presets(njmax=100, nconmax=20).ovphysx
    with build_simulation_context(sim_cfg=SimulationCfg(physics=engine, device="cpu")) as sim:
        cfg: Any = InteractiveSceneCfg(num_envs=1, env_spacing=4.0)
        cfg.robot = A1_CFG.replace(prim_path="{ENV_REGEX_NS}/Robot")
        scene = InteractiveScene(cfg)
        sim.reset()
        scene.reset()
        before = wake_ups()
        time.sleep(WATCHED_S)
        assert wake_ups() - before < MOST_WAKE_UPS
