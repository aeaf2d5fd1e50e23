# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""H1's ankles stay locked on PhysX when its 52 kg land on a toe or a heel."""

from typing import Any

import pytest

FALLS = 24
"""Robots, each with its own tilt and joint targets."""
HEIGHT, SPEED = 0.1, 2.0
"""Where the soles start above the ground [m], and how fast they come down [m/s]."""
TILT = 0.4
"""Largest lean forwards or backwards at the start [rad]."""
TARGET_SIZE = 1.5
"""Standard deviation of the joint targets, as in the soak (benchmarks/soak.py) [rad]."""
STEPS, DECIMATION, DT = 25, 4, 0.005
"""Policy steps, physics steps in each, and their length [s]."""
HOLDS = 0.2
"""How far a blow may knock a joint out of its window (benchmarks/soak_checks.py) [rad]; measured: 0.11, and 0.30 with 8
of PhysX's position iterations."""


def landings(physics: str, iterations: int = 0) -> dict:
    """Robots come down hard on locked ankles, and go on flailing."""
    import torch
    from isaaclab.scene import InteractiveScene, InteractiveSceneCfg
    from isaaclab.sensors import ContactSensorCfg
    from isaaclab.sim import SimulationCfg, build_simulation_context
    from umc.faults.kinds import JointLimits
    from umc.mdp.physics import JointLimitWriter
    from umc.robots import H1_CFG
    from umc.tasks.base import physics_presets
    from umc.terrains import FLAT_GROUND_CFG

    torch.set_num_threads(1)
    cfg: Any = InteractiveSceneCfg(num_envs=FALLS, env_spacing=3.0)
    cfg.terrain = FLAT_GROUND_CFG.copy()
    cfg.robot = H1_CFG.replace(prim_path="{ENV_REGEX_NS}/Robot")
    for part in cfg.robot.spawn.articulation_props:
        if iterations and hasattr(part, "solver_position_iteration_count"):
            part.solver_position_iteration_count = iterations
    cfg.contacts = ContactSensorCfg(prim_path="{ENV_REGEX_NS}/Robot/.*_ankle_link")
    engine = getattr(physics_presets(njmax=200, nconmax=40), physics)
    generator = torch.Generator().manual_seed(3)
    lean = TILT * (2.0 * torch.rand(FALLS, generator=generator) - 1.0)
    with build_simulation_context(sim_cfg=SimulationCfg(dt=DT, physics=engine, device="cpu")) as sim:
        scene = InteractiveScene(cfg)
        sim.reset()
        scene.reset()
        robot, data = scene["robot"], scene["robot"].data
        pose, speed = data.default_root_pose.torch.clone(), data.default_root_vel.torch.clone()
        default = data.default_joint_pos.torch.clone()
        pose[:, :3] += scene.env_origins
        pose[:, 2] += HEIGHT
        pose[:, 3:] = torch.stack((0 * lean, (lean / 2).sin(), 0 * lean, (lean / 2).cos()), dim=1)  # x, y, z, w
        speed[:, 2] = -SPEED
        robot.write_root_pose_to_sim_index(root_pose=pose)
        robot.write_root_velocity_to_sim_index(root_velocity=speed)
        robot.write_joint_position_to_sim_index(position=default)
        robot.write_joint_velocity_to_sim_index(velocity=torch.zeros_like(default))
        writer = JointLimitWriter(robot)
        healthy, (ankles, _) = writer.healthy, robot.find_joints(".*_ankle_joint")
        lower, upper = healthy.lower.clone(), healthy.upper.clone()
        lower[:, ankles] = upper[:, ankles] = default[:, ankles]
        limits = JointLimits(lower, upper, healthy.effort, healthy.velocity)
        writer.write(limits, torch.ones(FALLS, dtype=torch.bool))
        moved, force, target = torch.zeros(FALLS), torch.zeros(()), default
        for number in range(STEPS * DECIMATION):
            if number % DECIMATION == 0:
                target = default + TARGET_SIZE * torch.randn(default.shape, generator=generator)
            robot.actuators.target_command.set_position_index(value=target)
            scene.write_data_to_sim()
            sim.step(render=False)
            scene.update(DT)
            moved = torch.maximum(moved, (data.joint_pos.torch - default)[:, ankles].abs().amax(1))
            force = torch.maximum(force, scene["contacts"].data.net_normal_forces_w.torch.norm(dim=-1).max())
        weight = 9.81 * float(data.body_mass.torch[0].sum())
    return {"moved": moved.tolist(), "force": float(force) / weight}


@pytest.mark.engine
def test_ankles_stay_locked_under_the_blow_of_a_landing(run_engine):
    found = run_engine(landings, physics="ovphysx")
    assert found["force"] > 4.0  # it is an impact
    assert max(found["moved"]) < HOLDS
