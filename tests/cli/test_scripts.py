# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The scripts as a user starts them, on a real engine, with a policy that has learnt nothing."""

import json

import imageio.v2 as imageio
import numpy as np
import pytest
import torch
from fresh_policy import write_fresh
from PIL import Image
from run_script import run_script
from umc.evaluation.metrics import Outcome
from umc.evaluation.protocol import QUICK_ONSET, QUICK_STEPS
from umc.evaluation.study import STUDY, load_study
from umc.rendering.film_cfg import QUICK
from umc.utils.io import sha256


@pytest.mark.engine
def test_evaluate_compares_policies_and_simulates_no_batch_twice(tmp_path):
    paths = [write_fresh(tmp_path / name, model=name) for name in ("mlp", "transformer_small32")]
    out = tmp_path / "out"
    flags = "--robot A1 --quick --seed 7 --num_envs 9 --episodes 2 physics=newton_mjwarp env.scene.terrain=flat"
    command = ("evaluate.py", "--checkpoint", *paths, *flags.split(), "--out", out)
    shown = run_script(*command)
    assert "2 policies x 8 cells x 2 robots, in 2 batches of 8 envs each" in shown
    study = load_study(out / STUDY)
    first, second = study.policies
    assert [one.label for one in study.policies] == ["mlp", "transformer_small32"]
    assert [one.about["sha256"] for one in study.policies] == [sha256(path) for path in paths]
    assert (study.about["physics"], study.about["task"], study.about["seed"]) == ("newton_mjwarp", "UMC-A1-Stage2", 7)
    for run in (first.run, second.run):
        assert run.cell.tolist() == [*range(8)] * 2
        assert run.member.tolist() == [0] * 8 + [1] * 8
        assert set(run.onset.tolist()) == {QUICK_ONSET}
        broken = run.joints.sum(1)
        assert set(broken[run.cell != 7].tolist()) <= {4, 5}
        assert not broken[run.cell == 7].any()
        up = run.episodes.outcome == Outcome.UP
        assert up.sum() > 8
        assert set(run.episodes.steps_after_onset[up].tolist()) == {QUICK_STEPS - QUICK_ONSET}
        # a robot that has learnt nothing stands about where it was put
        assert run.episodes.distance.max() < 1.0
        assert 0.15 < run.episodes.height_after_onset[up].mean() < 0.45
        # scenario 3 weakens the motors of exactly the faulty ones to the protocol's limit
        assert run.severity["effort"][run.cell == 2].tolist() == pytest.approx([8.0, 8.0])
        assert run.severity["effort"][run.cell == 0].isnan().all()
        assert run.stance.shape == (16, 4)
    assert torch.equal(first.run.joints, second.run.joints)
    assert not torch.equal(first.run.episodes.distance, second.run.episodes.distance)
    report = json.loads((out / "report.json").read_text())
    assert [one["label"] for one in report["policies"]] == ["mlp", "transformer_small32"]
    assert (out / "report.html").stat().st_size > 10_000
    assert not study.protocol.track  # they walked on flat ground, and the report says so

    # what is lost is simulated again, alone and in another process, and comes out the same; the rest is not
    parts = sorted((out / "partial").glob("*.pt"), key=lambda path: path.stat().st_mtime_ns)
    assert len(parts) == 4
    lost = parts[3].read_bytes()
    parts[3].unlink()
    ages = [part.stat().st_mtime_ns for part in parts[:3]]
    shown = run_script(*command)
    assert "3 of 4 batches are already done" in shown
    assert [part.stat().st_mtime_ns for part in parts[:3]] == ages
    assert parts[3].read_bytes() == lost


@pytest.mark.engine
@pytest.mark.parametrize(
    ("policy", "physics", "ground", "knee", "support"),
    [
        # a knee that carries the robot, and 55 to 75 % of the mean torque that it was seen to give [N*m]
        ("g1_mlp_stage2", "ovphysx", "flat", "left_knee_joint", 3.0),
        ("h1_nm_mlp_stage1", "ovphysx", "flat", "left_knee_joint", 8.0),
        pytest.param("a1_transformer_small32_stage2", "ovphysx", "flat", "RL_calf_joint", 3.0, marks=pytest.mark.core),
        ("solo8_mlp_stage2", "ovphysx", "flat", "HL_KFE", 0.5),
        # with MuJoCo Warp's contacts (umc/terrains/contacts.py) 11 of 12 fell
        ("a1_mlp_stage2", "newton_mjwarp", "perlin", "RL_calf_joint", 3.0),
    ],
)
def test_shipped_policies_walk_and_their_joints_carry_the_robot(policy, physics, ground, knee, support, tmp_path):
    arguments = ("--healthy", "--num_envs", 12, "--seed", 3, f"physics={physics}", "--out", tmp_path)
    shown = run_script("evaluate.py", "--checkpoint", f"pretrained:{policy}", *arguments, ground=ground)
    report = json.loads((tmp_path / "gait.json").read_text())
    gait, joints = report["gait"], report["joints"]
    assert 0.7 * gait["command"][0] < gait["forward_speed"] < 2.0 * gait["command"][0]
    assert gait["falls"] + gait["standing"] <= 3
    assert all(0.2 < share < 0.9 for share in gait["duty_factor"].values())
    assert all(0.5 < swings < 8.0 for swings in gait["swings_per_second"].values())
    assert support < joints[knee]["mean_effort"] <= joints[knee]["high_effort"]
    assert f"{knee} " in shown


def red_pixels(frame):
    """Pixels of a faulty link and of the line on the ground, without header and time line."""
    body = frame[QUICK.size[1] // 2 : -QUICK.size[1] // 3].astype(int)
    return int(((body[..., 0] > 120) & (body[..., 1] < 70) & (body[..., 2] < 70)).sum())


@pytest.mark.engine
def test_play_films_the_robot_and_colors_faulty_joints_from_onset_on(tmp_path):
    write_fresh(tmp_path)
    arguments = ("--quick", "--steps", 16, "--scenario", 6, "--onset", 8, "--seed", 7, "--out", tmp_path / "out")
    shown = run_script("play.py", "--checkpoint", tmp_path / "model_0.pt", *arguments)
    (film,), (still,) = (
        [*(tmp_path / "out").glob(f"UMC-A1-Stage2_scenario6_seed7_*.{kind}")] for kind in ("mp4", "png")
    )
    assert str(film) in shown
    frames = list(imageio.get_reader(film).iter_data())
    assert len(frames) == 8
    assert frames[0].shape[1] == QUICK.size[0]
    # frames of steps 2, 4, 6 are healthy, those from step 8 on are not
    assert [red_pixels(frame) > 100 for frame in frames] == [False] * 3 + [True] * 5
    picture = np.asarray(Image.open(still).convert("RGB"))
    # sky, ground and a dark robot below the captions: no blank picture
    assert picture.std() > 25
    assert (picture[-200:].max(axis=-1) < 120).mean() > 0.01
