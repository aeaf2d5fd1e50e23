# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""skrl's PPO learns from the same rollout what rsl_rl's learns, as far as the two are the same algorithm."""

from __future__ import annotations

import copy

import dummy_skrl as dummy
import pytest
import torch
from skrl.trainers.torch import SequentialTrainer, SequentialTrainerCfg
from umc.rl.skrl.cfg import skrl_cfg, skrl_ppo
from umc.rl.skrl.packing import PackedEnv
from umc.rl.skrl.ppo import make_agent, ppo_cfg
from umc.tasks.registry import load_tasks
from umc.utils.errors import UmcError

ONE_STEP = {"num_learning_epochs": 1, "num_mini_batches": 1, "schedule": "fixed", "max_grad_norm": 1.0e9}
"""Without what the libraries do differently: batches, learning rates, and which gradients are clipped together."""


def networks(runner):
    data = runner.alg.save()
    return {
        f"{name}.{key}": tensor for name in ("actor", "critic") for key, tensor in data[f"{name}_state_dict"].items()
    }


def test_three_iterations_move_the_weights_and_normalisers_as_rsl_rl_does(tmp_path):
    ppo = dummy.rsl_rl_ppo(**ONE_STEP)
    ours, theirs = dummy.build(tmp_path / "skrl", cfg=dummy.skrl_agent(ppo)), dummy.build_rsl_rl(tmp_path / "rsl", ppo)
    start = {name: tensor.clone() for name, tensor in networks(ours).items()}
    assert all(torch.equal(tensor, start[name]) for name, tensor in networks(theirs).items())
    for runner in (ours, theirs):
        torch.manual_seed(11)
        runner.train(3)
    wanted = networks(theirs)
    for name, tensor in networks(ours).items():
        torch.testing.assert_close(tensor, wanted[name], atol=1e-6, rtol=1e-5)
        assert not torch.equal(tensor, start[name]), name  # the normalisers have learnt, too


def test_the_envs_rewards_stay_as_they_are(tmp_path):
    runner = dummy.build(tmp_path)
    lab = runner.env.unwrapped
    seen = []
    step = lab.step

    def watched(actions):
        result = step(actions)
        seen.append((result[1], result[1].clone()))
        return result

    lab.step = watched
    runner.train(1)
    assert len(seen) == dummy.STEPS
    assert all(torch.equal(now, then) for now, then in seen)


@pytest.mark.slow
def test_it_learns(tmp_path):
    """The dummy pays for actions near 0.5."""
    runner = dummy.build(tmp_path, cfg=dummy.skrl_agent(dummy.rsl_rl_ppo(learning_rate=3e-3, entropy_coef=0.0)))
    env = runner.env

    def miss():
        with torch.no_grad():
            mean = runner.agent.policy.act({"observations": env.reset()[0]})[1]["mean_actions"]
        return (mean - 0.5).square().mean().item()

    before = miss()
    runner.train(60)
    assert miss() < 0.3 * before


def test_skrls_own_trainer_takes_env_and_agent():
    env = PackedEnv(dummy.LabEnv(), dummy.GROUPS)
    agent = make_agent(env, dummy.skrl_agent())
    before = copy.deepcopy(agent.policy.state_dict())
    cfg = SequentialTrainerCfg(timesteps=2 * dummy.STEPS, disable_progressbar=True, close_environment_at_exit=False)
    SequentialTrainer(cfg=cfg, env=env, agents=agent).train()
    after = agent.policy.state_dict()
    assert env.unwrapped.steps == 2 * dummy.STEPS
    assert all(torch.isfinite(tensor).all() for tensor in after.values())
    assert any(not torch.equal(tensor, before[name]) for name, tensor in after.items())


def test_a_twin_has_the_same_networks_and_the_same_values_under_skrls_names():
    from isaaclab_tasks.utils import load_cfg_from_registry

    load_tasks()
    agent = load_cfg_from_registry("UMC-A1-Stage2", "rsl_rl_transformer_cfg_entry_point")
    before = agent.to_dict()
    twin = skrl_cfg(agent)
    assert agent.to_dict() == before
    assert {**twin.to_dict(), "algorithm": None} == {**before, "algorithm": None}
    cfg = ppo_cfg(twin.algorithm.to_dict(), twin.num_steps_per_env)
    cfg.expand()
    # the paper's table of the actor's parameters and legged_gym's PPO, not our cfg
    assert (cfg.rollouts, cfg.learning_epochs, cfg.mini_batches) == (24, 5, 4)
    assert (cfg.discount_factor, cfg.gae_lambda, cfg.learning_rate[0]) == (0.99, 0.95, 1e-3)
    assert (cfg.ratio_clip, cfg.value_clip, cfg.entropy_loss_scale, cfg.value_loss_scale) == (0.2, 0.2, 0.01, 1.0)
    assert (cfg.grad_norm_clip, cfg.kl_threshold, cfg.time_limit_bootstrap) == (1.0, 0.0, True)
    kwargs = cfg.learning_rate_scheduler_kwargs[0]
    assert (kwargs["kl_threshold"], kwargs["min_lr"], kwargs["max_lr"]) == (0.01, 1e-5, 1e-2)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"optimizer": "sgd"}, "skrl's PPO has no optimizer; train this agent with --rl_library rsl_rl"),
        ({"normalize_advantage_per_mini_batch": True}, "has no normalize_advantage_per_mini_batch"),
        ({"schedule": "cosine"}, "unknown schedule cosine; choose one of adaptive, fixed"),
    ],
)
def test_what_skrl_cannot_do_is_refused(changes, line):
    with pytest.raises(UmcError, match=line):
        skrl_ppo(dummy.rsl_rl_ppo(**changes))


def test_no_clipping_and_no_schedule_stay_off():
    cfg = skrl_ppo(dummy.rsl_rl_ppo(use_clipped_value_loss=False, schedule="fixed"))
    assert (cfg.value_clip, cfg.learning_rate_scheduler, cfg.learning_rate_scheduler_kwargs) == (0.0, None, {})


def test_an_unknown_scheduler_is_one_line():
    cfg = {**skrl_ppo(dummy.rsl_rl_ppo()).to_dict(), "learning_rate_scheduler": "Cosine"}
    with pytest.raises(UmcError, match="unknown learning_rate_scheduler Cosine; choose one of KLAdaptiveLR"):
        ppo_cfg(cfg, 4)
