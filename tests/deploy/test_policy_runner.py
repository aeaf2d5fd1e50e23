# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The runner on a robot acts from raw sensors as the policy did in the simulation, and refuses wrong input."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from fresh_policy import WIDTHS, write_fresh
from isaaclab_tasks.utils import load_cfg_from_registry
from recorded_rollout import what_a_robot_feels_and_does
from umc.deploy.export import export_checkpoint
from umc.deploy.policy_runner import PolicyRunner
from umc.rl.policy import load_policy
from umc.robots import A1_JOINTS, G1_JOINTS
from umc.utils.errors import UmcError


@pytest.mark.engine
def test_recorded_sensors_give_the_actions_of_the_rollout(run_engine, tmp_path):
    checkpoint = write_fresh(tmp_path, task="UMC-G1-Stage2")
    files = export_checkpoint(checkpoint, tmp_path, load_cfg_from_registry("UMC-G1-Stage2", "env_cfg_entry_point"))
    said = run_engine(what_a_robot_feels_and_does, checkpoint=str(checkpoint))
    names, largest, moved, ends = said["joints"], 0.0, 0.0, []
    for env in range(3):
        runner = PolicyRunner(files.description, names[::-1])  # a driver with an order of its own
        for step in said["steps"]:
            raw = {name: values[env] for name, values in step.items()}
            is_dead = np.array(raw["dead"])
            # the reading of a dead sensor must not matter
            position, velocity = (
                np.where(is_dead, np.nan, raw[key])[::-1] for key in ("joint_position", "joint_velocity")
            )
            rest = {key: raw[key] for key in ("angular_velocity", "gravity", "command", "detected")}
            target = runner(position, velocity, dead=np.array(names)[is_dead].tolist(), **rest)
            largest = max(largest, np.abs(target - np.array(raw["target"])[::-1]).max())
            moved = max(moved, np.abs(target - runner.default_position).max())
            if raw["ended"]:
                runner.reset()
        ends.append((is_dead.sum() >= 2, raw["detected"]))
    assert largest < 1e-5
    assert moved > 0.01  # else targets would agree whatever the sensors say
    assert ends == [(True, False), (True, True), (False, False)]  # sensors only; detected; healthy


@pytest.fixture(scope="module")
def sheets(tmp_path_factory):
    """An exported A1 and an exported G1 policy: descriptions and torch's own."""
    found = {}
    for robot in ("a1", "g1"):
        folder = tmp_path_factory.mktemp(robot)
        task = f"UMC-{robot.upper()}-Stage2"
        checkpoint = write_fresh(folder, task=task)
        files = export_checkpoint(checkpoint, folder, load_cfg_from_registry(task, "env_cfg_entry_point"))
        found[robot] = files.description, load_policy(checkpoint, WIDTHS[robot])
    return found


POSE = [0.1, 0.8, -1.5, -0.1, 0.8, -1.5, 0.1, 1.0, -1.5, -0.1, 1.0, -1.5]


def still(**changes):
    """Sensor values of an A1 that stands level in its default pose, with changes."""
    raw = {"joint_position": POSE, "joint_velocity": [0.0] * 12, "angular_velocity": [0.0] * 3}
    return {**raw, "gravity": (0.0, 0.0, -1.0), "command": [0.5, 0.0, 0.0], **changes}


def test_a1s_columns_have_their_scales(sheets):
    """A1-Walk's scales, from the public task: 0.25 angular, 2 / 2 / 0.25 command, 0.05 joint speed, 0.5 action."""
    sheet, policy = sheets["a1"]
    runner = PolicyRunner(sheet)
    raw = still(
        joint_position=[0.3, 0.9, -1.4, *POSE[3:]],
        joint_velocity=[2.0] + [0.0] * 11,
        angular_velocity=[0.4, 0.0, -0.8],
        command=[0.5, 0.1, 0.2],
    )
    obs = torch.zeros(1, 48)
    obs[0, 3:12] = torch.tensor([0.1, 0.0, -0.2, 0.0, 0.0, -1.0, 1.0, 0.2, 0.05])
    obs[0, 12:15], obs[0, 24] = torch.tensor([0.2, 0.1, 0.1]), 0.1
    groups = {"policy": obs, "joint_mask": torch.zeros(1, 12), "fault_flag": -torch.ones(1, 3)}
    first = policy(groups)[0].numpy()
    pose = np.array(POSE)
    np.testing.assert_allclose(runner(**raw), pose + 0.5 * first, atol=1e-6)
    # the second step knows the first action, except of joints that have died
    obs[0, 36:48] = torch.from_numpy(first)
    obs[0, [12, 24, 36]] = 0.0
    groups["joint_mask"][0, 0], groups["fault_flag"] = 1.0, torch.ones(1, 3)
    target = runner(**raw, dead=["FL_hip_joint"], detected=True)
    np.testing.assert_allclose(target, pose + 0.5 * policy(groups)[0].numpy(), atol=1e-6)
    runner.reset()
    np.testing.assert_allclose(runner(**raw), pose + 0.5 * first, atol=1e-6)
    dead = {"joint_position": [math.nan] * 12, "joint_velocity": [math.nan] * 12, "dead": A1_JOINTS}
    assert np.isfinite(runner(**still(**dead))).all()


def test_gains_and_pose_come_in_the_robots_order(sheets):
    runner = PolicyRunner(sheets["g1"][0], G1_JOINTS[::-1])
    found = dict(zip(G1_JOINTS[::-1], zip(runner.kp, runner.kd, runner.default_position, strict=True), strict=True))
    # unitree_rl_gym
    assert found["left_knee_joint"] == (150.0, 4.0, 0.3)
    assert found["left_hip_yaw_joint"] == (100.0, 2.0, 0.0)
    assert found["right_ankle_roll_joint"] == (40.0, 2.0, 0.0)
    clock = json.loads(sheets["g1"][0].read_text())["observations"]["policy"][-1]
    assert (clock["columns"], clock["period_s"]) == ([45, 47], 0.8)
    assert runner.policy_dt == 0.02


def test_it_needs_neither_torch_nor_isaac_lab(sheets):
    code = f"""
import sys
from umc.deploy.policy_runner import PolicyRunner
runner = PolicyRunner({str(sheets["a1"][0])!r})
target = runner(**{still()!r})
assert target.shape == (12,)
heavy = [name for name in ("torch", "isaaclab", "rsl_rl", "warp", "tensordict", "onnx") if name in sys.modules]
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"joint_position": [0.0] * 8}, r"joint_position has shape \(8,\); the policy needs \(12,\)"),
        ({"gravity": [0.0, -1.0]}, r"gravity has shape \(2,\); the policy needs \(3,\)"),
        ({"joint_velocity": [math.nan] + [0.0] * 11}, "joint_velocity is not finite"),
        ({"angular_velocity": [0.0, math.inf, 0.0]}, "angular_velocity is not finite"),
        ({"joint_position": [math.nan] * 12, "dead": A1_JOINTS[1:]}, "joint_position is not finite"),
        ({"dead": ["FL_knee_joint"]}, "no joint FL_knee_joint"),
    ],
)
def test_a_wrong_value_is_one_clear_error(sheets, changes, words):
    with pytest.raises(UmcError, match=words):
        PolicyRunner(sheets["a1"][0])(**still(**changes))


def unmeasured(content):
    content["observations"]["policy"][0]["function"] = "base_lin_vel"
    return json.dumps(content)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda content: "{", "is not JSON"),
        (lambda content: json.dumps({**content, "format": 1}), "does not have format 2; export the policy again"),
        (unmeasured, "reads base_lin_vel, which no robot measures"),
        (json.dumps, "policy.onnx is missing; copy it beside policy.json"),
    ],
)
def test_a_wrong_file_is_one_clear_error(sheets, tmp_path, write, words):
    path = tmp_path / "policy.json"
    path.write_text(write(json.loads(sheets["a1"][0].read_text())))
    with pytest.raises(UmcError, match=words):
        PolicyRunner(path)


def test_a_missing_file_and_other_joints_are_one_clear_error(sheets, tmp_path):
    with pytest.raises(UmcError, match="no exported policy at"):
        PolicyRunner(tmp_path / "policy.json")
    with pytest.raises(UmcError, match="needs the joints FL_hip_joint"):
        PolicyRunner(sheets["a1"][0], A1_JOINTS[1:])
