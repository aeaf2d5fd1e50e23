# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Pretrained policies go on loading, and act as they did; so do their exports, whose descriptions stay the same."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
import umc.tasks  # noqa: F401 - registers the agents
from fresh_policy import WIDTHS
from isaaclab_tasks.utils import load_cfg_from_registry
from tensordict import TensorDict
from umc.deploy.export import export_checkpoint
from umc.rl.policy import load_policy
from umc.rl.pretrained import pretrained_folder

GOLDEN = json.loads(Path(__file__).with_name("policies.json").read_text())
DESCRIPTIONS = json.loads(Path(__file__).with_name("exports.json").read_text())
TASKS = {"a1_mlp_stage2": "UMC-A1-Stage2", "g1_mlp_stage2": "UMC-G1-Stage2"}


def observations(name: str) -> TensorDict:
    """Four made-up observations for a policy: healthy, a dead joint, all dead, flag raised."""
    widths = WIDTHS[name.split("_")[0]]
    mask = torch.zeros(4, widths["joint_mask"])
    mask[1, 2], mask[2] = 1.0, 1.0
    flag = torch.full((4, 3), -1.0)
    flag[1:] = 1.0
    width = 30 if "mt_ftc" in name else widths["policy"]
    policy = torch.randn(4, width, generator=torch.Generator().manual_seed(5))
    groups = {"policy": policy, "joint_mask": mask, "fault_flag": flag}
    if "mt_ftc" in name:
        groups = {"policy": policy, "fault_class": torch.eye(3)[[0, 1, 2, 1]]}
    return TensorDict(groups, batch_size=[4])


def actions(path: Path) -> list[float]:
    """Actions of a policy for the made-up observations."""
    groups = observations(path.stem)
    actor = load_policy(path, {group: values.shape[1] for group, values in groups.items()}, "cpu").actor.eval()
    with torch.no_grad():
        return [round(value, 6) for value in actor(groups).flatten().tolist()]


@pytest.mark.parametrize("name", GOLDEN)
def test_actions_of_a_pretrained_policy(name):
    found = torch.tensor(actions(pretrained_folder() / f"{name}.pt"))
    torch.testing.assert_close(found, torch.tensor(GOLDEN[name]), rtol=0.0, atol=2e-5)


def exported(name: str, out: Path) -> tuple[Path, dict]:
    """The ONNX file, and policy.json without what a new version or file changes."""
    cfg = load_cfg_from_registry(TASKS[name], "env_cfg_entry_point")
    network, _, sheet = export_checkpoint(pretrained_folder() / f"{name}.pt", out, cfg)
    description = json.loads(sheet.read_text())
    for one in ("checkpoint", "onnx", "torchscript"):
        del description[one]
    del description["trained"]["umc_version"]
    return network, description


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_export_of_a_pretrained_policy(name, tmp_path):
    network, description = exported(name, tmp_path)
    assert description == DESCRIPTIONS[name]
    session = onnxruntime.InferenceSession(str(network), providers=["CPUExecutionProvider"])
    inputs = {name: group.numpy() for name, group in observations(name).items()}
    found = session.run(["actions"], inputs)[0]
    np.testing.assert_allclose(found.ravel(), GOLDEN[name], rtol=0.0, atol=2e-5)
