# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Newton and ovphysx see the same robots, which stand, move and land alike on both."""

import contextlib
import math
import subprocess
import sys
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from pxr import Usd, UsdPhysics
from umc.robots.mirror import mirrored_joints

ENGINES = ("newton_mjwarp", "ovphysx")
ROBOTS = ("a1", "g1", "go2", "h1", "solo8")
DATA = files("umc.robots") / "data"
GRAVITY = 9.81
DT, DECIMATION = 0.005, 4
"""Length of a physics step [s], and physics steps of a policy step."""


@contextlib.contextmanager
def simulation(cfg: Any, physics: str, njmax: int, nconmax: int):
    """A scene on an engine; all robots are in their default state."""
    import umc.utils.patches
    from isaaclab.scene import InteractiveScene
    from isaaclab.sim import SimulationCfg, build_simulation_context
    from umc.tasks.base import physics_presets

    umc.utils.patches.apply()
    torch.set_num_threads(1)
    engine = getattr(physics_presets(njmax=njmax, nconmax=nconmax), physics)
    with build_simulation_context(sim_cfg=SimulationCfg(dt=DT, physics=engine, device="cpu")) as sim:
        scene = InteractiveScene(cfg)
        sim.reset()
        scene.reset()
        for robot in scene.articulations.values():
            pose = robot.data.default_root_pose.torch.clone()
            pose[:, :3] += scene.env_origins
            robot.write_root_pose_to_sim_index(root_pose=pose)
            robot.write_root_velocity_to_sim_index(root_velocity=robot.data.default_root_vel.torch)
            robot.write_joint_position_to_sim_index(position=robot.data.default_joint_pos.torch)
            robot.write_joint_velocity_to_sim_index(velocity=robot.data.default_joint_vel.torch)
        yield sim, scene


def step(sim: Any, scene: Any, targets: dict[str, torch.Tensor]) -> None:
    """One physics step with joint targets by robot; the others keep their default pose."""
    for name, robot in scene.articulations.items():
        target = targets.get(name, robot.data.default_joint_pos.torch)
        robot.actuators.target_command.set_position_index(value=target)
    scene.write_data_to_sim()
    sim.step(render=False)
    scene.update(DT)


STANDING = {"a1": (0.26, 0.30, 0.02), "go2": (0.24, 0.28, 0.15), "h1": (0.97, 1.05, 0.05), "solo8": (0.18, 0.24, 0.05)}
"""Robots that stand without a policy: least and greatest height [m], and how exactly the ground carries their weight.

H1, Solo8 and most of all Go2, whose gains are soft, still sway after a second; H1 has fallen after 1.9 s, since its
ankles are too soft to hold it; G1 after 1.0 s."""
STAND_STEPS, SETTLED, GHOST_STEPS = 250, 210, 60
PUSH = 0.3
"""How far beyond its limit a knee of the ghost is commanded to go [rad]."""


def scene_of_all_robots(physics: str, ghost: str) -> dict:
    """The robots stand side by side, and a G1 without colliders falls while its knees are driven past their limits."""
    from isaaclab.scene import InteractiveSceneCfg
    from isaaclab.sensors import ContactSensorCfg
    from umc.robots import A1_CFG, G1_CFG, GO2_CFG, H1_CFG, SOLO8_CFG
    from umc.terrains import FLAT_GROUND_CFG

    cfg: Any = InteractiveSceneCfg(num_envs=1, env_spacing=4.0)
    cfg.terrain = FLAT_GROUND_CFG.copy()
    for place, (name, robot_cfg) in enumerate(zip(ROBOTS, (A1_CFG, G1_CFG, GO2_CFG, H1_CFG, SOLO8_CFG), strict=True)):
        robot = robot_cfg.replace(prim_path=f"{{ENV_REGEX_NS}}/{name.upper()}")
        robot.init_state.pos = (0.0, 1.5 * place, robot_cfg.init_state.pos[2])
        setattr(cfg, name, robot)
        setattr(cfg, f"{name}_contacts", ContactSensorCfg(prim_path=f"{robot.prim_path}/[^/]*"))
    cfg.ghost = G1_CFG.replace(prim_path="{ENV_REGEX_NS}/Ghost")
    cfg.ghost.spawn.usd_path = ghost
    cfg.ghost.init_state.pos = (0.0, -1.5, 0.8)
    with simulation(cfg, physics, njmax=500, nconmax=100) as (sim, scene):
        said = {name: figures(scene[name], scene[f"{name}_contacts"]) for name in ROBOTS}
        data, limits = scene["ghost"].data, scene["ghost"].data.joint_pos_limits.torch
        knees = [scene["ghost"].joint_names.index(f"{side}_knee_joint") for side in ("left", "right")]
        masses = data.body_mass.torch[0]
        forces: dict[str, list[float]] = {name: [] for name in ROBOTS}
        overshoot, heights = [], []
        for number in range(STAND_STEPS):
            target = data.default_joint_pos.torch.clone()
            # the knees push against their lower limits, then against the upper ones
            side, push = (0, -PUSH) if number < GHOST_STEPS else (1, PUSH)
            target[:, knees] = limits[:, knees, side] + push
            step(sim, scene, {"ghost": target})
            heights.append(float((data.body_com_pos_w.torch[0, :, 2] * masses).sum() / masses.sum()))
            position = data.joint_pos.torch
            outside = torch.maximum(limits[..., 0] - position, position - limits[..., 1])[:, knees]
            overshoot.append(float(outside.max()))
            for name in ROBOTS if number >= SETTLED else ():
                forces[name].append(float(scene[f"{name}_contacts"].data.net_forces_w.torch[0, :, 2].sum()))
        for name in ROBOTS:
            said[name]["height"] = float(scene[name].data.root_pos_w.torch[0, 2])
            said[name]["force"] = sum(forces[name]) / len(forces[name])
    return {**said, "ghost_fell": heights[0] - heights[GHOST_STEPS], "overshoot": max(overshoot)}


def figures(robot: Any, contacts: Any) -> dict[str, Any]:
    """What an engine has read of a robot and of its contact sensor."""
    data = robot.data
    return {
        "joints": list(robot.joint_names),
        "bodies": list(robot.body_names),
        "mass": data.body_mass.torch[0].tolist(),
        "position_limits": data.joint_pos_limits.torch[0].tolist(),
        "velocity_limits": data.joint_vel_limits.torch[0].tolist(),
        "armature": data.joint_armature.torch[0].tolist(),
        "sensor_bodies": [path.rsplit("/", 1)[-1] for path in contacts.body_names],
    }


@pytest.fixture(scope="module")
def ghost(tmp_path_factory):
    """G1 without colliders: what is left must touch nothing."""
    stage = Usd.Stage.Open(str(DATA / "g1.usda"))
    colliders = [prim.GetPath() for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.CollisionAPI)]
    assert colliders
    for path in colliders:
        stage.RemovePrim(path)
    assert [prim for prim in stage.Traverse() if prim.GetName().startswith("visual_")]
    path = tmp_path_factory.mktemp("ghost") / "ghost.usda"
    stage.Flatten().Export(str(path))
    return str(path)


@pytest.fixture(scope="module")
def runs(run_engine, ghost):
    """Both engines' reports."""
    return {engine: run_engine(scene_of_all_robots, physics=engine, ghost=ghost) for engine in ENGINES}


@pytest.fixture(params=ENGINES)
def run(request, runs):
    return runs[request.param]


@pytest.mark.engine
@pytest.mark.parametrize("robot", ROBOTS)
def test_engine_reads_order_mass_limits_and_armature_of_the_file(run, robot):
    from umc import robots

    cfg = getattr(robots, f"{robot.upper()}_CFG")
    stage = Usd.Stage.Open(str(DATA / f"{robot}.usda"))
    prims = {prim.GetName(): prim for prim in stage.Traverse()}
    said = run[robot]
    assert said["joints"] == list(cfg.joint_ordering)
    assert said["bodies"] == said["sensor_bodies"] == list(cfg.body_ordering)
    masses = [prims[body].GetAttribute("physics:mass").Get() for body in said["bodies"]]
    assert said["mass"] == pytest.approx(masses, rel=1e-5)
    for at, joint in enumerate(said["joints"]):
        get = prims[joint].GetAttribute
        limits = [math.radians(get(f"physics:{end}Limit").Get()) for end in ("lower", "upper")]
        assert said["position_limits"][at] == pytest.approx(limits, abs=1e-5)
        speed = math.radians(get("newton:velocityLimit").Get())
        assert said["velocity_limits"][at] == pytest.approx(speed, rel=1e-5)
        assert said["armature"][at] == pytest.approx(get("newton:armature").Get(), rel=1e-5)


@pytest.mark.engine
@pytest.mark.parametrize("robot", STANDING)
def test_a_robot_stands_equally_high_on_both_engines_and_the_ground_carries_it(runs, robot):
    low, high, exact = STANDING[robot]
    newton, physx = (runs[engine][robot] for engine in ENGINES)
    assert newton["height"] == pytest.approx(physx["height"], abs=0.02)
    assert low < newton["height"] < high
    for said in (newton, physx):
        assert said["force"] == pytest.approx(sum(said["mass"]) * GRAVITY, rel=exact)


@pytest.mark.engine
def test_visual_shapes_touch_nothing_and_joint_limits_hold_against_the_motors(run):
    falls = GRAVITY * DT**2 * sum(range(2, GHOST_STEPS + 2))  # semi-implicit steps from the first on
    assert run["ghost_fell"] == pytest.approx(falls, abs=0.02)
    assert run["ghost_fell"] > 0.4  # its soles started 0 to 2 cm above the ground
    # the limit's softness in the file must reach Newton: 0.03 rad with it, 0.16 rad with Newton's default
    assert 0.0 <= run["overshoot"] < 0.06


TOLERANCE = 0.02
"""Greatest difference between the engines' joint positions [rad]."""
LIKENESS = 0.01
"""Greatest difference between a robot's joint positions and those of its mirror image [rad]: models are not even to the
last gram."""
TILT = 0.03
"""Greatest difference between a robot's tilt and that of its mirror image (part of gravity) [-]."""
STEPS, HEIGHT = 25, 5.0
"""Policy steps in the air, 0.5 s, and where the robots are let go [m]."""
SIZES, RATES = (0.5, 1.0), (0.5, 2.0)
"""Each joint's action swings with a size [-] and at a rate [Hz] of its own from these ranges, as in a walk. Half the
physics step halves the engines' difference: it is what their integrators make of one step, and grows with the speed."""


def swings(joints: int, generator: torch.Generator) -> torch.Tensor:
    """Seeded actions that begin at the default pose."""
    size, rate, side = torch.rand(3, joints, generator=generator)
    size = SIZES[0] + (SIZES[1] - SIZES[0]) * size
    rate = RATES[0] + (RATES[1] - RATES[0]) * rate
    time = DT * DECIMATION * torch.arange(STEPS)[:, None]
    return torch.where(side < 0.5, -size, size) * torch.sin(2.0 * torch.pi * rate * time)


def robots_in_the_air(physics: str) -> dict:
    """All robots follow seeded actions high up, where no contact decides; those of a second env the mirror image."""
    import umc.tasks  # noqa: F401
    from isaaclab.scene import InteractiveSceneCfg
    from isaaclab_tasks.utils import load_cfg_from_registry

    cfg: Any = InteractiveSceneCfg(num_envs=2, env_spacing=20.0)
    scales = {}
    for place, name in enumerate(ROBOTS):
        task: Any = load_cfg_from_registry(f"UMC-{name.capitalize()}-Stage1", "env_cfg_entry_point")
        robot = task.scene.robot.replace(prim_path=f"{{ENV_REGEX_NS}}/{name}")
        robot.init_state.pos = (0.0, 3.0 * place, HEIGHT)
        setattr(cfg, name, robot)
        scales[name] = task.actions.joint_pos.scale
    generator = torch.Generator().manual_seed(7)
    with simulation(cfg, physics, njmax=400, nconmax=80) as (sim, scene):
        targets, positions = {}, {name: [scene[name].data.joint_pos.torch.tolist()] for name in ROBOTS}
        for name in ROBOTS:
            actions = scales[name] * swings(scene[name].num_joints, generator)
            columns, signs = mirrored_joints(scene[name].joint_names)
            mirrored = actions[:, columns] * torch.tensor(signs)
            default = scene[name].data.default_joint_pos.torch[0]
            targets[name] = default + torch.stack((actions, mirrored), dim=1)
        for number in range(STEPS * DECIMATION):
            step(sim, scene, {name: target[number // DECIMATION] for name, target in targets.items()})
            for name in ROBOTS:
                positions[name].append(scene[name].data.joint_pos.torch.tolist())
        return {
            name: {
                "joints": list(scene[name].joint_names),
                "targets": targets[name].tolist(),
                "positions": positions[name],
                "gravity": scene[name].data.projected_gravity_b.torch.tolist(),
                "fell": HEIGHT - float(scene[name].data.root_pos_w.torch[0, 2]),
            }
            for name in ROBOTS
        }


@pytest.fixture(scope="module")
def flights(run_engine):
    """Results of both engines."""
    return {engine: run_engine(robots_in_the_air, physics=engine) for engine in ENGINES}


@pytest.mark.engine
@pytest.mark.parametrize("robot", ROBOTS)
def test_joints_move_alike_on_both_engines_in_free_fall(flights, robot):
    newton, physx = (torch.tensor(flights[engine][robot]["positions"])[:, 0] for engine in ENGINES)
    assert flights["newton_mjwarp"][robot]["targets"] == flights["ovphysx"][robot]["targets"]  # the same actions
    assert newton.shape[0] == STEPS * DECIMATION + 1
    assert (newton.amax(0) - newton.amin(0)).min() > 0.1  # every joint moves [rad]
    assert (newton - physx).abs().max() < TOLERANCE
    for engine in ENGINES:  # in free fall nothing is touched; the base bobs with the legs
        fall = 0.5 * GRAVITY * (STEPS * DECIMATION * DT) ** 2
        assert flights[engine][robot]["fell"] == pytest.approx(fall, abs=0.03)


@pytest.mark.engine
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("robot", ROBOTS)
def test_mirrored_actions_move_the_mirror_image(flights, robot, engine):
    said = flights[engine][robot]
    columns, signs = mirrored_joints(said["joints"])
    ours, mirrored = torch.tensor(said["positions"]).unbind(1)
    assert (mirrored - ours[:, columns] * torch.tensor(signs)).abs().max() < LIKENESS
    assert (mirrored - ours).abs().max() > 0.1  # it is another movement [rad]
    gravity, image = torch.tensor(said["gravity"])
    assert (image - gravity * torch.tensor([1.0, -1.0, 1.0])).abs().max() < TILT


FALLS, LEAN, SPEED = 24, 0.4, 2.0
"""Robots that land, each with its own tilt and joint targets; their largest lean forwards or backwards at the start
[rad]; and how fast their soles come down, from 0.1 m above the ground [m/s]."""
TARGET_SIZE = 1.5
"""Standard deviation of the joint targets, as in the soak (benchmarks/soak.py) [rad]."""
HOLDS = 0.2
"""How far a blow may knock a joint out of its window (benchmarks/soak_checks.py) [rad]; measured: 0.11, and 0.30 with 8
of PhysX's position iterations."""


def landings(physics: str) -> dict:
    """H1 comes down hard on locked ankles, and goes on flailing."""
    from isaaclab.scene import InteractiveSceneCfg
    from isaaclab.sensors import ContactSensorCfg
    from umc.faults.kinds import JointLimits
    from umc.mdp.physics import JointLimitWriter
    from umc.robots import H1_CFG
    from umc.terrains import FLAT_GROUND_CFG

    cfg: Any = InteractiveSceneCfg(num_envs=FALLS, env_spacing=3.0)
    cfg.terrain = FLAT_GROUND_CFG.copy()
    cfg.robot = H1_CFG.replace(prim_path="{ENV_REGEX_NS}/Robot")
    cfg.contacts = ContactSensorCfg(prim_path="{ENV_REGEX_NS}/Robot/.*_ankle_link")
    generator = torch.Generator().manual_seed(3)
    lean = LEAN * (2.0 * torch.rand(FALLS, generator=generator) - 1.0)
    with simulation(cfg, physics, njmax=200, nconmax=40) as (sim, scene):
        robot, data = scene["robot"], scene["robot"].data
        pose, speed = data.default_root_pose.torch.clone(), data.default_root_vel.torch.clone()
        pose[:, :3] += scene.env_origins + torch.tensor([0.0, 0.0, 0.1])
        pose[:, 3:] = torch.stack((0 * lean, (lean / 2).sin(), 0 * lean, (lean / 2).cos()), dim=1)  # x, y, z, w
        speed[:, 2] = -SPEED
        robot.write_root_pose_to_sim_index(root_pose=pose)
        robot.write_root_velocity_to_sim_index(root_velocity=speed)
        writer, default = JointLimitWriter(robot), data.default_joint_pos.torch.clone()
        healthy, (ankles, _) = writer.healthy, robot.find_joints(".*_ankle_joint")
        lower, upper = healthy.lower.clone(), healthy.upper.clone()
        lower[:, ankles] = upper[:, ankles] = default[:, ankles]
        limits = JointLimits(lower, upper, healthy.effort, healthy.velocity)
        writer.write(limits, torch.ones(FALLS, dtype=torch.bool))
        moved, force, target = torch.zeros(FALLS), torch.zeros(()), default
        for number in range(STEPS * DECIMATION):
            if number % DECIMATION == 0:
                target = default + TARGET_SIZE * torch.randn(default.shape, generator=generator)
            step(sim, scene, {"robot": target})
            moved = torch.maximum(moved, (data.joint_pos.torch - default)[:, ankles].abs().amax(1))
            force = torch.maximum(force, scene["contacts"].data.net_normal_forces_w.torch.norm(dim=-1).max())
        weight = GRAVITY * float(data.body_mass.torch[0].sum())
    return {"moved": moved.tolist(), "force": float(force) / weight}


@pytest.mark.engine
def test_h1s_ankles_stay_locked_on_physx_when_it_lands_on_toe_or_heel(run_engine):
    found = run_engine(landings, physics="ovphysx")
    assert found["force"] > 4.0  # it is an impact
    assert max(found["moved"]) < HOLDS


@pytest.mark.engine
def test_a_robot_is_pictured_without_a_screen(tmp_path):
    """The robot stands out of the light ground: its lower legs and feet are the only dark pixels."""
    picture = tmp_path / "solo8.png"
    command = [sys.executable, "-m", "tools.docs_figures", "portrait", "UMC-Solo8-Stage1", "--out", str(picture)]
    done = subprocess.run([*command, "physics=ovphysx"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    dark = (np.asarray(Image.open(picture)).max(axis=2) < 120).mean()
    assert 0.005 < dark < 0.1
