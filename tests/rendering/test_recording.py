# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The frames of a recording of a training, without a simulator."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import torch
from umc.rendering import camera
from umc.rendering.film_cfg import FilmCfg
from umc.rendering.recording import replay


@pytest.mark.parametrize(("steps", "shown"), [(1, [1]), (4, [1, 3])])
def test_every_second_step_is_a_frame_and_a_clip_of_one_step_has_one(monkeypatch, steps, shown):
    monkeypatch.setattr(camera, "FollowCamera", MagicMock())
    state = SimpleNamespace(live=torch.zeros(1, 2, 12, dtype=torch.bool))
    monkeypatch.setattr("umc.mdp.fault_state", lambda env: state)
    env = MagicMock(device="cpu", step_dt=0.02)
    env.scene.env_origins = torch.tensor([[1.0, 0.0, 0.0]])
    recording = {
        "root_pose": torch.zeros(steps, 7).index_add(1, torch.tensor([0]), torch.arange(steps)[:, None] * 0.5),
        "joint_pos": torch.zeros(steps, 12),
        "live": torch.zeros(steps, 2, 12, dtype=torch.bool),
        "episode_step": torch.arange(steps),
    }
    take = replay(env, recording, FilmCfg())
    assert [moment.step for moment in take.moments] == shown
    assert len(take.frames) == len(shown)
    assert take.moments[-1].distance == pytest.approx(0.5 * (shown[-1] - 1))
