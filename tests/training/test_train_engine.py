# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A real training by the real script: Stage 1 by itself or from a teacher, Stage 2 from it, --resume and Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import imageio.v2 as imageio
import pytest
import torch
from umc.rl.checkpoint import checkpoint_info, checkpoints_in, read_checkpoint
from umc.utils.io import sha256

TRAIN = Path(__file__).parents[2] / "scripts" / "train.py"
A1 = ["--task", "UMC-A1-Stage2", "--agent", "mlp", "env.scene.terrain=flat"]
ENVS, ITERATIONS, STEPS = 16, 2, 24
UPDATES_PER_ITERATION = 5 * 4
"""Epochs x mini-batches of every UMC agent."""


def start(folder, *argv):
    command = [sys.executable, str(TRAIN), *A1, *argv]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def optimizer_steps(data):
    return {int(state["step"]) for state in data["optimizer_state_dict"]["state"].values()}


def weights(path):
    actor = read_checkpoint(path)["actor_state_dict"]
    return torch.cat([weight.flatten() for name, weight in actor.items() if not name.startswith("distribution")])


@pytest.mark.engine
@pytest.mark.core
def test_both_stages_then_resume_then_ctrl_c(tmp_path):
    sizes = ("--num_envs", str(ENVS), "--max_iterations", str(ITERATIONS))
    process = start(tmp_path, *sizes, "--seed", "3", "--no_pretrained")  # whatever Stage 1 comes with the package
    out, err = process.communicate(timeout=560)
    assert process.returncode == 0, out + err
    assert "training UMC-A1-Stage1 first" in out
    assert f"iteration {ITERATIONS}/{ITERATIONS}: " in out
    assert "[INFO]" not in out  # Isaac Lab's messages lie in startup.log
    ((stage1,), (stage2,)) = (list((tmp_path / "logs/rsl_rl").glob(f"umc_a1_mlp_stage{k}/*")) for k in (1, 2))
    parent, child = checkpoints_in(stage1)[-1], checkpoints_in(stage2)[-1]
    assert (parent.name, child.name) == ("model_1.pt", "model_1.pt")
    record = json.loads((stage2 / "run.json").read_text())
    assert record["parent"] == {"path": str(parent), "sha256": sha256(parent)}
    assert (record["status"], record["physics"], record["num_envs"]) == ("finished", "ovphysx", ENVS)
    assert "Observation Manager" in (stage2 / "startup.log").read_text()
    assert list(stage2.glob("events.out.tfevents.*"))

    info, data = checkpoint_info(read_checkpoint(child), child), read_checkpoint(child)
    assert (info.robot, info.task, info.stage, info.model, info.seed) == ("a1", "UMC-A1-Stage2", 2, "mlp", 3)
    assert info.joint_names[:3] == ["FL_hip_joint", "FL_thigh_joint", "FL_calf_joint"]
    assert optimizer_steps(data) == {ITERATIONS * UPDATES_PER_ITERATION}  # Stage 1's updates are not in it
    assert not torch.equal(weights(stage2 / "model_0.pt"), weights(child))
    assert torch.isfinite(weights(child)).all()

    process = start(tmp_path, "--resume", "--max_iterations", "1000")
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("iteration "):
            process.send_signal(signal.SIGINT)
            break
    rest, err = process.communicate(timeout=300)
    out = "".join(lines) + rest
    assert process.returncode == 130, out + err
    assert "Traceback" not in err
    assert f"iteration {ITERATIONS + 1}/1000: " in out
    assert re.search(r"resume with: \S.* --task UMC-A1-Stage2 --agent mlp --resume ", rest)
    assert list((tmp_path / "logs/rsl_rl/umc_a1_mlp_stage2").iterdir()) == [stage2]
    record = json.loads((stage2 / "run.json").read_text())
    assert (record["status"], record["num_envs"], len(record["starts"])) == ("interrupted", ENVS, 2)
    last = checkpoints_in(stage2)[-1]
    assert last.name == record["checkpoint"]
    resumed = read_checkpoint(last)
    done = resumed["iter"] + 1
    assert ITERATIONS < done < 20
    assert optimizer_steps(resumed) == {done * UPDATES_PER_ITERATION}
    resume, first = (checkpoint["infos"]["resume"] for checkpoint in (resumed, data))
    assert resume["timesteps"] == done * ENVS * STEPS
    assert (resume["carried"]["fault_episode"] > first["carried"]["fault_episode"]).all()  # no fault comes twice
    assert checkpoint_info(resumed, last).seed == 3


@pytest.mark.engine
def test_clips_are_filmed_while_the_training_stays_the_same(tmp_path):
    sizes = ("--num_envs", "8", "--max_iterations", "2", "--seed", "3", "--checkpoint", "pretrained:a1_mlp_stage1")
    trained = []
    for name, video in (("plain", ()), ("video", ("--video", "--video_length", "12", "--video_interval", "24"))):
        folder = tmp_path / name
        folder.mkdir()
        process = start(folder, *sizes, *video)
        out, err = process.communicate(timeout=560)
        assert process.returncode == 0, out + err
        (run,) = folder.glob("logs/rsl_rl/umc_a1_mlp_stage2/*")
        trained.append(weights(run / "model_1.pt"))
    assert torch.equal(*trained)
    clips = run / "videos" / "train"
    assert sorted(path.name for path in clips.iterdir()) == ["film.log", "step-0.mp4", "step-24.mp4"]
    frames = list(imageio.get_reader(clips / "step-24.mp4").iter_data())
    assert len(frames) == 6  # every second env step
    assert frames[0].std() > 10  # no blank picture


@pytest.mark.engine
def test_ppo_goes_on_from_an_imitation_under_faults(tmp_path):
    def trained(*more):
        process = start(tmp_path, "--num_envs", "32", *more)
        out, err = process.communicate(timeout=560)
        assert process.returncode == 0, out + err
        return out, max((tmp_path / "logs/rsl_rl/umc_a1_mlp_stage2").glob("*"))

    out, run = trained("--teacher", "pretrained:a1_mlp_stage2", "--max_iterations", "12")
    losses = [float(loss) for loss in re.findall(r"iteration \d+/12: .* imitation loss ([\d.]+)", out)]
    assert losses[-1] < losses[0] / 2
    student = checkpoints_in(run)[-1]
    assert student.name == "model_11.pt"
    _, run = trained("--checkpoint", str(student), "--max_iterations", "1")
    child = checkpoints_in(run)[-1]
    assert json.loads((run / "run.json").read_text())["parent"] == {"path": str(student), "sha256": sha256(student)}
    assert 0.0 < (weights(child) - weights(student)).abs().mean() < 0.01  # PPO began with the student
