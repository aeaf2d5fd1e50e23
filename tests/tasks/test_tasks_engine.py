# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The tasks on real engines: what stands in which column, and what happens to broken physics."""

import functools
import subprocess
import sys
from pathlib import Path

import pytest
from dummy_robot import ROBOTS, WIDTHS
from umc.rl.checkpoint import checkpoint_info, read_checkpoint

TRAIN = Path(__file__).parents[2] / "scripts" / "train.py"
MOVED, BROKEN_ENV = 0.05, 1
"""Step by which each joint is moved to find its column [rad], and the env whose physics is broken."""


def what_the_task_shows(physics: str, task: str, break_physics: bool, terrain: str = "flat") -> dict:
    """Steps a task, moves one joint at a time, then breaks the physics of one env."""
    import torch
    import umc.tasks  # noqa: F401
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab_tasks.utils import load_cfg_from_registry, resolve_presets
    from umc.mdp import FaultInjector, LiveFaultsCfg, fault_state

    torch.set_num_threads(1)
    cfg = resolve_presets(load_cfg_from_registry(task, "env_cfg_entry_point"), [physics, terrain])
    joints = cfg.scene.robot.joint_ordering
    cfg.scene.num_envs, cfg.sim.device, cfg.seed = len(joints), "cpu", 3
    cfg.observations.policy.enable_corruption = False
    for term in ("joint_pos", "joint_vel", "last_action"):
        getattr(cfg.observations.policy, term).params.pop("noise", None)
    cfg.observations.live_faults = LiveFaultsCfg()
    env = ManagerBasedRLEnv(cfg)
    robot, action = env.scene["robot"], torch.zeros(len(joints), len(joints))
    observations, _ = env.reset()
    said = {"widths": {name: value.shape[1] for name, value in observations.items()}, "joints": robot.joint_names}
    # env i has its joint i moved; every other joint stays where it is
    position = robot.data.default_joint_pos.torch.clone()
    robot.write_joint_position_to_sim_index(position=position)
    before = {k: v.clone() for k, v in env.observation_manager.compute().items()}
    position += MOVED * torch.eye(len(joints))
    robot.write_joint_position_to_sim_index(position=position)
    after = env.observation_manager.compute()
    for group in ("policy", "critic"):
        change = after[group] - before[group]
        said[group] = [row.abs().argmax().item() for row in change]
        said[group + "_step"] = change.abs().amax(1).tolist()
    for _ in range(25):
        env.step(action)
    injector = FaultInjector(env)
    injector.clear(0)
    injector.inject(0, joints[2], "velocity")
    observations, *_ = env.step(action)
    said["live"] = [divmod(column, len(joints)) for column in observations["live_faults"][0].nonzero()[:, 0].tolist()]
    said["kinds"] = [kind.name for kind in fault_state(env).kinds]
    if break_physics:
        velocity = robot.data.joint_vel.torch.clone()
        velocity[BROKEN_ENV] = float("nan")
        robot.write_joint_velocity_to_sim_index(velocity=velocity)
        observations, reward, terminated, _, _ = env.step(action)
        said["ended"] = terminated.tolist()
        said["why"] = env.termination_manager.get_term("non_finite_state").tolist()
        said["finite_reward"] = bool(torch.isfinite(reward).all())
        said["finite_observations"] = all(bool(torch.isfinite(v).all()) for v in observations.values())
        finite = True
        for _ in range(20):
            observations, reward, *_ = env.step(action)
            finite &= bool(torch.isfinite(reward).all()) and all(
                bool(torch.isfinite(v).all()) for v in observations.values()
            )
        said["stays_finite"] = finite
        said["height_of_the_healed"] = robot.data.root_pos_w.torch[BROKEN_ENV, 2].item()
    return said


@pytest.fixture(scope="module")
def shown(run_engine):
    """What a robot's task shows; each runs once."""

    @functools.cache
    def run(robot):
        physics = "newton_mjwarp" if robot == "A1" else "ovphysx"
        return run_engine(what_the_task_shows, physics=physics, task=f"UMC-{robot}-Stage2", break_physics=robot == "A1")

    return run


@pytest.mark.engine
@pytest.mark.parametrize(("robot", "actor_start"), [("A1", 12), ("Go2", 12), ("G1", 9), ("H1", 9), ("Solo8", 12)])
def test_each_joint_stands_in_its_own_column(shown, robot, actor_start):
    said, joints, critic_start = shown(robot), ROBOTS[robot], 12
    assert said["widths"] == {**WIDTHS[robot], "live_faults": len(said["kinds"]) * len(joints)}
    assert tuple(said["joints"]) == joints
    assert said["policy"] == [actor_start + joint for joint in range(len(joints))]
    assert said["critic"] == [critic_start + joint for joint in range(len(joints))]
    assert said["live"] == [[said["kinds"].index("velocity"), 2]]
    assert said["policy_step"] == pytest.approx([MOVED] * len(joints), abs=1e-5)
    assert said["critic_step"] == pytest.approx([MOVED] * len(joints), abs=1e-5)


@pytest.mark.engine
def test_broken_physics_ends_one_episode_and_nothing_else(shown):
    said = shown("A1")
    assert [index for index, ended in enumerate(said["why"]) if ended] == [BROKEN_ENV]
    assert said["ended"][BROKEN_ENV]
    assert said["finite_reward"]
    assert said["finite_observations"]
    assert said["stays_finite"]
    assert said["height_of_the_healed"] > 0.2


def a1_on_tracks(physics: str) -> dict:
    """A1 stands on the tracks for half a second, as the task starts it."""
    import torch
    import umc.tasks  # noqa: F401
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab_tasks.utils import load_cfg_from_registry, resolve_presets
    from umc import mdp

    torch.set_num_threads(1)
    cfg = resolve_presets(load_cfg_from_registry("UMC-A1-Stage1", "env_cfg_entry_point"), [physics])
    cfg.scene.num_envs, cfg.sim.device, cfg.seed = 8, "cpu", 3
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    robot = env.scene["robot"]
    start = (robot.data.root_pos_w.torch - env.scene.env_origins).clone()
    facing = robot.data.heading_w.torch.clone()
    for _ in range(25):
        env.step(torch.zeros(8, 12))
    return {
        "start": start.abs().amax(0).tolist(),
        "facing": facing.abs().max().item(),
        "origin": env.scene.env_origins.amax(0).tolist(),
        "world": robot.data.root_pos_w.torch[:, 2].tolist(),
        "above": mdp.height_above_ground(env).tolist(),
        "up": int((env.episode_length_buf == 25).sum()),
    }


@pytest.mark.engine
@pytest.mark.parametrize("physics", ["newton_mjwarp", "ovphysx"])
def test_a1_starts_at_the_start_of_its_track_and_stands_on_it(run_engine, physics):
    said = run_engine(a1_on_tracks, physics=physics)
    assert max(said["start"][:2]) <= 0.5
    assert said["facing"] < 0.15  # along the track: +x
    assert said["origin"] == pytest.approx([-7.5, 0.0, 0.13], abs=1e-6)  # tracks from -8 m to 8 m
    assert said["up"] == 8
    assert all(0.22 < height < 0.34 for height in said["above"])
    assert max(said["world"]) > 0.33  # 0.28 above the plane at z = 0 would be a fall through the ground


@pytest.mark.engine
def test_h1_trains_on_newton(tmp_path):
    """Stage 2 from scratch, with the paper's faults of this robot."""
    arguments = ["--task", "UMC-H1-Stage2", "--agent", "mlp_one_stage", "--num_envs", "8", "--device", "cpu"]
    command = [sys.executable, str(TRAIN), *arguments, "--max_iterations", "2", "--seed", "3", "physics=newton_mjwarp"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = tmp_path.glob("logs/rsl_rl/umc_h1_mlp_one_stage_stage2/*/model_1.pt")
    assert checkpoint_info(read_checkpoint(path), path).physics == "newton_mjwarp"
