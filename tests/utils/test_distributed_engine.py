# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Two processes under torchrun train A1 on ovphysx: one run folder, one voice, networks that are equal bit by bit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from umc.rl.checkpoint import checkpoint_info, checkpoints_in, read_checkpoint

TRAIN = Path(__file__).parents[2] / "scripts" / "train.py"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
ENVS, ITERATIONS, STEPS = 8, 2, 24


@pytest.mark.engine
def test_two_processes_under_torchrun(tmp_path):
    flags = ["--distributed", "--device", "cpu", "--task", "UMC-A1-Stage2", "--agent", "mlp_one_stage", "--seed", "3"]
    sizes = ["--num_envs", str(ENVS), "--max_iterations", str(ITERATIONS)]
    overrides = [f"agent.{part}.obs_normalization=true" for part in ("actor", "critic")]
    command = [*TORCHRUN, str(TRAIN), *flags, *sizes, "physics=ovphysx", "env.scene.terrain=flat", *overrides]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=560, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(f"2 processes x {ENVS} envs = {2 * ENVS} envs x {STEPS} steps") == 1
    assert done.stdout.count(f"iteration {ITERATIONS}/{ITERATIONS}: ") == 1  # one process speaks

    (run,) = (tmp_path / "logs/rsl_rl/umc_a1_mlp_one_stage_stage2").iterdir()
    record = json.loads((run / "run.json").read_text())
    assert (record["status"], record["num_envs"], record["world_size"], record["seed"]) == ("finished", ENVS, 2, 3)
    assert len(record["starts"]) == 1
    assert len(list(run.glob("events.out.tfevents.*"))) == 1
    last = checkpoints_in(run)[-1]
    data = read_checkpoint(last)
    assert (last.name, checkpoint_info(data, last).seed) == (f"model_{ITERATIONS - 1}.pt", 3)
    state = data["infos"]["resume"]
    mine, other = state["weights"]  # normalisers included
    assert mine == other
    assert state["timesteps"] == 2 * ENVS * STEPS * ITERATIONS
    assert len(state["carried"]["fault_episode"]) == 2 * ENVS
    assert len(state["random_of_others"]) == 1
    for part in ("actor_state_dict", "critic_state_dict"):
        # statistics of the samples of both; columns of dead sensors have fewer
        assert data[part]["obs_normalizer.count"].max().item() == state["timesteps"], part
