# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A real training by skrl on Newton by the real script, gone on with, and exported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from umc.cli import export as export_main
from umc.rl.checkpoint import checkpoint_info, checkpoints_in, read_checkpoint
from umc.rl.policy import load_policy

TRAIN = Path(__file__).parents[2] / "scripts" / "train.py"
ENVS, STEPS = 8, 24
UPDATES_PER_ITERATION = 5 * 4
"""Epochs x mini-batches of every UMC agent."""
WIDTHS = {"policy": 48, "joint_mask": 12, "fault_flag": 3}
"""Observation columns of A1 (facts of the public task; mask and flag of the paper)."""


def train(folder, *argv):
    command = [sys.executable, str(TRAIN), "--rl_library", "skrl", "--task", "UMC-A1-Stage1", "--agent", "mlp"]
    command += ["env.scene.terrain=flat", *argv]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=560)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.engine
def test_skrl_trains_goes_on_and_its_policy_is_exported(tmp_path):
    out = train(tmp_path, "--num_envs", str(ENVS), "--max_iterations", "1", "--seed", "3")
    assert "UMC-A1-Stage1, agent mlp by skrl, ovphysx on" in out
    (run,) = (tmp_path / "logs/skrl/umc_a1_mlp_stage1").iterdir()
    first = read_checkpoint(run / "model_0.pt")
    out = train(tmp_path, "--resume", "--max_iterations", "2")
    assert "iteration 2/2: " in out
    last = checkpoints_in(run)[-1]
    data = read_checkpoint(last)
    info = checkpoint_info(data, last)
    assert (last.name, info.agent, info.seed) == ("model_1.pt", "skrl_mlp_cfg_entry_point", 3)
    assert {int(state["step"]) for state in data["optimizer_state_dict"]["state"].values()} == {
        2 * UPDATES_PER_ITERATION
    }
    assert data["infos"]["resume"]["timesteps"] == 2 * ENVS * STEPS
    for name, tensor in data["actor_state_dict"].items():
        assert torch.isfinite(tensor).all(), name
        assert not torch.equal(tensor, first["actor_state_dict"][name]), name
    record = json.loads((run / "run.json").read_text())
    assert (record["library"], record["status"], len(record["starts"])) == ("skrl", "finished", 2)

    assert export_main.main(["--checkpoint", str(run), "--out", str(tmp_path / "out")]) == 0
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / "policy.onnx"), providers=["CPUExecutionProvider"])
    obs = {name: torch.randn(3, width) for name, width in WIDTHS.items()}
    obs["joint_mask"] = (obs["joint_mask"] > 0.5).float()
    (given,) = session.run(None, {name: tensor.numpy() for name, tensor in obs.items()})
    np.testing.assert_allclose(given, load_policy(last, WIDTHS)(obs).numpy(), atol=1e-5)
