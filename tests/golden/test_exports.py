# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The ONNX file of a pretrained policy acts, and its policy.json says, the same from version to version."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from isaaclab_tasks.utils import load_cfg_from_registry
from test_policies import GOLDEN as ACTIONS
from test_policies import observations
from umc.deploy.export import export_checkpoint
from umc.rl.pretrained import pretrained_folder

DESCRIPTIONS = json.loads(Path(__file__).with_name("exports.json").read_text())
TASKS = {"a1_mlp_stage2": "UMC-A1-Stage2", "g1_mlp_stage2": "UMC-G1-Stage2"}


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
    inputs = {name: group.numpy() for name, group in observations(name.split("_")[0]).items()}
    found = session.run(["actions"], inputs)[0]
    np.testing.assert_allclose(found.ravel(), ACTIONS[name], rtol=0.0, atol=2e-5)
