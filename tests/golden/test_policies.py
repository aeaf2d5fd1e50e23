# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Pretrained policies go on loading, and act as they did."""

import json
from pathlib import Path

import pytest
import torch
import umc.tasks  # noqa: F401 - registers the agents
from tensordict import TensorDict
from umc.rl.policy import load_policy
from umc.rl.pretrained import pretrained_folder

GOLDEN = json.loads(Path(__file__).with_name("policies.json").read_text())
WIDTHS = {"a1": 48, "g1": 47, "h1": 41, "solo8": 36}
JOINTS = {"a1": 12, "g1": 12, "h1": 10, "solo8": 8}


def observations(robot: str) -> TensorDict:
    """Four made-up observations: healthy, a dead joint, all dead, flag raised."""
    joints = JOINTS[robot]
    mask = torch.ones(4, joints)
    mask[1, 2], mask[2] = 0.0, 0.0
    flag = torch.full((4, 3), -1.0)
    flag[1:] = 1.0
    policy = torch.randn(4, WIDTHS[robot], generator=torch.Generator().manual_seed(5))
    return TensorDict({"policy": policy, "joint_mask": mask, "fault_flag": flag}, batch_size=[4])


def actions(path: Path) -> list[float]:
    """Actions of a policy for the made-up observations of its robot."""
    robot = path.name.split("_")[0]
    widths = {"policy": WIDTHS[robot], "joint_mask": JOINTS[robot], "fault_flag": 3}
    actor = load_policy(path, widths, "cpu").actor.eval()
    with torch.no_grad():
        return [round(value, 6) for value in actor(observations(robot)).flatten().tolist()]


@pytest.mark.parametrize("name", GOLDEN)
def test_actions_of_a_pretrained_policy(name):
    found = torch.tensor(actions(pretrained_folder() / f"{name}.pt"))
    torch.testing.assert_close(found, torch.tensor(GOLDEN[name]), rtol=0.0, atol=2e-5)
