# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""An exported policy acts as the one it came from, and its description matches the public task."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import yaml
from exported_a1 import A1
from fresh_export import env_cfg_of
from fresh_policy import WIDTHS, write_fresh
from isaaclab.actuators import DelayedPDActuatorCfg, IdealPDActuatorCfg, ImplicitActuatorCfg
from isaaclab.envs import mdp as lab
from isaaclab.managers import SceneEntityCfg
from isaaclab.utils.noise import GaussianNoiseCfg, NoiseModelCfg, UniformNoiseCfg
from umc.cli.export import main
from umc.deploy import export
from umc.deploy.export import export_checkpoint
from umc.deploy.policy_runner import NonFiniteInput, PolicyRunner
from umc.deploy.robot_package import RUNNER
from umc.mdp import CommandFaultsCfg
from umc.rl.io_descriptor import control, fall, observation_terms, start, task_figures
from umc.rl.policy import load_policy, registered_agent
from umc.robots import A1_JOINTS
from umc.robots.names import robot_names
from umc.tasks.parts import feet_of
from umc.utils.errors import UmcError
from umc.utils.io import sha256
from umc.utils.naming import task_parts


def normalized(agent):
    agent["actor"]["obs_normalization"] = True


def export_with(folder, task, model, change=None):
    checkpoint = write_fresh(folder, task=task, model=model, change=change)
    if change is not None:
        agent = registered_agent(task, f"rsl_rl_{model}_cfg_entry_point")
        change(agent)
        (folder / "params").mkdir()
        (folder / "params" / "agent.yaml").write_text(yaml.dump(agent))
    return checkpoint, *export_checkpoint(checkpoint, folder / "out", env_cfg_of(task))


@pytest.mark.parametrize(
    ("task", "model", "change"),
    [
        ("UMC-A1-Stage2", "mlp", normalized),
        ("UMC-G1-Stage1", "transformer", None),
        ("UMC-Go2-Stage2", "transformer", None),
        ("UMC-A1-Stage1", "nm_mlp", None),  # reads neither mask nor flag, but takes them
        ("UMC-G1-Stage1", "body_transformer", None),
    ],
)
def test_exports_agree_with_torch_for_any_batch_and_mask(tmp_path, task, model, change):
    checkpoint, path, script, sheet = export_with(tmp_path, task, model, change)
    widths = WIDTHS[task_parts(task)[0]]
    policy = load_policy(checkpoint, widths)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    module = torch.jit.load(str(script))
    said = json.loads(sheet.read_text())
    assert (said["onnx"]["sha256"], said["torchscript"]["sha256"]) == (sha256(path), sha256(script))
    assert [one.name for one in session.get_inputs()] == ["policy", "joint_mask", "fault_flag"]
    assert [one.name for one in session.get_outputs()] == ["actions"]
    for batch in (1, 2, 5):
        for dead in (0.0, 0.4, 1.0):
            obs = torch.randn(batch, widths["policy"])
            mask = (torch.rand(batch, 12) < dead).float()
            flag = torch.full((batch, 3), 1.0 if dead else -1.0)
            given = session.run(None, {"policy": obs.numpy(), "joint_mask": mask.numpy(), "fault_flag": flag.numpy()})
            wanted = policy({"policy": obs, "joint_mask": mask, "fault_flag": flag})
            np.testing.assert_allclose(given[0], wanted.numpy(), atol=1e-5)
            np.testing.assert_allclose(module(obs, mask, flag).numpy(), wanted.numpy(), atol=1e-6)


@pytest.mark.parametrize("term", ["actions", "policy", "joint_mask"])
def test_joints_in_another_order_than_the_robots_are_refused(tmp_path, term):
    checkpoint, cfg = write_fresh(tmp_path), env_cfg_of()
    order = SceneEntityCfg("robot", joint_names=[*reversed(A1_JOINTS)], preserve_order=True)
    if term == "actions":
        cfg.actions.joint_pos.joint_names, cfg.actions.joint_pos.preserve_order = order.joint_names, True
    else:
        read = {"policy": "joint_vel", "joint_mask": "mask"}[term]
        getattr(getattr(cfg.observations, term), read).params["asset_cfg"] = order
    with pytest.raises(UmcError, match="some joints or in another order"):
        export_checkpoint(checkpoint, tmp_path / "out", cfg)
    assert not (tmp_path / "out" / "policy.json").exists()


def test_exports_of_a_policy_with_memory_remember_what_it_remembers(tmp_path):
    checkpoint, path, script, sheet = export_with(tmp_path, "UMC-A1-Stage2", "gru")
    policy = load_policy(checkpoint, WIDTHS["a1"])
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    module, runner = torch.jit.load(str(script)), PolicyRunner(sheet, simulated=True)
    assert "h_in" in json.loads(sheet.read_text())["inputs"]
    for robots in (1, 3):
        memory = np.zeros((1, robots, 128), np.float32)
        module.reset()
        policy.reset(None)
        for _ in range(4):
            obs = torch.randn(robots, 48)
            mask, flag = (torch.rand(robots, 12) < 0.3).float(), torch.ones(robots, 3)
            wanted = policy({"policy": obs, "joint_mask": mask, "fault_flag": flag}).numpy()
            feed = {"policy": obs.numpy(), "joint_mask": mask.numpy(), "fault_flag": flag.numpy(), "h_in": memory}
            actions, memory = session.run(["actions", "h_out"], feed)
            np.testing.assert_allclose(actions, wanted, atol=1e-5)
            np.testing.assert_allclose(module(obs, mask, flag).numpy(), wanted, atol=1e-6)
    # on a robot: the same sensors give other targets later, the same after a reset, and a refused step changes nothing
    sensors = {
        "joint_position": runner.default_position,
        "joint_velocity": np.ones(12),
        "angular_velocity": np.ones(3),
        "gravity": [0.0, 0.0, -1.0],
        "command": [0.5, 0.0, 0.0],
    }
    first, second = runner(**sensors), runner(**sensors)
    with pytest.raises(NonFiniteInput):
        runner(**{**sensors, "gravity": [0.0, 0.0, math.nan]})
    third = runner(**sensors)
    runner.reset()
    assert np.array_equal(runner(**sensors), first)
    assert np.array_equal(runner(**sensors), second)
    assert np.array_equal(runner(**sensors), third)
    assert np.abs(second - first).max() > 1e-4


@pytest.fixture(scope="module")
def a1(tmp_path_factory):
    """Checkpoint, ONNX, TorchScript and description of an A1 policy; a test that writes has to copy them."""
    return export_with(tmp_path_factory.mktemp("a1"), "UMC-A1-Stage2", "mlp")


def test_the_description_has_the_figures_of_the_public_a1_task(a1):
    """Figures of A1-Walk (BodyTransformer's fork of ParkourGym), not of our cfg."""
    checkpoint, *_, path = a1
    content = json.loads(path.read_text())
    joints = {joint["name"]: joint for joint in content["joints"]}
    assert list(joints)[:4] == ["FL_hip_joint", "FL_thigh_joint", "FL_calf_joint", "FR_hip_joint"]
    pose = {name: joint["default_position_rad"] for name, joint in joints.items()}
    assert (pose["FL_hip_joint"], pose["RR_hip_joint"]) == (0.1, -0.1)
    assert (pose["FR_thigh_joint"], pose["RL_thigh_joint"], pose["RR_calf_joint"]) == (0.8, 1.0, -1.5)
    for joint in joints.values():
        assert (joint["kp_Nm_per_rad"], joint["kd_Nms_per_rad"], joint["effort_limit_Nm"]) == (50.0, 1.0, 25.0)
    control = content["control"]
    assert (control["physics_dt_s"], control["decimation"], control["policy_dt_s"]) == (0.005, 4, 0.02)
    assert control["action_scale"] == [0.5] * 12
    assert control["action_offset_rad"] == list(pose.values())
    columns = [(term["function"], *term["columns"], term["scale"]) for term in content["observations"]["policy"]]
    assert columns == [
        ("zeros", 0, 3, 1.0),
        ("base_ang_vel", 3, 6, 0.25),
        ("projected_gravity", 6, 9, 1.0),
        ("generated_commands", 9, 12, [2.0, 2.0, 0.25]),
        ("joint_pos_rel", 12, 24, 1.0),
        ("joint_vel_rel", 24, 36, 0.05),
        ("last_action", 36, 48, 1.0),
    ]
    assert content["checkpoint"]["sha256"] == load_policy(checkpoint, WIDTHS["a1"]).sha256
    assert content["normalizer"] is None


def test_the_onnx_file_has_the_metadata_of_mjlabs_exporter(a1):
    """Keys and commas are those that its runners parse; the targets of such a runner are pose + scale * action."""
    _, path, _, sheet = a1
    content, found = json.loads(sheet.read_text()), onnx.load(str(path)).metadata_props
    said = {entry.key: entry.value.split(",") for entry in found}
    joints = content["joints"]
    assert said["joint_names"] == list(A1_JOINTS)
    for key, figure in (
        ("joint_stiffness", "kp_Nm_per_rad"),
        ("joint_damping", "kd_Nms_per_rad"),
        ("default_joint_pos", "default_position_rad"),
    ):
        assert [float(value) for value in said[key]] == [joint[figure] for joint in joints]
    assert [float(value) for value in said["action_scale"]] == content["control"]["action_scale"]
    names = ["zeros", "base_ang_vel", "projected_gravity", "command", "joint_pos", "joint_vel", "actions"]
    assert said["observation_names"] == names
    scales = [1.0] * 3 + [0.25] * 3 + [1.0] * 3 + [2.0, 2.0, 0.25] + [1.0] * 12 + [0.05] * 12 + [1.0] * 12
    assert [float(value) for value in said["observation_scales"]] == scales
    assert said["observation_history_lengths"] == ["1"] * len(names)
    assert (said["command_names"], said["run_path"]) == (["base_velocity"], ["test/model_0.pt"])
    content["control"]["action_offset_rad"] = [0.0] * 12
    assert export.onnx_metadata(content, env_cfg_of()) == {}


GO2 = {"base_height_m": 0.42, "added_base_mass_kg": [1.2, 3.5], "contact_bodies": ["base"]}


# G1's are in tests/golden/exports.json
@pytest.mark.parametrize(("robot", "changes"), [("A1", {}), ("Go2", GO2)])
def test_starts_and_falls_are_those_of_the_task(robot, changes):
    cfg = env_cfg_of(f"UMC-{robot}-Stage2")
    figures = task_figures(cfg, robot_names(cfg.scene.robot).joints, feet_of(cfg))
    found = {"feet": figures["feet"], **figures["start"], **figures["fall"]}
    assert json.loads(json.dumps(found)) == {"feet": A1["feet"], **A1["start"], **A1["fall"], **changes}


def test_events_and_terminations_of_another_task_are_named_and_faults_of_commands_are_no_action(a1):
    cfg = env_cfg_of()
    cfg.actions.command_faults = CommandFaultsCfg()
    said = json.loads(a1[-1].read_text())["control"]
    assert control(cfg, A1_JOINTS) == {name: value for name, value in said.items() if name != "action_clip"}
    cfg.events.trunk_mass.params["operation"] = "scale"
    cfg.terminations.second = cfg.terminations.trunk_contact
    assert start(cfg)["other_events"] == ["trunk_mass"]
    assert start(cfg)["added_base_mass_kg"] == (0.0, 0.0)
    assert fall(cfg)["other_terminations"] == ["second"]


@pytest.mark.parametrize(
    ("kind", "limits", "wanted"),
    [
        (
            IdealPDActuatorCfg,
            {"actuator_effort_limit": {"F.*": 20.0}, "effort_limit_sim": 30.0},
            {"F": 20.0, "R": 30.0},
        ),
        (IdealPDActuatorCfg, {"joint_effort_limit": 22.0, "effort_limit": 9.0}, {"F": 22.0, "R": 22.0}),
        (IdealPDActuatorCfg, {"actuator_effort_limit": math.inf}, {"F": None, "R": None}),
        (IdealPDActuatorCfg, {}, {"F": 33.5, "R": 33.5}),  # a1.usda
        (ImplicitActuatorCfg, {"actuator_effort_limit": 5.0, "joint_effort_limit": 23.7}, {"F": 23.7, "R": 23.7}),
        (ImplicitActuatorCfg, {"actuator_effort_limit": 5.0}, {"F": 33.5, "R": 33.5}),
        (DelayedPDActuatorCfg, {"effort_limit": 8.0, "max_delay": 3}, {"F": 8.0, "R": 8.0}),
    ],
)
def test_motors_have_the_limit_that_the_simulation_gives_them(kind, limits, wanted):
    cfg = env_cfg_of()
    cfg.scene.robot.actuators = {"legs": kind(joint_names_expr=[".*"], stiffness=25.0, damping=0.5, **limits)}
    figures = task_figures(cfg, A1_JOINTS, None)
    assert {joint["name"][0]: joint["effort_limit_Nm"] for joint in figures["joints"]} == wanted
    more = ["actuator legs (DelayedPDActuatorCfg)"] if kind is DelayedPDActuatorCfg else []
    assert figures["start"]["other_events"] == more


def test_noise_is_described_by_its_distribution_or_named():
    group = env_cfg_of().observations.policy
    group.base_ang_vel.noise = GaussianNoiseCfg(mean=0.1, std=0.3)
    group.projected_gravity.noise = UniformNoiseCfg(n_min=0.9, n_max=1.1, operation="scale")
    found = {term["name"]: term["noise"] for term in observation_terms(group, 12)}
    assert found == {
        "base_lin_vel": None,
        "base_ang_vel": {"normal": [0.1, 0.3]},
        "projected_gravity": {"other": "UniformNoiseCfg"},
        "command": None,
        "joint_pos": {"uniform": [-0.01, 0.01]},
        "joint_vel": {"uniform": [-1.5, 1.5]},
        "last_action": None,
    }
    group.base_ang_vel.noise = UniformNoiseCfg(n_min=0.2, n_max=0.1)
    assert observation_terms(group, 12)[1]["noise"] == {"other": "UniformNoiseCfg"}
    group.base_ang_vel.noise = NoiseModelCfg(noise_cfg=UniformNoiseCfg())
    assert observation_terms(group, 12)[1]["noise"] == {"other": "NoiseModelCfg"}
    group.enable_corruption = False
    assert not any(term["noise"] for term in observation_terms(group, 12))


def test_only_the_runner_of_external_policies_clips_and_remembers():
    for change in ("history_length", "clip"):
        group = env_cfg_of().observations.policy
        if change == "clip":
            group.joint_vel.clip = (-5.0, 5.0)
        else:
            group.history_length = 5
        assert observation_terms(group, 12, external=True)[-1]["columns"] == [36, 48]
        with pytest.raises(UmcError, match="has a clip, modifiers or a history, which cannot be exported"):
            observation_terms(group, 12)


@pytest.mark.parametrize("writer", ["write_onnx", "write_torchscript"])
def test_an_export_that_disagrees_is_not_put_in_place(a1, tmp_path, monkeypatch, writer):
    """The exporter is made to write another network: the check has to see it, and the old files have to stay."""
    checkpoint = a1[0]
    files = [Path(shutil.copy(file, tmp_path)) for file in a1[1:]]
    before = [file.read_bytes() for file in files]
    write = getattr(export, writer)

    def wrong(actor, path):
        with torch.no_grad():
            actor.core.layers[-1].bias += 0.01
        write(actor, path)
        with torch.no_grad():
            actor.core.layers[-1].bias -= 0.01

    monkeypatch.setattr(export, writer, wrong)
    with pytest.raises(UmcError, match="differs from torch"):
        export_checkpoint(checkpoint, tmp_path, env_cfg_of())
    assert [file.read_bytes() for file in files] == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["policy.json", "policy.onnx", "policy.pt"]


def test_what_training_changed_in_the_env_is_exported(tmp_path, capsys):
    checkpoint = write_fresh(tmp_path)
    record = {"task": "UMC-A1-Stage2", "agent": "rsl_rl_mlp_cfg_entry_point", "seed": 1}
    overrides = ["physics=ovphysx", "env.actions.joint_pos.scale=0.125", "agent.algorithm.gamma=0.5"]
    (tmp_path / "run.json").write_text(json.dumps({**record, "overrides": overrides}))
    assert main(["--checkpoint", str(checkpoint)]) == 0
    files = [Path(line.split(": ")[1]) for line in capsys.readouterr().out.splitlines() if "exported" in line]
    assert [file.name for file in files] == ["policy.onnx", "policy.pt", "policy.json", RUNNER]
    assert json.loads(files[2].read_text())["control"]["action_scale"] == [0.125] * 12


@pytest.mark.parametrize(
    ("change", "out", "words"),
    [
        (lambda cfg: setattr(cfg.observations.policy.joint_pos, "clip", (-1.0, 1.0)), "out", "joint_pos has a clip"),
        (lambda cfg: setattr(cfg.actions.joint_pos, "clip", {".*": (-1.0, 1.0)}), "out", "actions without clip"),
        (lambda cfg: None, "model_0.pt/out", "choose another folder"),
        (
            lambda cfg: setattr(cfg.observations.policy.base_lin_vel, "func", lab.base_lin_vel),
            "out",
            "UMC-A1-Stage2 cannot be exported: policy reads base_lin_vel, which no robot measures",
        ),
        (
            lambda cfg: cfg.scene.robot.init_state.joint_pos.update({".*_calf_joint": 0.5}),
            "out",
            "default_position_rad is outside the joint's limits; correct the task's cfg and train with it",
        ),
        (lambda cfg: setattr(cfg.scene.robot.actuators["legs"], "stiffness", math.inf), "out", "kp_Nm_per_rad has to"),
    ],
)
def test_what_cannot_be_exported_is_refused(tmp_path, change, out, words):
    checkpoint, env_cfg = write_fresh(tmp_path), env_cfg_of()
    change(env_cfg)
    with pytest.raises(UmcError, match=words):
        export_checkpoint(checkpoint, tmp_path / out, env_cfg)
    assert not (tmp_path / "out").exists() or not [*(tmp_path / "out").iterdir()]


def test_a_policy_that_reads_what_exports_do_not_take_is_refused(tmp_path):
    checkpoint, agent = write_fresh(tmp_path), registered_agent("UMC-A1-Stage2", "rsl_rl_mlp_cfg_entry_point")
    agent["obs_groups"]["actor"].append("fault_class")  # as mt_ftc does
    (tmp_path / "params").mkdir()
    (tmp_path / "params" / "agent.yaml").write_text(yaml.dump(agent))
    with pytest.raises(UmcError, match="reads the observation group fault_class, which exported policies do not take"):
        export_checkpoint(checkpoint, tmp_path / "out", env_cfg_of())
    assert not (tmp_path / "out").exists()
