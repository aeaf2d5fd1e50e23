# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Newton and ovphysx see the same robots."""

import math
from importlib.resources import files

import pytest
from pxr import Usd, UsdPhysics
from umc.robots import A1_BODIES, A1_JOINTS, G1_BODIES, G1_JOINTS

ENGINES = ("newton_mjwarp", "ovphysx")
ORDER = {"a1": (A1_JOINTS, A1_BODIES), "g1": (G1_JOINTS, G1_BODIES)}
GRAVITY = 9.81
PUSH = 0.3
"""How far beyond its limit a knee of the ghost is told to go [rad]."""


def scene_of_both_robots(physics: str, ghost: str) -> dict:
    """A1 stands, G1 stands beside it, and a G1 without colliders falls while its knees are driven past their limits.

    Args:
        physics: Name of the engine.
        ghost: USD file of the G1 without colliders.

    Returns:
        What the engine says of each robot, and what they do in 1.25 s.
    """
    import torch
    import umc.compat
    from isaaclab.scene import InteractiveScene, InteractiveSceneCfg
    from isaaclab.sensors import ContactSensorCfg
    from isaaclab.sim import SimulationCfg, build_simulation_context
    from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCfg
    from isaaclab_ov.physics import OvPhysxCfg
    from umc.robots import A1_CFG, G1_CFG
    from umc.terrains import FLAT_GROUND_CFG

    umc.compat.apply()
    torch.set_num_threads(1)
    step, steps, fall_steps, settled = 0.005, 250, 60, 210

    cfg = InteractiveSceneCfg(num_envs=1, env_spacing=4.0)
    cfg.terrain = FLAT_GROUND_CFG.copy()
    cfg.a1 = A1_CFG.replace(prim_path="{ENV_REGEX_NS}/A1")
    cfg.g1 = G1_CFG.replace(prim_path="{ENV_REGEX_NS}/G1")
    cfg.g1.init_state.pos = (0.0, 1.5, 0.8)
    cfg.ghost = G1_CFG.replace(prim_path="{ENV_REGEX_NS}/Ghost")
    cfg.ghost.spawn.usd_path = ghost
    cfg.ghost.init_state.pos = (0.0, -1.5, 0.8)
    cfg.contacts = ContactSensorCfg(prim_path="{ENV_REGEX_NS}/A1/[^/]*")
    engines = {
        "newton_mjwarp": NewtonCfg(solver_cfg=MJWarpSolverCfg(njmax=300, nconmax=60)),
        "ovphysx": OvPhysxCfg(),
    }
    with build_simulation_context(sim_cfg=SimulationCfg(dt=step, physics=engines[physics], device="cpu")) as sim:
        scene = InteractiveScene(cfg)
        sim.reset()
        scene.reset()
        said, robots = {}, {name: scene[name] for name in ("a1", "g1", "ghost")}
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
        forces, overshoot, heights = [], [], []
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
            if number >= settled:
                forces.append(float(scene["contacts"].data.net_forces_w.torch[0, :, 2].sum()))
        return {
            "said": said,
            "sensor_bodies": [path.rsplit("/", 1)[-1] for path in scene["contacts"].body_names],
            "a1_height": float(robots["a1"].data.root_pos_w.torch[0, 2]),
            "a1_force": sum(forces) / len(forces),
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
    return {engine: run_engine(scene_of_both_robots, physics=engine, ghost=ghost) for engine in ENGINES}


@pytest.fixture(params=ENGINES)
def run(request, runs):
    return runs[request.param]


@pytest.mark.engine
@pytest.mark.parametrize("robot", ["a1", "g1"])
def test_order_of_joints_and_bodies_is_canonical(run, robot):
    joints, bodies = ORDER[robot]
    assert run["said"][robot]["joints"] == list(joints)
    assert run["said"][robot]["bodies"] == list(bodies)


@pytest.mark.engine
def test_contact_sensor_counts_bodies_in_the_same_order(run):
    assert run["sensor_bodies"] == list(A1_BODIES)


@pytest.mark.engine
@pytest.mark.parametrize("robot", ["a1", "g1"])
def test_engine_reads_mass_limits_and_armature_of_the_file(run, robot):
    stage = Usd.Stage.Open(str(files("umc.robots") / "data" / f"{robot}.usda"))
    prims = {prim.GetName(): prim for prim in stage.Traverse()}
    joints, bodies = ORDER[robot]
    said = run["said"][robot]

    def radians(joint, attribute):
        return math.radians(prims[joint].GetAttribute(attribute).Get())

    assert said["mass"] == pytest.approx([prims[body].GetAttribute("physics:mass").Get() for body in bodies], rel=1e-5)
    for at, joint in enumerate(joints):
        limits = [radians(joint, "physics:lowerLimit"), radians(joint, "physics:upperLimit")]
        assert said["position_limits"][at] == pytest.approx(limits, abs=1e-5)
        assert said["velocity_limits"][at] == pytest.approx(radians(joint, "newton:velocityLimit"), rel=1e-5)
        assert said["armature"][at] == pytest.approx(prims[joint].GetAttribute("newton:armature").Get(), rel=1e-5)


@pytest.mark.engine
def test_ground_carries_the_weight_of_a1(run):
    weight = sum(run["said"]["a1"]["mass"]) * GRAVITY
    assert run["a1_force"] == pytest.approx(weight, rel=0.02)


@pytest.mark.engine
def test_a1_stands_equally_high_on_both_engines(runs):
    newton, physx = (runs[engine]["a1_height"] for engine in ENGINES)
    assert newton == pytest.approx(physx, abs=0.02)
    assert 0.26 < newton < 0.30


@pytest.mark.engine
def test_visual_shapes_touch_nothing(run):
    assert run["ghost_fell"] == pytest.approx(run["ghost_falls"], abs=0.02)
    assert run["ghost_fell"] > 0.4  # its soles started 0 to 2 cm above the ground


@pytest.mark.engine
def test_joint_limits_hold_against_the_motors(run):
    """The limit's softness in the file must reach Newton: 0.03 rad with it, 0.16 rad with Newton's default."""
    assert 0.0 <= run["overshoot"] < 0.06  # [rad]
