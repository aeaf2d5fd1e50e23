# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""An exported policy acts as the one it came from, and its description matches the public task."""

import json

import numpy as np
import onnxruntime
import pytest
import torch
from fresh_policy import WIDTHS, write_fresh
from isaaclab_tasks.utils import load_cfg_from_registry
from umc.errors import UmcError
from umc.rl import export
from umc.rl.export import export_checkpoint
from umc.rl.export_main import main
from umc.rl.policy import load_policy


def normalized(agent):
    agent["actor"]["obs_normalization"] = True


def export_fresh(folder, task, model, change=None):
    import yaml
    from umc.rl.policy import registered_agent

    checkpoint = write_fresh(folder, task=task, model=model, change=change)
    if change is not None:
        agent = registered_agent(task, f"rsl_rl_{model}_cfg_entry_point")
        change(agent)
        (folder / "params").mkdir()
        (folder / "params" / "agent.yaml").write_text(yaml.dump(agent))
    env_cfg = load_cfg_from_registry(task, "env_cfg_entry_point")
    return checkpoint, *export_checkpoint(checkpoint, folder / "out", env_cfg)


@pytest.mark.parametrize(
    ("task", "model", "change"), [("UMC-A1-Stage2", "mlp", normalized), ("UMC-G1-Stage1", "transformer", None)]
)
def test_onnx_agrees_with_torch_for_any_batch_and_mask(tmp_path, task, model, change):
    checkpoint, path, _ = export_fresh(tmp_path, task, model, change)
    widths = WIDTHS["a1" if "A1" in task else "g1"]
    policy = load_policy(checkpoint, widths)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
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


def test_the_description_says_what_the_public_a1_task_says(tmp_path):
    """Figures of A1-Walk (BodyTransformer's fork of ParkourGym), not of our cfg."""
    checkpoint, _, path = export_fresh(tmp_path, "UMC-A1-Stage2", "mlp")
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


def test_the_description_tells_g1s_gains_apart(tmp_path):
    _, _, path = export_fresh(tmp_path, "UMC-G1-Stage1", "mlp")
    content = json.loads(path.read_text())
    gains = {joint["name"]: (joint["kp_Nm_per_rad"], joint["kd_Nms_per_rad"]) for joint in content["joints"]}
    assert gains["left_hip_yaw_joint"] == (100.0, 2.0)
    assert gains["right_knee_joint"] == (150.0, 4.0)
    assert gains["right_ankle_roll_joint"] == (40.0, 2.0)
    assert content["observations"]["policy"][-1]["columns"] == [45, 47]
    assert content["control"]["action_scale"] == [0.25] * 12


def test_an_export_that_disagrees_is_not_put_in_place(tmp_path, monkeypatch):
    """The exporter is made to write another network: the check has to see it, and the old files have to stay."""
    checkpoint, model, sheet = export_fresh(tmp_path, "UMC-A1-Stage2", "mlp")
    before = model.read_bytes(), sheet.read_bytes()
    write = export.write_onnx

    def wrong(actor, path):
        with torch.no_grad():
            actor.core.layers[-1].bias += 0.01
        write(actor, path)
        with torch.no_grad():
            actor.core.layers[-1].bias -= 0.01

    monkeypatch.setattr(export, "write_onnx", wrong)
    with pytest.raises(UmcError, match="differs from torch"):
        export_checkpoint(checkpoint, model.parent, load_cfg_from_registry("UMC-A1-Stage2", "env_cfg_entry_point"))
    assert (model.read_bytes(), sheet.read_bytes()) == before
    assert sorted(file.name for file in model.parent.iterdir()) == ["policy.json", "policy.onnx"]


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    checkpoint = write_fresh(tmp_path)
    with pytest.raises(UmcError, match="choose another --out"):
        export_checkpoint(
            checkpoint, tmp_path / "file" / "out", load_cfg_from_registry("UMC-A1-Stage2", "env_cfg_entry_point")
        )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--checkpoint is missing"),
        (["--checkpoint", "nowhere.pt"], "no checkpoint at nowhere.pt"),
        (["--checkpoint", __file__], "damaged or no checkpoint"),
        (["--checkpoint", "x.pt", "--batch", "3"], "unrecognized arguments"),
    ],
)
def test_a_mistake_is_one_line_and_exit_status_2(arguments, words, capsys):
    assert main(arguments) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert words in lines[0]
