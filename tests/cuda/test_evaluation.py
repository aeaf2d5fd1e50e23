# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""An evaluation leaves the host free and its tensors on the GPU, in each env step."""

from __future__ import annotations

import pytest
import torch
from fake_cuda import CUDA, fake_cuda
from fake_scene import task_cfg
from fresh_policy import WIDTHS
from umc.evaluation import metrics, rollout
from umc.evaluation.gait import LoadRecorder
from umc.evaluation.metrics import EpisodeRecorder
from umc.faults.scenarios import SCENARIOS
from umc.rl.policy import LoadedPolicy, build_model, registered_agent

MAY_WAIT = {"evaluation/metrics.py EpisodeRecorder.has_ended": "once in LOOK_EVERY env steps"}


def cases(cfg):
    """Each env has a case of its own."""
    params = cfg.events.faults.params
    names = [name for name in SCENARIOS if name != "normal"][:4]
    params["cases"] = [{"scenario": name, "seed": seed} for seed, name in enumerate(names)]
    cfg.events.faults.params = {name: params[name] for name in ("asset_cfg", "severity", "cases")}


def policy_of(agent):
    cfg = registered_agent("UMC-A1-Stage2", f"rsl_rl_{agent}_cfg_entry_point")
    actor = build_model(cfg, WIDTHS["a1"], 12).to(CUDA).eval().requires_grad_(False)
    return LoadedPolicy(actor, None, None, "", 10.0)


@pytest.mark.parametrize("agent", ["mlp", "gru"])
def test_steps_of_an_evaluation(agent, make_env, monkeypatch):
    monkeypatch.setattr(metrics, "LOOK_EVERY", 3)
    with fake_cuda(MAY_WAIT) as gpu:
        env, _ = make_env(gpu, task_cfg("A1", cases))
        feet, _ = rollout.feet_sensor(env, env.cfg.bodies.feet)
        recorder = EpisodeRecorder(torch.ones(env.num_envs, dtype=torch.long, device=CUDA))
        gait = rollout.GaitRecorder(env.num_envs, env.cfg.bodies.feet, CUDA)
        loads = LoadRecorder(env.scene["robot"].joint_names)
        obs = env.observation_manager.compute()
        steps = rollout.step_policy(env, policy_of(agent), obs, 4)
        recorder.record(next(steps))  # what is allocated once
        with gpu.watched():
            for step in steps:
                recorder.record(step)
                gait.record(step, rollout.foot_contact(env, feet))
                loads.record(step.effort, step.joint_velocity, gait.up)
                assert recorder.has_ended == (step.number == 3)  # what is read says that no episode is open
