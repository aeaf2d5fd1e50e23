# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The same actions move every robot's joints alike on Newton and ovphysx, in the air, where no contact decides.

A second robot beside each gets the mirror image of the actions, and moves as the first one's mirror image.
"""

from typing import Any

import pytest
import torch
from umc.robots.mirror import mirrored_joints

ENGINES = ("newton_mjwarp", "ovphysx")
ROBOTS = ("A1", "G1", "H1", "Solo8")
TOLERANCE = 0.02
"""Greatest difference between the engines' joint positions [rad]."""
LIKENESS = 0.01
"""Greatest difference between a robot's joint positions and those of its mirror image [rad]: models are not even to the
last gram."""
TILT = 0.03
"""Greatest difference between a robot's tilt and that of its mirror image (part of gravity) [-]."""
STEPS, DECIMATION, DT = 25, 4, 0.005
"""Policy steps, physics steps in each, and their length [s]: 0.5 s."""
HEIGHT = 5.0
"""Where the robots are let go [m]; in 0.5 s they fall 1.2 m."""
SIZES, RATES = (0.5, 1.0), (0.5, 2.0)
"""Each joint's action swings with a size [-] and at a rate [Hz] of its own from these ranges, as in a walk. Half the
physics step halves the engines' difference: it is what their integrators make of one step, and grows with the speed."""


def actions(joints: int, generator: torch.Generator) -> torch.Tensor:
    """Seeded swings that begin at the default pose."""
    size, rate, side = torch.rand(3, joints, generator=generator)
    size = SIZES[0] + (SIZES[1] - SIZES[0]) * size
    rate = RATES[0] + (RATES[1] - RATES[0]) * rate
    time = DT * DECIMATION * torch.arange(STEPS)[:, None]
    return torch.where(side < 0.5, -size, size) * torch.sin(2.0 * torch.pi * rate * time)


def robots_in_the_air(physics: str) -> dict:
    """All robots side by side, high up, follow seeded actions for half a second."""
    import umc.tasks  # noqa: F401
    from isaaclab.scene import InteractiveScene, InteractiveSceneCfg
    from isaaclab.sim import SimulationCfg, build_simulation_context
    from isaaclab_tasks.utils import load_cfg_from_registry
    from umc.tasks.base import physics_presets

    torch.set_num_threads(1)
    tasks: dict[str, Any] = {
        name: load_cfg_from_registry(f"UMC-{name}-Stage1", "env_cfg_entry_point") for name in ROBOTS
    }
    cfg: Any = InteractiveSceneCfg(num_envs=2, env_spacing=20.0)
    for at, (name, task) in enumerate(tasks.items()):
        robot = task.scene.robot.replace(prim_path=f"{{ENV_REGEX_NS}}/{name}")
        robot.init_state.pos = (0.0, 3.0 * at, HEIGHT)
        setattr(cfg, name, robot)
    engine = getattr(physics_presets(njmax=400, nconmax=80), physics)
    generator = torch.Generator().manual_seed(7)
    with build_simulation_context(sim_cfg=SimulationCfg(dt=DT, physics=engine, device="cpu")) as sim:
        scene = InteractiveScene(cfg)
        sim.reset()
        scene.reset()
        said: dict[str, Any] = {}
        for name in ROBOTS:
            robot, data = scene[name], scene[name].data
            pose = data.default_root_pose.torch.clone()
            pose[:, :3] += scene.env_origins
            robot.write_root_pose_to_sim_index(root_pose=pose)
            robot.write_root_velocity_to_sim_index(root_velocity=data.default_root_vel.torch)
            robot.write_joint_position_to_sim_index(position=data.default_joint_pos.torch)
            robot.write_joint_velocity_to_sim_index(velocity=data.default_joint_vel.torch)
            draws = actions(robot.num_joints, generator)
            columns, signs = mirrored_joints(robot.joint_names)
            default, scale = data.default_joint_pos.torch[0], tasks[name].actions.joint_pos.scale
            said[name] = {
                "joints": list(robot.joint_names),
                "targets": (default + scale * draws).tolist(),
                "mirrored_targets": (default + scale * draws[:, columns] * torch.tensor(signs)).tolist(),
                "positions": [data.joint_pos.torch[0].tolist()],
                "mirrored_positions": [data.joint_pos.torch[1].tolist()],
            }
        for number in range(STEPS * DECIMATION):
            for name in ROBOTS:
                target = torch.tensor(
                    [said[name][key][number // DECIMATION] for key in ("targets", "mirrored_targets")]
                )
                scene[name].actuators.target_command.set_position_index(value=target)
            scene.write_data_to_sim()
            sim.step(render=False)
            scene.update(DT)
            for name in ROBOTS:
                ours, mirrored = scene[name].data.joint_pos.torch.tolist()
                said[name]["positions"].append(ours)
                said[name]["mirrored_positions"].append(mirrored)
        for name in ROBOTS:
            said[name]["gravity"] = scene[name].data.projected_gravity_b.torch.tolist()
            said[name]["fell"] = HEIGHT - float(scene[name].data.root_pos_w.torch[0, 2])
    return said


@pytest.fixture(scope="module")
def runs(run_engine):
    """Results of both engines."""
    return {engine: run_engine(robots_in_the_air, physics=engine) for engine in ENGINES}


@pytest.mark.engine
@pytest.mark.parametrize("robot", ROBOTS)
def test_joints_move_alike_on_both_engines_in_free_fall(runs, robot):
    newton, physx = (torch.tensor(runs[engine][robot]["positions"]) for engine in ENGINES)
    assert runs["newton_mjwarp"][robot]["targets"] == runs["ovphysx"][robot]["targets"]  # the same actions
    assert newton.shape[0] == STEPS * DECIMATION + 1
    assert (newton.amax(0) - newton.amin(0)).min() > 0.1  # every joint moves [rad]
    assert (newton - physx).abs().max() < TOLERANCE
    for engine in ENGINES:  # in free fall nothing is touched; the base bobs with the legs
        assert runs[engine][robot]["fell"] == pytest.approx(0.5 * 9.81 * (STEPS * DECIMATION * DT) ** 2, abs=0.03)


@pytest.mark.engine
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("robot", ROBOTS)
def test_mirrored_actions_move_the_mirror_image(runs, robot, engine):
    said = runs[engine][robot]
    columns, signs = mirrored_joints(said["joints"])
    ours, mirrored = torch.tensor(said["positions"]), torch.tensor(said["mirrored_positions"])
    assert (mirrored - ours[:, columns] * torch.tensor(signs)).abs().max() < LIKENESS
    assert (mirrored - ours).abs().max() > 0.1  # it is another movement [rad]
    gravity, image = torch.tensor(said["gravity"])
    assert (image - gravity * torch.tensor([1.0, -1.0, 1.0])).abs().max() < TILT
