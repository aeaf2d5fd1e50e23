# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The scripts as a user starts them, on a real engine, with a policy that has learnt nothing."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import imageio.v2 as imageio
import numpy as np
import pytest
from fresh_policy import write_fresh
from PIL import Image
from umc.evaluation.main import QUICK_ENVS
from umc.evaluation.picture import RING_COLOR
from umc.evaluation.play import QUICK_SIZE
from umc.evaluation.protocol import QUICK_ONSET, QUICK_STEPS
from umc.rl.checkpoint import sha256

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
TIMEOUT_S = 500


def run_script(name, *arguments):
    command = [sys.executable, str(SCRIPTS / name), *map(str, arguments), "env.scene.terrain=flat"]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


@pytest.mark.engine
def test_evaluate_runs_all_scenarios_side_by_side_and_leaves_a_report(tmp_path):
    checkpoint = write_fresh(tmp_path)
    done = run_script("evaluate.py", "--checkpoint", tmp_path, "--quick", "--seed", 7, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "average" in done.stdout
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["checkpoint"]["sha256"] == sha256(checkpoint)
    assert (report["physics"], report["task"], report["seed"]) == ("newton_mjwarp", "UMC-A1-Stage2", 7)
    envs = report["envs"]
    assert Counter(envs["scenario"]) == dict.fromkeys(range(1, 9), QUICK_ENVS // 8)
    for scenario, onset, joints, outcome, steps in zip(
        *(envs[name] for name in ("scenario", "onset_step", "faulty_joints", "outcome", "steps_after_onset")),
        strict=True,
    ):
        assert onset in QUICK_ONSET
        assert len(joints) in ((0,) if scenario == 8 else (4, 5))
        if outcome == "up":
            assert steps == QUICK_STEPS - onset
    judged = [report["scenarios"][str(scenario)]["judged"] for scenario in range(1, 9)]
    assert sum(judged) == report["average"]["judged"] > 0
    # a robot that has learnt nothing stands about where it was put
    assert max(envs["distance_m"]) < 1.0
    assert 0.15 < report["average"]["height_after_onset"] < 0.45


def red_pixels(frame):
    """Pixels of a broken link, below the caption."""
    body = frame[QUICK_SIZE[1] // 3 :].astype(int)
    return int(((body[..., 0] > 120) & (body[..., 1] < 70) & (body[..., 2] < 70)).sum())


def ring_pixels(frame):
    return int((np.abs(frame.astype(int) - RING_COLOR).max(axis=-1) < 25).sum())


@pytest.mark.engine
def test_play_films_the_robot_and_colours_broken_joints_from_onset_on(tmp_path):
    write_fresh(tmp_path)
    arguments = ("--quick", "--steps", 16, "--scenario", 6, "--onset", 8, "--out", tmp_path / "out")
    done = run_script("play.py", "--checkpoint", tmp_path / "model_0.pt", *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    film, still = (tmp_path / "out" / f"UMC-A1-Stage2_scenario6{suffix}" for suffix in (".mp4", ".png"))
    assert str(film) in done.stdout
    frames = list(imageio.get_reader(film).iter_data())
    assert len(frames) == 8
    assert frames[0].shape == (QUICK_SIZE[1], QUICK_SIZE[0], 3)
    # frames of steps 2, 4, 6 are healthy, those from step 8 on are not
    assert [red_pixels(frame) > 100 for frame in frames] == [False] * 3 + [True] * 5
    assert [ring_pixels(frame) > 20 for frame in frames] == [False] * 3 + [True] * 5
    picture = np.asarray(Image.open(still).convert("RGB"))
    assert picture.shape[0] > 2 * QUICK_SIZE[1]
    # sky, ground and a dark robot: no blank picture
    assert picture.std() > 25
    assert (picture[: QUICK_SIZE[1]].max(axis=-1) < 80).mean() > 0.02
