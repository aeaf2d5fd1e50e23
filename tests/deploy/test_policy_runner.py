# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The runner on a robot acts from raw sensors as the policy did in the simulation, and refuses wrong input."""

import ast
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from changed_files import put
from fresh_export import export_fresh
from fresh_policy import WIDTHS
from recorded_rollout import what_a_robot_feels_and_does
from umc.deploy.export import add_metadata
from umc.deploy.policy_runner import (
    BadGravity,
    ImplausibleInput,
    NonFiniteInput,
    NonFiniteOutput,
    PolicyRunner,
    WrongOutput,
)
from umc.deploy.robot_package import MODULES, PACKAGE
from umc.rl.policy import load_policy
from umc.robots import A1_JOINTS, G1_JOINTS
from umc.utils.description import DIGEST_KEY, digest
from umc.utils.errors import UmcError
from umc.utils.io import sha256


@pytest.mark.engine
def test_recorded_sensors_give_the_actions_of_the_rollout(run_engine, tmp_path):
    checkpoint, files = export_fresh(tmp_path, "UMC-G1-Stage2")
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
        checkpoint, files = export_fresh(tmp_path_factory.mktemp(robot), f"UMC-{robot.upper()}-Stage2")
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


def test_an_export_runs_without_umc(sheets):
    code = f"""
import sys
import umc
from umc.deploy.policy_runner import PolicyRunner
assert "umc_runner.zip" in umc.__file__, umc.__file__
print(*PolicyRunner({str(sheets["a1"][0])!r})(**{still()!r}), sep=",")
heavy = {{"torch", "isaaclab", "rsl_rl", "warp", "tensordict", "onnx", "pydantic"}}
assert heavy.isdisjoint(sys.modules), heavy & set(sys.modules)
"""
    alone = {**os.environ, "PYTHONPATH": str(sheets["a1"][0].with_name("umc_runner.zip"))}
    said = subprocess.run([sys.executable, "-c", code], check=True, env=alone, stdout=subprocess.PIPE, text=True).stdout
    assert [float(one) for one in said.split(",")] == PolicyRunner(sheets["a1"][0])(**still()).tolist()


def test_what_runs_on_a_robot_subscripts_no_class_of_collections_abc():
    """Python 3.8 cannot, which pyright does not say of Callable; annotations are not evaluated."""
    for name in MODULES:
        nodes = list(ast.walk(ast.parse((PACKAGE / name).read_text(), feature_version=(3, 8))))
        sources = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "collections.abc"]
        classes = {alias.name for node in sources for alias in node.names}
        notes = [getattr(node, field, None) for node in nodes for field in ("annotation", "returns")]
        spared = {part for note in notes if note is not None for part in ast.walk(note)}
        evaluated = [node for node in nodes if isinstance(node, ast.Subscript) and node not in spared]
        assert not [ast.unparse(node) for node in evaluated if ast.unparse(node.value) in classes], name


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"joint_position": [0.0] * 8}, UmcError, r"joint_position has shape \(8,\); the policy needs \(12,\)"),
        ({"gravity": [0.0, -1.0]}, UmcError, r"gravity has shape \(2,\); the policy needs \(3,\)"),
        ({"command": ["fast", 0.0, 0.0]}, UmcError, "command is .'fast', 0.0, 0.0.; give numbers"),
        ({"dead": ["FL_knee_joint"]}, UmcError, "no joint FL_knee_joint"),
        ({"joint_velocity": [math.nan] + [0.0] * 11}, NonFiniteInput, "joint_velocity is not finite"),
        ({"joint_velocity": [1e39] + [0.0] * 11}, NonFiniteInput, "joint_velocity is not finite"),  # not in float32
        ({"angular_velocity": [0.0, math.inf, 0.0]}, NonFiniteInput, "angular_velocity is not finite"),
        ({"joint_position": [math.nan] * 12, "dead": A1_JOINTS[1:]}, NonFiniteInput, "joint_position is not finite"),
        (
            {"joint_velocity": [1e30] + [0.0] * 11},
            ImplausibleInput,
            r"joint_velocity of FL_hip_joint is 1e\+30; it has to be from -63 to 63 rad/s: correct its unit, or name",
        ),
        ({"joint_position": np.degrees(POSE)}, ImplausibleInput, r"FL_hip_joint is 5.73; .* from -1.3 to 1.3 rad"),
        ({"joint_position": [900.0] * 12, "dead": A1_JOINTS[:4]}, ImplausibleInput, "of FR_thigh_joint is 900"),
        ({"joint_position": [*POSE[:2], -0.41, *POSE[3:]]}, ImplausibleInput, "of FL_calf_joint is -0.41"),
        ({"joint_velocity": [-63.1] + [0.0] * 11}, ImplausibleInput, "of FL_hip_joint is -63.1"),
        ({"angular_velocity": [0.0, 0.0, 200.0]}, ImplausibleInput, "angular_velocity is 200; .* from -50 to 50 rad/s"),
        ({"command": [500.0, 0.0, 0.0]}, ImplausibleInput, "command is 500; it has to be from -10 to 10 m/s or rad/s"),
        ({"command": [10**400, 0.0, 0.0]}, UmcError, "give numbers"),
        ({"dead": "FL_hip_joint"}, UmcError, r"dead is 'FL_hip_joint'; give a list of .* such as \['FL_hip_joint'\]"),
        ({"dead": [0]}, UmcError, r"dead is \[0\]; give a list of joint names"),
        ({"dead": 3}, UmcError, "dead is 3; give a list of joint names"),
        ({"detected": np.array([0, 0])}, UmcError, "detected is .*; give True or False"),
        ({"detected": "False"}, UmcError, "detected is False; give True or False"),
        ({"gravity": [0.0, 0.0, -9.81]}, BadGravity, "gravity has length 9.81; give the unit vector"),
        ({"gravity": [0.0, 0.0, 0.0]}, BadGravity, "gravity has length 0"),
    ],
)
def test_a_refused_step_changes_nothing(sheets, changes, kind, words):
    runner, other = (PolicyRunner(sheets["a1"][0]) for _ in range(2))
    sent = runner(**still())
    np.testing.assert_array_equal(other(**still()), sent)
    with pytest.raises(kind, match=words) as caught:
        runner(**still(**changes))
    assert type(caught.value) is kind
    np.testing.assert_array_equal(runner.last_target, sent)
    np.testing.assert_array_equal(runner(**still()), other(**still()))


def rewritten(sheet, folder, change, network=lambda onnx: onnx):
    """Write an export whose description and network are changed, and whose digests agree."""
    content = json.loads(sheet.read_text())
    change(content)
    (folder / "policy.onnx").write_bytes(network(sheet.with_name("policy.onnx").read_bytes()))
    add_metadata(folder / "policy.onnx", {DIGEST_KEY: digest(content)})
    content["onnx"]["sha256"] = sha256(folder / "policy.onnx")
    (folder / "policy.json").write_text(json.dumps(content))
    return folder / "policy.json"


def test_readings_are_accepted_up_to_their_tolerance(sheets, tmp_path):
    """A joint may be pressed 0.5 rad past its stop; where there is no limit, a constant counts."""
    pressed = still(joint_position=[1.3, 0.8, -0.42, *POSE[3:]], joint_velocity=[62.9] * 12)
    PolicyRunner(sheets["a1"][0])(**pressed, detected=np.bool_(True))

    def free(content):
        content["joints"][0] |= dict.fromkeys(("lower_limit_rad", "upper_limit_rad", "velocity_limit_rad_per_s"))
        content["joints"][1]["velocity_limit_rad_per_s"] = 9.0  # of H1's ankles, which landings push to 3.1 times it

    runner = PolicyRunner(rewritten(sheets["a1"][0], tmp_path, free), A1_JOINTS[::-1])
    pose, speed = np.array(POSE), np.zeros(12)
    pose[0], speed[:2] = -12.5, (99.0, -49.9)
    runner(**still(joint_position=pose[::-1], joint_velocity=speed[::-1]))
    for name, at, value in (("joint_position", 0, 12.6), ("joint_velocity", 0, 101.0), ("joint_velocity", 1, 50.1)):
        beyond = {"joint_position": pose.copy(), "joint_velocity": speed.copy()}
        beyond[name][at] = value
        with pytest.raises(ImplausibleInput, match=f"{name} of {A1_JOINTS[at]}"):
            runner(**still(**{key: values[::-1] for key, values in beyond.items()}))


def test_a_simulated_sensor_may_drift_out_of_its_range(sheets):
    runner = PolicyRunner(sheets["a1"][0], simulated=True)
    runner(**still(joint_position=[900.0] * 12, command=[500.0, 0.0, 0.0]))
    with pytest.raises(ImplausibleInput, match="joint_position of FL_hip_joint is 1e"):
        runner(**still(joint_position=[1001.0] * 12))


def test_an_output_of_another_shape_is_refused(sheets, tmp_path, monkeypatch):
    """A network that declares 12 actions and gives one, which NumPy would send to all joints."""

    def narrow(network):
        model = onnx.load_from_string(network)
        graph, (output,) = model.graph, model.graph.output
        for node in graph.node:
            node.output[:] = ["wide" if name == output.name else name for name in node.output]
        # its length is known only when it runs
        graph.initializer.append(onnx.helper.make_tensor("first", onnx.TensorProto.BOOL, [1], [True]))
        graph.node.append(onnx.helper.make_node("Compress", ["wide", "first"], [output.name], axis=1))
        return model.SerializeToString()

    path = rewritten(sheets["a1"][0], tmp_path, lambda content: None, narrow)
    with pytest.raises(UmcError, match=r"policy.onnx: the network's output has shape \(1, 1\) instead of \(1, 12\)"):
        PolicyRunner(path)
    runner = PolicyRunner(sheets["a1"][0])
    monkeypatch.setattr(runner._session, "run", lambda *_: [np.zeros((1, 1))])
    with pytest.raises(WrongOutput, match=r"has shape \(1, 1\)"):
        runner(**still())


def test_an_output_that_is_not_finite_is_refused(sheets, monkeypatch):
    """G1's policy, which has a gait clock."""
    runner, other = (PolicyRunner(sheets["g1"][0]) for _ in range(2))
    raw = still(joint_position=runner.default_position)
    sent = runner(**raw)
    for value in (math.nan, math.inf, 1e30):
        with monkeypatch.context() as patch:
            patch.setattr(runner._session, "run", lambda *_, value=value: [np.full((1, 12), value)])
            with pytest.raises(NonFiniteOutput, match="is not finite or above"):
                runner(**raw)
        np.testing.assert_array_equal(runner.last_target, sent)
    other(**raw)
    np.testing.assert_array_equal(runner(**raw), other(**raw))


def test_targets_stay_within_the_joints_limits_and_the_rate(sheets, monkeypatch):
    """Limits of A1's URDF, in the order of a driver that counts the other way round."""
    wild = [np.array([[-9.0, 9.0, -9.0] * 4])]
    fed = []

    def record(names, feed):
        fed.append(feed["policy"][0, 36:])
        return wild

    runner = PolicyRunner(sheets["a1"][0], A1_JOINTS[::-1])
    raw = {**still(), "joint_position": POSE[::-1]}
    monkeypatch.setattr(runner._session, "run", record)
    limits = np.tile([-2.6965, 4.1888, -0.8029], 4)  # calf, thigh, hip [rad]
    np.testing.assert_allclose(runner(**raw), limits, atol=1e-4)
    runner(**raw)
    np.testing.assert_array_equal(fed[1], wild[0][0])  # what the policy wanted, as in the training

    free = PolicyRunner(sheets["a1"][0], clamp=False)
    monkeypatch.setattr(free._session, "run", record)
    np.testing.assert_allclose(free(**still()), np.array(POSE) + 0.5 * wild[0][0])

    slow = PolicyRunner(sheets["a1"][0], max_rate=2.0)
    monkeypatch.setattr(slow._session, "run", record)
    for step in (1, 2):
        np.testing.assert_allclose(slow(**still()) - POSE, np.sign(wild[0][0]) * 0.04 * step)
    for wrong in (0.0, math.nan, math.inf, "fast", True):
        with pytest.raises(UmcError, match="give a speed above 0 rad/s"):
            PolicyRunner(sheets["a1"][0], max_rate=wrong)


def swap_columns(content):
    terms = content["observations"]["policy"]
    terms[1], terms[2] = terms[2], terms[1]


def swap_meaning(content):
    gyro, gravity = content["observations"]["policy"][1:3]
    gyro["function"], gravity["function"] = gravity["function"], gyro["function"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put(2, "format"), "does not have format 3; export the policy again"),
        (put("base_lin_vel", "observations", "policy", 1, "function"), "reads base_lin_vel, which no robot measures"),
        (put(None, "control"), "the file lacks control"),
        (put(None, "joints", 3, "kp_Nm_per_rad"), "joints.3 lacks kp_Nm_per_rad"),
        (put(1, "joints", 3, "gain"), "joints.3 has the unknown key gain"),
        (put(math.nan, "control", "action_scale", 0), "NaN is not finite"),
        (put(-1.0, "joints", 0, "kp_Nm_per_rad"), "joints.0.kp_Nm_per_rad has to be a number above 0"),
        (put(True, "joints", 0, "kd_Nms_per_rad"), "joints.0.kd_Nms_per_rad has to be a number from 0"),
        (put(0.0, "control", "policy_dt_s"), "control.policy_dt_s has to be a number above 0 up to 1"),
        (put(0.1, "control", "policy_dt_s"), "policy_dt_s is not physics_dt_s times decimation"),
        (put(-2.0, "control", "action_clip"), "control.action_clip has to be a number above 0"),
        (put([0.5] * 11, "control", "action_scale"), "control.action_scale has to be a list of 12 entries"),
        (put(0.5, "joints", 0, "lower_limit_rad"), "joints.0.default_position_rad is outside the joint's limits"),
        (put("FL_hip_joint", "joints", 1, "name"), "joints names a joint twice"),
        (put(5, "joints"), "joints has to be a list"),
        (put([1.0, 2.0], "observations", "policy", 1, "scale"), "policy.1.scale has to be a list of 3 entries"),
        (
            put({"uniform": [2.0, 1.0]}, "observations", "policy", 1, "noise"),
            "noise.uniform has its larger value first",
        ),
        (put({}, "observations", "policy", 1, "noise"), "noise has to have one of uniform, normal, other"),
        (
            put({"normal": [0.0, -1.0]}, "observations", "policy", 1, "noise"),
            "noise.normal.1 has to be a number from 0",
        ),
        (put("../policy.onnx", "onnx", "file"), "onnx.file has to be a name without slashes"),
        (put("../../../a1", "trained", "robot"), "trained.robot has to be a name without slashes"),
        (put(["("], "feet"), "feet.0 is no regular expression"),
        (put([2.0, 1.0], "start", "friction"), "start.friction has its larger value first"),
        (swap_columns, r"observations.policy.1.columns has to be \[3, 6\]"),
        # valid, but not what was exported
        (swap_meaning, "policy.json is not as it was exported with"),
        (put(40.0, "joints", 0, "kp_Nm_per_rad"), "policy.json is not as it was exported with"),
        (put("g1", "trained", "robot"), "policy.json is not as it was exported with"),
    ],
)
def test_a_wrong_description_is_one_clear_error(sheets, tmp_path, change, words):
    path = Path(shutil.copy(sheets["a1"][0], tmp_path))
    shutil.copy(sheets["a1"][0].with_name("policy.onnx"), tmp_path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(UmcError, match=words) as caught:
        PolicyRunner(path)
    assert "\n" not in str(caught.value)


def not_a_number(network):
    model = onnx.load_from_string(network)
    weights = onnx.numpy_helper.to_array(model.graph.initializer[0]).copy()
    weights.flat[0] = math.nan
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, model.graph.initializer[0].name))
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("change", "vouch", "words"),
    [
        (None, False, "policy.onnx is missing; copy it beside policy.json"),
        (lambda network: network[:-1] + b"x", False, "is not the file that policy.json describes"),
        (lambda network: network[:-500], True, "is no network that ONNX Runtime can load"),
        (not_a_number, True, "the weights of .*policy.onnx are not finite"),
    ],
)
def test_a_wrong_network_is_one_clear_error(sheets, tmp_path, change, vouch, words):
    """``vouch`` puts the changed file's SHA-256 into the description."""
    path, network = tmp_path / "policy.json", sheets["a1"][0].with_name("policy.onnx").read_bytes()
    content = json.loads(sheets["a1"][0].read_text())
    if change is not None:
        (tmp_path / "policy.onnx").write_bytes(change(network))
        if vouch:
            content["onnx"]["sha256"] = sha256(tmp_path / "policy.onnx")
    path.write_text(json.dumps(content))
    with pytest.raises(UmcError, match=words):
        PolicyRunner(path)


def test_other_joints_and_types_are_one_clear_error(sheets):
    with pytest.raises(UmcError, match="needs the joints FL_hip_joint"):
        PolicyRunner(sheets["a1"][0], A1_JOINTS[1:])
    for wrong in ([1, 2], 5, [["x"]], "FL_hip_joint"):
        with pytest.raises(UmcError, match=r"joint_names is .*; give a list of joint names"):
            PolicyRunner(sheets["a1"][0], wrong)
    with pytest.raises(UmcError, match="clamp is 0; give True or False"):
        PolicyRunner(sheets["a1"][0], clamp=0)


def test_folder_and_network_stand_for_the_description(sheets, tmp_path):
    sheet = sheets["a1"][0]
    for path in (sheet.parent, str(sheet.parent), sheet.with_name("policy.onnx")):
        assert PolicyRunner(path).joint_names == list(A1_JOINTS)
    with pytest.raises(UmcError, match=r"no exported policy at .*policy\.json; make one with umc export"):
        PolicyRunner(tmp_path)
    for wrong in (tmp_path / "policy.pt", tmp_path / "nowhere"):
        with pytest.raises(UmcError, match="is no exported policy; export it with umc export and give that folder"):
            PolicyRunner(wrong)
    with pytest.raises(UmcError, match="the exported policy is None; give the path"):
        PolicyRunner(None)
