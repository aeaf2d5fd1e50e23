# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A foot slips by the friction that its robot has drawn, on both engines and on every ground: a slide down a slope."""

from __future__ import annotations

import math
import statistics

import pytest

SLOPE = 0.25
"""Tangent of the slope: gravity is tilted, for the ground lies flat."""

SLIPPERY = 0.1
"""Friction of the feet [-]: with more than the slope's tangent a robot stands."""

GRAVITY = 9.81

SETTLE, SLIDE = 10, 30
"""Env steps of 0.02 s until the robot has settled, and those that are measured."""


def slide(physics: str, terrain: str) -> list[float]:
    """A1 stands on slippery feet on flat ground, or on the flat border of the tracks."""
    import torch
    import umc.utils.patches
    from isaaclab.envs import ManagerBasedRLEnv
    from umc.tasks.task_cfg import resolve_cfgs
    from umc.utils.naming import load_tasks

    umc.utils.patches.apply()
    torch.set_num_threads(1)
    load_tasks()
    cfg, _ = resolve_cfgs("UMC-A1-Stage1", None, [f"physics={physics}", f"env.scene.terrain={terrain}"])
    cfg.scene.num_envs, cfg.sim.device, cfg.seed = 4, "cpu", 1
    angle = math.atan(SLOPE)
    cfg.sim.gravity = (GRAVITY * math.sin(angle), 0.0, -GRAVITY * math.cos(angle))
    for name in ("static_friction_range", "dynamic_friction_range"):
        cfg.events.friction.params[name] = (SLIPPERY, SLIPPERY)
    for name in set(vars(cfg.terminations)) - {"time_out"}:
        setattr(cfg.terminations, name, None)
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    robot = env.scene["robot"]
    if terrain == "perlin":
        grid = env.scene.terrain.cfg.terrain_generator
        pose = robot.data.default_root_pose.torch.clone()
        pose[:, 0] = -0.5 * (grid.size[0] * grid.num_rows + grid.border_width)
        pose[:, 1] = torch.arange(len(pose)) - 0.5 * len(pose)
        robot.write_root_pose_to_sim_index(root_pose=pose)
    stand, speed = torch.zeros(cfg.scene.num_envs, len(robot.joint_names)), []
    for _ in range(SETTLE + SLIDE):
        env.step(stand)
        speed.append(robot.data.root_lin_vel_w.torch[:, 0].clone())
    return ((speed[-1] - speed[SETTLE - 1]) / (SLIDE * env.step_dt)).tolist()


LEAST, MOST = 0.8, 1.25
"""Part of the textbook's acceleration; legs give way at first. A ground with a friction of its own left 0 to 0.3."""

LEAST_ON_TRIANGLES = 0.5
"""On Newton's tracks (0.57 measured): its feet meet the inner edges of the height field's triangles."""


@pytest.mark.engine
@pytest.mark.parametrize(
    ("physics", "terrain", "least"),
    [
        ("ovphysx", "flat", LEAST),
        ("ovphysx", "perlin", LEAST),
        ("newton_mjwarp", "flat", LEAST),
        ("newton_mjwarp", "perlin", LEAST_ON_TRIANGLES),
    ],
)
def test_slippery_feet_slide(run_engine, physics, terrain, least):
    textbook = GRAVITY * math.cos(math.atan(SLOPE)) * (SLOPE - SLIPPERY)
    accelerations = run_engine(slide, physics=physics, terrain=terrain)
    assert least < statistics.mean(accelerations) / textbook < MOST, accelerations
