# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of policies that have learnt nothing, for tests of what happens after training."""

import dataclasses
from pathlib import Path

import torch
from umc.rl.checkpoint import CheckpointInfo, write_checkpoint
from umc.rl.policy import build_model, registered_agent
from umc.utils.naming import load_tasks, task_parts

WIDTHS = {
    "a1": {"policy": 48, "joint_mask": 12, "fault_flag": 3},
    "go2": {"policy": 48, "joint_mask": 12, "fault_flag": 3},
    "g1": {"policy": 47, "joint_mask": 12, "fault_flag": 3},
    "h1": {"policy": 41, "joint_mask": 10, "fault_flag": 3},
    "solo8": {"policy": 36, "joint_mask": 8, "fault_flag": 3},
}
"""Observation columns of the tasks; tests/tasks/test_tasks_engine.py holds the engines to them."""


def write_fresh(folder: Path, task="UMC-A1-Stage2", model="mlp", change=None, **info) -> Path:
    """Writes ``model_0.pt`` with random weights; ``change`` may alter the agent cfg, ``info`` what the file says."""
    load_tasks()
    entry = f"rsl_rl_{model}_cfg_entry_point"
    agent = registered_agent(task, entry)
    if change is not None:
        change(agent)
    robot, stage = task_parts(task)
    actor = build_model(agent, WIDTHS[robot], 12)
    for name, buffer in actor.obs_normalizer.named_buffers():
        # statistics that differ between columns, as after training
        if buffer.dtype.is_floating_point:
            torch.manual_seed(len(name))
            buffer.copy_(torch.rand_like(buffer) + 0.5)
    says = CheckpointInfo(robot, task, stage, model, list(agent["actor"]["joint_names"]), 1, 0, "0", entry, "test")
    says = dataclasses.replace(says, **info)
    path = Path(folder) / "model_0.pt"
    write_checkpoint(
        path, {"actor_state_dict": actor.state_dict(), "iter": 0, "infos": {"umc": dataclasses.asdict(says)}}
    )
    return path
