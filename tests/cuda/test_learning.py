# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Rollouts and updates of both libraries leave the host free and their tensors on the GPU, as far as they are ours."""

from __future__ import annotations

import dummy_skrl
import pytest
import torch
from dummy_robot import DummyRobotEnv, build_runner, with_terms
from fake_cuda import CUDA, fake_cuda
from umc.rl import transfer
from umc.rl.distillation import LABELS, DistillationRunner

MAY_WAIT = {
    "rl/logger.py RunLogger.log": "one number in an iteration",
    "rl/distillation.py Distillation.update": "the losses of an update, all at its end",
}


NETWORKS = ("actor_state_dict", "critic_state_dict")


def plain(cfg):
    """Keep the run short: the operators are the same."""
    cfg.num_steps_per_env, cfg.algorithm.num_mini_batches = 2, 2
    for model in (cfg.actor, cfg.critic):
        model.obs_normalization = True
        if hasattr(model, "num_layers"):
            model.num_layers = 2


def mirrored(cfg):
    plain(cfg)
    cfg.mirror, cfg.mirror_loss = True, 0.5


def privileged(cfg):
    mirrored(cfg)
    cfg.critic_sees_faults = True
    cfg.obs_groups = {**cfg.obs_groups, "critic": [*cfg.obs_groups["critic"], "live_faults"]}


def make_env(cls=DummyRobotEnv):
    env = with_terms(cls("A1", str(CUDA)), "A1")
    env.groups["live_faults"] = torch.zeros(env.num_envs, 3 * env.num_actions, device=CUDA)
    return env


@pytest.mark.parametrize(
    ("agent", "change"),
    [
        *((agent, plain) for agent in ("mlp", "transformer", "gru", "body_transformer")),
        *((agent, mirrored) for agent in ("mlp", "gru")),
        ("mlp", privileged),
    ],
)
def test_iterations_of_rsl_rl(agent, change):
    with fake_cuda(MAY_WAIT) as gpu:
        runner = build_runner(None, agent, env=make_env(), change=change, device=str(CUDA))
        runner.learn(1)  # what is allocated once
        with gpu.watched():
            runner.learn(1)
        kept = [*runner.alg.actor.state_dict().values(), *runner.alg.critic.state_dict().values()]
        assert {tensor.device for tensor in kept} == {CUDA}


def test_iterations_of_skrl():
    with fake_cuda(MAY_WAIT) as gpu:
        cfg = dummy_skrl.agent(dummy_skrl.rsl_rl_ppo(schedule="fixed"))
        runner = dummy_skrl.build(None, dummy_skrl.LabEnv(device=str(CUDA)), cfg)
        runner._learn(1, False)
        with gpu.watched():
            runner._learn(1, True)


class TeacherEnvWrapper(DummyRobotEnv):
    """A robot whose teacher stands still."""

    def __init__(self, robot, device):
        super().__init__(robot, device)
        self.groups[LABELS] = torch.zeros(self.num_envs, self.num_actions, device=device)


@pytest.mark.parametrize("agent", ["mlp", "gru"])
def test_iterations_of_an_imitation(agent, monkeypatch):
    def change(cfg):
        plain(cfg)
        cfg.distillation.samples, cfg.distillation.batch_size, cfg.distillation.updates = 32, 16, 2

    monkeypatch.setattr("dummy_training.UmcRunner", DistillationRunner)
    with fake_cuda(MAY_WAIT) as gpu:
        runner = build_runner(None, agent, env=make_env(TeacherEnvWrapper), change=change, device=str(CUDA))
        runner._learn(1, False)
        with gpu.watched():
            runner._learn(1, False)


def test_stage_2_takes_the_weights_of_stage_1(monkeypatch, tmp_path):
    """The checkpoint is on the CPU, the critic gets wider, and learning goes on."""
    with fake_cuda(MAY_WAIT) as gpu:
        first = build_runner(None, "mlp", env=make_env(), change=plain, device=str(CUDA))
        saved = first.alg.save()
        data = {name: {key: value.cpu() for key, value in saved[name].items()} for name in NETWORKS}
        data |= {"iter": 0, "infos": {"umc": vars(first.info) | {"stage": 1}}}
        monkeypatch.setattr(transfer, "read_checkpoint", lambda path: data)
        runner = build_runner(None, "mlp", env=make_env(), change=privileged, device=str(CUDA))
        runner.cfg["stage1_transfer"]["neutral_flag"] = True
        transfer.load_stage1_weights(runner, tmp_path, "a1", "mlp")
        runner.learn(1)
        with gpu.watched():
            runner.learn(1)
