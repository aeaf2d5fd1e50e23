# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Clips of a training: recorded when they are due, at the place of their env, and filmed by a process of its own."""

from types import SimpleNamespace

import gymnasium as gym
import pytest
import torch
from umc.training import video
from umc.training.video import LOG, ClipFilms, ClipRecorder
from umc.utils.io import read_torch


class Scene(dict):
    """Robots beside their origins."""

    env_origins = torch.tensor([[5.0, 0.0, 0.0], [9.0, 0.0, 0.0]])


class Env(gym.Env):
    """As much of an environment as a recorder reads; env 0 starts a new episode every 7 steps."""

    def __init__(self, first=0):
        self.common_step_counter = first
        self.episode_length_buf = torch.zeros(2, dtype=torch.long)
        pose, joints = (SimpleNamespace(torch=torch.zeros(2, columns)) for columns in (7, 3))
        self.data = SimpleNamespace(root_link_pose_w=pose, joint_pos=joints)
        self.scene = Scene(robot=SimpleNamespace(data=self.data))

    def step(self, action):
        self.common_step_counter += 1
        self.episode_length_buf = torch.full((2,), self.common_step_counter % 7)
        self.data.root_link_pose_w.torch[:, 0] = 5.0 + self.common_step_counter
        return action


@pytest.fixture(autouse=True)
def faults(monkeypatch):
    monkeypatch.setattr(video, "fault_state", lambda env: SimpleNamespace(live=torch.ones(2, 1, 3, dtype=torch.bool)))


def clips(tmp_path, env, steps):
    found = []
    recorder = ClipRecorder(env, tmp_path, length=3, interval=10, on_clip=found.append)
    assert [recorder.step(step) for step in range(steps)] == list(range(steps))
    recorder.finish()
    return found


def test_clips_are_recorded_at_the_interval_relative_to_their_env(tmp_path):
    found = clips(tmp_path, Env(), 22)
    assert [path.name for path in found] == ["step-0.pt", "step-10.pt", "step-20.pt"]
    assert len(read_torch(found[2])["root_pose"]) == 2  # the training ended
    clip = read_torch(found[1])
    assert clip["step"] == 10
    assert clip["root_pose"][:, 0].tolist() == [11.0, 12.0, 13.0]
    assert clip["episode_step"].tolist() == [4, 5, 6]
    assert (clip["joint_pos"].shape, clip["live"].shape) == ((3, 3), (3, 1, 3))


def test_a_resumed_training_waits_for_the_next_clip(tmp_path):
    assert [path.name for path in clips(tmp_path, Env(first=25), 20)] == ["step-30.pt", "step-40.pt"]


FILM = """\
import sys
from pathlib import Path
recording, out = sys.argv[3], sys.argv[5]
assert sys.argv[1:] == ["film", "--recording", recording, "--out", out, "--task", "T"], sys.argv
print("filming")
if Path(recording).stem == "step-10":
    raise SystemExit(1)
Path(out).write_text("film")
"""


def test_recordings_are_filmed_one_by_one_and_stay_if_that_fails(tmp_path, monkeypatch, capsys):
    (tmp_path / "film.py").write_text(FILM)
    monkeypatch.setattr(video, "UMC", (str(tmp_path / "film.py"),))
    films = ClipFilms(["--task", "T"])
    for step in (0, 10, 20):
        (tmp_path / f"step-{step}.pt").touch()
        films.add(tmp_path / f"step-{step}.pt")
    films.finish()
    assert {path.name for path in tmp_path.glob("step-*")} == {"step-0.mp4", "step-10.pt", "step-20.mp4"}
    assert "step-10 was not filmed" in capsys.readouterr().err
    assert (tmp_path / LOG).read_text() == "filming\n" * 3
