# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A real recipe by the real script: killed in Stage 2, the same command goes on there and finishes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from umc.rl.checkpoint import checkpoint_info, checkpoints_in, read_checkpoint
from umc.utils.io import sha256

TRAIN = Path(__file__).parents[2] / "scripts" / "train.py"
ENVS, ITERATIONS = 4, 25
RECIPE = {
    "robot": "a1",
    "agent": "mlp",
    "device": "cpu",
    "physics": "ovphysx",
    "seed": 3,
    "num_envs": ENVS,
    "overrides": ["env.scene.terrain=flat"],
    "stages": {1: [{"iterations": 1}], 2: [{"iterations": ITERATIONS}]},
}


@pytest.mark.engine
def test_a_killed_recipe_goes_on_where_it_was(tmp_path):
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(RECIPE))
    command = [sys.executable, str(TRAIN), "--recipe", "tiny.yaml"]
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in first.stdout:
        lines.append(line)
        if line.startswith("[2/2] Stage 2, 1: iteration "):
            os.kill(first.pid, signal.SIGKILL)
            break
    first.wait(timeout=60)
    assert first.returncode == -signal.SIGKILL, "".join(lines)
    assert any("whole recipe " in line and "ETA" in line for line in lines), "".join(lines)

    second = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=560, check=False)
    out = second.stdout + second.stderr
    assert second.returncode == 0, out
    assert "[1/2] Stage 1, 1: done before" in out
    assert "[2/2] Stage 2, 1: resuming after iteration " in out
    assert "recipe tiny is done" in out
    assert "[Warning]" not in out  # PhysX has three at every start
    assert "[PhysX]" not in out
    ((stage1,), (stage2,)) = (list((tmp_path / "logs/rsl_rl").glob(f"umc_a1_mlp_stage{k}/*")) for k in (1, 2))
    last = checkpoints_in(stage2)[-1]
    data = read_checkpoint(last)
    info = checkpoint_info(data, last)
    assert (info.iteration, info.seed, info.stage) == (ITERATIONS - 1, 3, 2)
    assert (info.physics, info.terrain) == ("ovphysx", "flat")
    assert info.env_overrides == ["env.scene.terrain=flat"]
    assert data["infos"]["resume"]["timesteps"] == ITERATIONS * ENVS * 24  # nothing was done twice or left out
    record = json.loads((stage2 / "run.json").read_text())
    assert record["parent"]["sha256"] == sha256(checkpoints_in(stage1)[-1])
    assert (record["status"], len(record["starts"])) == ("finished", 2)
