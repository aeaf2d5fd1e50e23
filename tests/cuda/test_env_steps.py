# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What runs in each env step and at each reset leaves the host free and its tensors on the GPU."""

from __future__ import annotations

import pytest
import torch
from fake_cuda import CUDA, fake_cuda
from fake_scene import FakeEnv, patch_newton, task_cfg
from umc import mdp
from umc.mdp.observations import _columns_on

ROBOTS = ("A1", "H1", "G1", "Solo8")
ENVS = 4
MAY_WAIT = {"mdp/fault_log.py FaultLog.entry": "one read in LOG_EVERY env steps"}
KINDS = ("rom", "effort", "velocity", "locked", "power_loss", "dead", "frozen", "bias", "drift", "noise", "dropped")
KINDS += ("delayed",)
SEVERITY = {
    "rom": {"uniform": [0.2, 0.4]},
    "effort": {"fraction": {"choice": [0.2, 0.4]}},
    "velocity": {"log_uniform": [2.0, 4.0]},
    **dict.fromkeys(("bias", "drift", "noise"), 0.1),
    "dropped": 0.5,
    "delayed": {"choice": [1, 3, 10]},
}


def all_faults(cfg):
    """Every kind, several faults of an episode, and all that they may depend on."""
    cfg.actions.command_faults = mdp.CommandFaultsCfg()
    cfg.events.faults.params |= {
        "ratios": {"+".join(KINDS): 1.0, "normal": 1.0},
        "severity": SEVERITY,
        "num_faults": (1, 3),
        "onset_range": (1, 20),
        "duration": (5, 10),
        "period": (3, 4),
    }
    cfg.events.faults.params.pop("onset", None)
    cfg.observations.live_faults = mdp.LiveFaultsCfg()


def unsure(cfg):
    """A detector that errs."""
    cfg.detection = mdp.DetectionCfg(source="corrupted_oracle", delay=3, missed=0.2, false_alarms=5.0)


def unseen(cfg):
    cfg.detection = mdp.DetectionCfg(source="none")


@pytest.fixture
def walk(monkeypatch):
    def walk(cfg, steps=3):
        _columns_on.cache_clear()
        with fake_cuda(MAY_WAIT) as gpu:
            env = FakeEnv(cfg, ENVS, str(CUDA))
            warp = patch_newton(monkeypatch, env.scene["robot"])
            gpu.truth = True  # limits are finite, and some joints have the engine's drives
            env.load_managers()
            gpu.truth = False
            actions = torch.zeros(ENVS, env.action_manager.total_action_dim, device=CUDA)
            env.reset(slice(None))
            env.step(actions)  # what is allocated once
            warp.launches.clear()
            ids = torch.zeros(2, dtype=torch.int32, device=CUDA)
            with gpu.watched():
                for _ in range(steps):
                    env.step(actions)
                    env.reset(ids)
        _columns_on.cache_clear()
        return env, warp
    return walk


@pytest.mark.parametrize("robot", ROBOTS)
def test_terms_of_a_task(robot, walk):
    walk(task_cfg(robot))


@pytest.mark.parametrize("change", [all_faults, unsure, unseen])
def test_terms_of_faults(change, walk):
    walk(task_cfg("A1", change))
