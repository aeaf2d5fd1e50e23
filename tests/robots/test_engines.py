# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Newton and ovphysx see the same robots."""

import math
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest
from PIL import Image
from pxr import Usd, UsdPhysics
from umc.robots import (
    A1_BODIES,
    A1_JOINTS,
    G1_BODIES,
    G1_JOINTS,
    H1_BODIES,
    H1_JOINTS,
    SOLO8_BODIES,
    SOLO8_JOINTS,
)

from tools import docs_figures

ENGINES = ("newton_mjwarp", "ovphysx")
ORDER = {
    "a1": (A1_JOINTS, A1_BODIES),
    "g1": (G1_JOINTS, G1_BODIES),
    "h1": (H1_JOINTS, H1_BODIES),
    "solo8": (SOLO8_JOINTS, SOLO8_BODIES),
}
STANDING = {"a1": (0.26, 0.30, 0.02), "h1": (0.97, 1.05, 0.05), "solo8": (0.18, 0.24, 0.05)}
"""Robots that stand without a policy: least and greatest height [m], and how exactly the ground carries their weight.

H1 and Solo8 still sway after a second; H1 has fallen after 1.9 s, since its ankles are too soft to hold it; G1 after
1.0 s."""
GRAVITY = 9.81
PUSH = 0.3
"""How far beyond its limit a knee of the ghost is commanded to go [rad]."""


def scene_of_all_robots(physics: str, ghost: str) -> dict:
    """The robots stand side by side, and a G1 without colliders falls while its knees are driven past their limits."""
    import torch
    import umc.utils.patches
    from isaaclab.scene import InteractiveScene, InteractiveSceneCfg
    from isaaclab.sensors import ContactSensorCfg
    from isaaclab.sim import SimulationCfg, build_simulation_context
    from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCfg
    from isaaclab_ov.physics import OvPhysxCfg
    from umc.robots import A1_CFG, G1_CFG, H1_CFG, SOLO8_CFG
    from umc.terrains import FLAT_GROUND_CFG

    umc.utils.patches.apply()
    torch.set_num_threads(1)
    step, steps, fall_steps, settled = 0.005, 250, 60, 210

    cfg = InteractiveSceneCfg(num_envs=1, env_spacing=4.0)
    cfg.terrain = FLAT_GROUND_CFG.copy()
    places = {"a1": (A1_CFG, 0.0), "g1": (G1_CFG, 1.5), "h1": (H1_CFG, 3.0), "solo8": (SOLO8_CFG, 4.5)}
    for name, (robot_cfg, y) in places.items():
        robot = robot_cfg.replace(prim_path=f"{{ENV_REGEX_NS}}/{name.upper()}")
        robot.init_state.pos = (0.0, y, robot_cfg.init_state.pos[2])
        setattr(cfg, name, robot)
        setattr(cfg, f"{name}_contacts", ContactSensorCfg(prim_path=f"{robot.prim_path}/[^/]*"))
    cfg.ghost = G1_CFG.replace(prim_path="{ENV_REGEX_NS}/Ghost")
    cfg.ghost.spawn.usd_path = ghost
    cfg.ghost.init_state.pos = (0.0, -1.5, 0.8)
    engines = {
        "newton_mjwarp": NewtonCfg(solver_cfg=MJWarpSolverCfg(njmax=500, nconmax=100)),
        "ovphysx": OvPhysxCfg(),
    }
    with build_simulation_context(sim_cfg=SimulationCfg(dt=step, physics=engines[physics], device="cpu")) as sim:
        scene = InteractiveScene(cfg)
        sim.reset()
        scene.reset()
        said, robots = {}, {name: scene[name] for name in (*places, "ghost")}
        for name, robot in robots.items():
            data = robot.data
            robot.write_root_pose_to_sim_index(root_pose=data.default_root_pose.torch)
            robot.write_root_velocity_to_sim_index(root_velocity=data.default_root_vel.torch)
            robot.write_joint_position_to_sim_index(position=data.default_joint_pos.torch)
            robot.write_joint_velocity_to_sim_index(velocity=data.default_joint_vel.torch)
            said[name] = {
                "joints": list(robot.joint_names),
                "bodies": list(robot.body_names),
                "mass": data.body_mass.torch[0].tolist(),
                "position_limits": data.joint_pos_limits.torch[0].tolist(),
                "velocity_limits": data.joint_vel_limits.torch[0].tolist(),
                "armature": data.joint_armature.torch[0].tolist(),
            }
        limits = robots["ghost"].data.joint_pos_limits.torch
        knees = [robots["ghost"].joint_names.index(f"{side}_knee_joint") for side in ("left", "right")]
        masses = robots["ghost"].data.body_mass.torch[0]
        forces: dict[str, list[float]] = {name: [] for name in places}
        overshoot, heights = [], []
        for number in range(steps):
            for name, robot in robots.items():
                target = robot.data.default_joint_pos.torch.clone()
                if name == "ghost":  # its knees push against their lower limits, then against the upper ones
                    side, push = (0, -PUSH) if number < fall_steps else (1, PUSH)
                    target[:, knees] = limits[:, knees, side] + push
                robot.actuators.target_command.set_position_index(value=target)
            scene.write_data_to_sim()
            sim.step(render=False)
            scene.update(step)
            centers = robots["ghost"].data.body_com_pos_w.torch[0, :, 2]
            heights.append(float((centers * masses).sum() / masses.sum()))
            position = robots["ghost"].data.joint_pos.torch
            outside = torch.maximum(limits[..., 0] - position, position - limits[..., 1])[:, knees]
            overshoot.append(float(outside.max()))
            for name in places if number >= settled else ():
                forces[name].append(float(scene[f"{name}_contacts"].data.net_forces_w.torch[0, :, 2].sum()))
        return {
            "said": said,
            "sensor_bodies": {
                name: [p.rsplit("/", 1)[-1] for p in scene[f"{name}_contacts"].body_names] for name in places
            },
            "height": {name: float(robots[name].data.root_pos_w.torch[0, 2]) for name in places},
            "force": {name: sum(forces[name]) / len(forces[name]) for name in places},
            "ghost_fell": heights[0] - heights[fall_steps],
            "ghost_falls": GRAVITY * step**2 * sum(range(2, fall_steps + 2)),  # semi-implicit steps from the first on
            "overshoot": max(overshoot),
        }


@pytest.fixture(scope="module")
def ghost(tmp_path_factory):
    """G1 without colliders: what is left must touch nothing."""
    stage = Usd.Stage.Open(str(files("umc.robots") / "data" / "g1.usda"))
    colliders = [prim.GetPath() for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.CollisionAPI)]
    for path in colliders:
        stage.RemovePrim(path)
    left = [prim for prim in stage.Traverse() if prim.GetName().startswith("visual_")]
    assert colliders
    assert left
    path = tmp_path_factory.mktemp("ghost") / "ghost.usda"
    stage.GetRootLayer().Export(str(path))
    return str(path)


@pytest.fixture(scope="module")
def runs(run_engine, ghost):
    """Both engines' reports."""
    return {engine: run_engine(scene_of_all_robots, physics=engine, ghost=ghost) for engine in ENGINES}


@pytest.fixture(params=ENGINES)
def run(request, runs):
    return runs[request.param]


@pytest.mark.engine
@pytest.mark.parametrize("robot", ORDER)
def test_engine_reads_order_mass_limits_and_armature_of_the_file(run, robot):
    stage = Usd.Stage.Open(str(files("umc.robots") / "data" / f"{robot}.usda"))
    prims = {prim.GetName(): prim for prim in stage.Traverse()}
    joints, bodies = ORDER[robot]
    said = run["said"][robot]
    assert said["joints"] == list(joints)
    assert said["bodies"] == run["sensor_bodies"][robot] == list(bodies)

    def radians(joint, attribute):
        return math.radians(prims[joint].GetAttribute(attribute).Get())

    assert said["mass"] == pytest.approx([prims[body].GetAttribute("physics:mass").Get() for body in bodies], rel=1e-5)
    for at, joint in enumerate(joints):
        limits = [radians(joint, "physics:lowerLimit"), radians(joint, "physics:upperLimit")]
        assert said["position_limits"][at] == pytest.approx(limits, abs=1e-5)
        assert said["velocity_limits"][at] == pytest.approx(radians(joint, "newton:velocityLimit"), rel=1e-5)
        assert said["armature"][at] == pytest.approx(prims[joint].GetAttribute("newton:armature").Get(), rel=1e-5)


@pytest.mark.engine
@pytest.mark.parametrize("robot", STANDING)
def test_ground_carries_the_weight(run, robot):
    weight = sum(run["said"][robot]["mass"]) * GRAVITY
    assert run["force"][robot] == pytest.approx(weight, rel=STANDING[robot][2])


@pytest.mark.engine
@pytest.mark.parametrize("robot", STANDING)
def test_a_robot_stands_equally_high_on_both_engines(runs, robot):
    newton, physx = (runs[engine]["height"][robot] for engine in ENGINES)
    assert newton == pytest.approx(physx, abs=0.02)
    low, high, _ = STANDING[robot]
    assert low < newton < high


@pytest.mark.engine
def test_visual_shapes_touch_nothing(run):
    assert run["ghost_fell"] == pytest.approx(run["ghost_falls"], abs=0.02)
    assert run["ghost_fell"] > 0.4  # its soles started 0 to 2 cm above the ground


@pytest.mark.engine
def test_joint_limits_hold_against_the_motors(run):
    """The limit's softness in the file must reach Newton: 0.03 rad with it, 0.16 rad with Newton's default."""
    assert 0.0 <= run["overshoot"] < 0.06  # [rad]


@pytest.mark.engine
def test_a_robot_is_pictured_without_a_screen(tmp_path):
    """The robot stands out of the light ground: its motors are the only dark pixels."""
    picture = tmp_path / "solo8.png"
    command = [sys.executable, "-m", "tools.docs_figures", "portrait", "UMC-Solo8-Stage1", "--out", str(picture)]
    done = subprocess.run([*command, "physics=ovphysx"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    dark = (np.asarray(Image.open(picture)).max(axis=2) < 70).mean()
    assert 0.005 < dark < 0.1


def test_a_picture_of_an_unknown_task_is_one_line(capsys):
    assert docs_figures.main(["portrait", "UMC-Dog-Stage1", "--out", "dog.png"]) == 2
    line = capsys.readouterr().err.splitlines()[-1]  # Warp may have said before that there is no GPU
    assert line.startswith("error: ")
    assert "UMC-Dog-Stage1" in line
