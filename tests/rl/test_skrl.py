# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""skrl acts, learns and stores as rsl_rl does; runs of both are tested in test_runner.py."""

from __future__ import annotations

import copy

import dummy_skrl as dummy
import dummy_training
import pytest
import torch
from dummy_robot import agent_cfg
from isaaclab_tasks.utils import load_cfg_from_registry
from skrl.resources.schedulers.torch import KLAdaptiveLR
from skrl.trainers.torch import SequentialTrainer, SequentialTrainerCfg
from tensordict import TensorDict
from umc.rl.checkpoint import read_checkpoint
from umc.rl.skrl.cfg import skrl_ppo
from umc.rl.skrl.packing import PackedEnv, Packing
from umc.rl.skrl.ppo import make_agent, ppo_cfg
from umc.rl.skrl.runner import SkrlRunner
from umc.rl.symmetry import mirror_of
from umc.rl.transfer import load_stage1_weights
from umc.utils.errors import UmcError
from umc.utils.naming import entry_point

JOINTS, WIDTH = len(dummy.JOINTS), dummy.BASE + 3 * len(dummy.JOINTS)
ONE_STEP = {"num_learning_epochs": 1, "num_mini_batches": 1, "schedule": "fixed", "max_grad_norm": 1.0e9}
"""Without what the libraries do differently: batches, learning rates, and which gradients are clipped together."""


def observations(dead, batch=64):
    """Groups of a batch whose joints are dead with a probability."""
    mask = (torch.rand(batch, JOINTS) < dead).float()
    groups = {
        "policy": torch.randn(batch, WIDTH),
        "joint_mask": mask,
        "fault_flag": torch.where(mask.any(1, keepdim=True), 1.0, -1.0).expand(-1, 3),
        "critic": torch.randn(batch, WIDTH),
    }
    return TensorDict(groups, batch_size=[batch])


@pytest.mark.parametrize("std_type", ["scalar", "log"])
@pytest.mark.parametrize("network", ["MaskedMlpModel", "MaskedTransformerModel"])
def test_same_weights_same_actions_log_probabilities_entropies_and_values(tmp_path, network, std_type):
    trained = dummy.build_rsl_rl(tmp_path, network=network, std_type=std_type)
    trained.train(2)
    actor, critic = trained.alg.actor, trained.alg.critic
    env = PackedEnv(dummy.LabEnv(), dummy.GROUPS)
    agent = make_agent(env, dummy.agent(network=network, std_type=std_type))
    agent.policy.network.load_state_dict(actor.state_dict())
    agent.value.network.load_state_dict(critic.state_dict())
    for dead in (0.0, 0.4, 1.0):
        obs = observations(dead)
        inputs = {"observations": env.actor_packing.pack(obs), "states": env.critic_packing.pack(obs)}
        taken = torch.randn(64, JOINTS)
        torch.manual_seed(3)
        wanted = actor(obs, stochastic_output=True)
        torch.manual_seed(3)
        sampled, outputs = agent.policy.act({**inputs, "taken_actions": taken})
        close = {"atol": 1e-6, "rtol": 0.0}
        torch.testing.assert_close(outputs["mean_actions"], actor(obs), **close)
        torch.testing.assert_close(sampled, wanted, **close)
        torch.testing.assert_close(outputs["log_prob"][:, 0], actor.get_output_log_prob(taken), **close)
        torch.testing.assert_close(agent.policy.get_entropy()[:, 0], actor.output_entropy, **close)
        torch.testing.assert_close(agent.policy.distribution().stddev, actor.output_std, **close)
        torch.testing.assert_close(agent.value.act(inputs)[0], critic(obs), **close)


def test_groups_are_packed_in_the_agents_order():
    obs = observations(0.4, batch=5)
    packing = Packing.of(obs, ["policy", "joint_mask", "fault_flag"])
    packed = packing.pack(obs)
    assert torch.equal(packed, torch.cat([obs["policy"], obs["joint_mask"], obs["fault_flag"]], dim=1))
    assert packing.space.shape == packed.shape[1:]
    unpacked = packing.unpack(packed)
    assert all(torch.equal(unpacked[group], obs[group]) for group in packing.widths)
    with pytest.raises(UmcError, match=r"reads height, hum, which the task does not have"):
        Packing.of(obs, ["policy", "height", "hum"])


@pytest.mark.parametrize("finite", [False, True])
def test_the_env_is_reset_once_clips_actions_and_ends_episodes_by_time_or_fall(finite):
    lab = dummy.LabEnv(finite=finite)
    env = PackedEnv(lab, dummy.GROUPS, clip_actions=0.25)
    for _ in range(2):
        assert env.reset()[0].shape == (dummy.ENVS, WIDTH + JOINTS + 3)
        _, _, terminated, truncated, _ = env.step(torch.full((dummy.ENVS, JOINTS), 3.0))
    assert lab.resets == 1  # dummy.LabEnv refuses a seed
    assert lab.actions.unique().tolist() == [0.25]
    assert (env.num_envs, env.state().shape) == (dummy.ENVS, (dummy.ENVS, WIDTH))
    # with a finite horizon the end of time is an end like any other
    assert (int(truncated.sum()), int(terminated.sum())) == ((0, 4) if finite else (2, 2))


@pytest.mark.parametrize("mirror_loss", [None, 0.0, 2.0])
def test_three_iterations_move_the_weights_and_normalisers_as_rsl_rl_does(tmp_path, mirror_loss):
    """With mirror images, too: those of observations, states and actions, in each loss, weighted alike."""
    # an image's value is not its sample's: the libraries clip it differently
    ppo = dummy.rsl_rl_ppo(**ONE_STEP, use_clipped_value_loss=mirror_loss is None)
    options = {} if mirror_loss is None else {"mirror": True, "mirror_loss": mirror_loss}
    ours = dummy.build(tmp_path / "skrl", cfg=dummy.agent(ppo, **options))
    theirs = dummy.build_rsl_rl(tmp_path / "rsl", ppo, **options)
    start, same_start = dummy.weights(ours), dummy.weights(theirs)
    assert all(torch.equal(tensor, start[name]) for name, tensor in same_start.items())
    losses = {}
    for runner in (ours, theirs):
        losses[runner] = watched_losses(runner)
        torch.manual_seed(11)
        runner.train(3)
    wanted = dummy.weights(theirs)
    for name, tensor in dummy.weights(ours).items():
        torch.testing.assert_close(tensor, wanted[name], atol=1e-6, rtol=1e-5)
        assert not torch.equal(tensor, start[name]), name  # the normalisers have learnt, too
    shared = {"value", "surrogate", *(() if mirror_loss is None else ("symmetry",))}
    for one, other in zip(losses[ours], losses[theirs], strict=True):
        assert one.keys() - {"entropy_loss"} == other.keys() - {"entropy"} == shared
        for name in shared:
            assert one[name] == pytest.approx(other[name], rel=1e-4, abs=1e-6), name


@pytest.mark.parametrize("mirror_loss", [0.0, 1.0])
def test_mirror_images_are_learned_from_in_mixed_precision(tmp_path, mirror_loss):
    cfg = dummy.agent(mirror=True, mirror_loss=mirror_loss)
    cfg["algorithm"]["use_mixed_precision"] = True
    runner = dummy.build(tmp_path, cfg=cfg)
    start = dummy.weights(runner)
    runner.train(2)
    for name, tensor in dummy.weights(runner).items():
        assert tensor.isfinite().all()
        assert not torch.equal(tensor, start[name]), name


def watched_losses(runner):
    """What a runner logs of its losses, iteration by iteration."""
    losses, log = [], runner.logger.log

    def watched(*args, **values):
        losses.append(values["loss_dict"])
        return log(*args, **values)

    runner.logger.log = watched
    return losses


def test_mirror_images_do_not_count_in_the_kl_divergence(tmp_path, monkeypatch):
    """They are as unlikely as the policy is asymmetric, even before it has moved."""
    found, step = [], KLAdaptiveLR.step

    def watched(self, kl=None, *, epoch=None):
        found.append(kl)
        step(self, kl, epoch=epoch)

    monkeypatch.setattr(KLAdaptiveLR, "step", watched)
    one_batch = dummy.rsl_rl_ppo(num_learning_epochs=1, num_mini_batches=1)
    runner = dummy.build(tmp_path, cfg=dummy.agent(one_batch, mirror=True, mirror_loss=0.0))
    runner.train(2)
    assert [kl for kl in found if kl is not None] == pytest.approx([0.0, 0.0], abs=1e-6)
    obs, mirror, policy = observations(0.4), mirror_of(runner.env), runner.alg.get_policy()
    assert (policy(mirror.observations(obs)) - mirror.actions(policy(obs))).abs().max() > 0.1


def test_the_envs_rewards_stay_as_they_are(tmp_path):
    runner = dummy.build(tmp_path)
    lab, seen = runner.env.unwrapped, []
    step = lab.step

    def watched(actions):
        result = step(actions)
        seen.append((result[1], result[1].clone()))
        return result

    lab.step = watched
    runner.train(1)
    assert len(seen) == dummy.STEPS
    assert all(torch.equal(now, then) for now, then in seen)


def test_skrls_own_trainer_takes_env_and_agent():
    env = PackedEnv(dummy.LabEnv(), dummy.GROUPS)
    agent = make_agent(env, dummy.agent())
    before = copy.deepcopy(agent.policy.state_dict())
    cfg = SequentialTrainerCfg(timesteps=2 * dummy.STEPS, disable_progressbar=True, close_environment_at_exit=False)
    SequentialTrainer(cfg=cfg, env=env, agents=agent).train()
    after = agent.policy.state_dict()
    assert env.unwrapped.steps == 2 * dummy.STEPS
    assert all(torch.isfinite(tensor).all() for tensor in after.values())
    assert any(not torch.equal(tensor, before[name]) for name, tensor in after.items())


def test_an_agent_has_the_same_values_under_skrls_names():
    agent = agent_cfg("A1", "transformer", 2)
    cfg = ppo_cfg(agent.algorithm.to_dict(), agent.num_steps_per_env)
    cfg.expand()
    # the paper's table of the actor's parameters and legged_gym's PPO, not our cfg
    assert (cfg.rollouts, cfg.learning_epochs, cfg.mini_batches) == (24, 5, 4)
    assert (cfg.discount_factor, cfg.gae_lambda, cfg.learning_rate[0]) == (0.99, 0.95, 1e-3)
    assert (cfg.ratio_clip, cfg.value_clip, cfg.entropy_loss_scale, cfg.value_loss_scale) == (0.2, 0.2, 0.01, 1.0)
    assert (cfg.grad_norm_clip, cfg.kl_threshold, cfg.time_limit_bootstrap) == (1.0, 0.0, True)
    kwargs = cfg.learning_rate_scheduler_kwargs[0]
    assert (kwargs["kl_threshold"], kwargs["min_lr"], kwargs["max_lr"]) == (0.01, 1e-5, 1e-2)


@pytest.mark.parametrize("agent", ["mlp", "transformer", "nm_mlp", "body_transformer"])
def test_the_libraries_train_the_same_agents(agent):
    for task in ("UMC-A1-Stage1", "UMC-G1-Stage1"):
        ours, theirs = (load_cfg_from_registry(task, entry_point(agent, library)) for library in ("skrl", "rsl_rl"))
        assert ours.to_dict() == theirs.to_dict()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"optimizer": "sgd"}, "skrl's PPO has no optimizer=sgd; train this agent with --rl_library rsl_rl"),
        ({"normalize_advantage_per_mini_batch": True}, "has no normalize_advantage_per_mini_batch=True"),
        ({"schedule": "cosine"}, "unknown schedule cosine; choose one of adaptive, fixed"),
    ],
)
def test_an_algorithm_that_skrl_lacks_is_refused(changes, line):
    with pytest.raises(UmcError, match=line):
        skrl_ppo(dummy.rsl_rl_ppo(**changes).to_dict())


@pytest.mark.parametrize("changes", [{"schedule": "fixed"}, {"desired_kl": None}])
def test_clipping_and_schedule_stay_off(changes):
    cfg = ppo_cfg(dummy.rsl_rl_ppo(use_clipped_value_loss=False, **changes).to_dict(), 4)
    assert (cfg.value_clip, cfg.learning_rate_scheduler, cfg.learning_rate_scheduler_kwargs) == (0.0, None, {})


@pytest.mark.parametrize(
    ("device", "options", "words"),
    [
        ("cpu", {"mirror": True, "mirror_loss": -1.0}, r"agent\.mirror_loss is -1\.0; it has to be 0 or more"),
        ("meta", {}, "on cpu, not on meta; give one device"),
    ],
)
def test_a_run_that_skrl_cannot_do_is_refused(tmp_path, device, options, words):
    with pytest.raises(UmcError, match=words):
        SkrlRunner(PackedEnv(dummy.LabEnv(), dummy.GROUPS), dummy.agent(**options), str(tmp_path), device)


def test_episodes_start_at_random_lengths_where_the_agent_wants_it(tmp_path):
    lengths = []
    for spread in (False, True):
        lab = dummy.LabEnv()
        runner = dummy.build(tmp_path / str(spread), lab)
        lab.on_step = lambda now, lab=lab: lengths.append(lab.episode_length_buf.clone()) if now == 1 else None
        runner.train(1, init_at_random_ep_len=spread)
    assert lengths[0].unique().tolist() == [0]
    assert len(lengths[1].unique()) > 1


def test_a_nan_of_the_env_stops_the_run_and_names_the_group(tmp_path):
    lab = dummy.LabEnv()
    runner = dummy.build(tmp_path, lab)
    lab.table[2] = float("nan")
    with pytest.raises(ValueError, match="observation group 'policy'"):
        runner.train(1)


@pytest.mark.parametrize("giver", ["rsl_rl", "skrl"])
@pytest.mark.parametrize("std_type", ["scalar", "log"])
def test_a_stage_takes_over_from_either_library(tmp_path, giver, std_type):
    build = {"rsl_rl": dummy.build_rsl_rl, "skrl": lambda path, **cfg: dummy.build(path, cfg=dummy.agent(**cfg))}
    first = build.pop(giver)(tmp_path / "one", std_type=std_type)
    path = first.train(4)
    ((_, take),) = build.items()
    second = take(tmp_path / "two", std_type=std_type)
    fresh = dummy.weights(second)
    second.train(2)  # leaves Adam's moments, a learning rate and an iteration behind
    load_stage1_weights(second, path, "a1", "mlp")
    old, new = dummy.weights(first), dummy.weights(second)
    assert old.keys() == new.keys()
    for name, tensor in new.items():
        if "distribution." in name:
            torch.testing.assert_close(tensor, fresh[name])
            assert not torch.equal(tensor, old[name])
        else:
            assert torch.equal(tensor, old[name]), name
    assert not second.alg.optimizer.state
    assert second.alg.learning_rate == dummy_training.LEARNING_RATE
    assert second.current_learning_iteration == 0
    second.train(1)


def test_the_optimizer_is_the_same_in_both_libraries(tmp_path):
    path = dummy.build_rsl_rl(tmp_path / "one").train(3)
    runner = dummy.build(tmp_path / "two")
    runner.load(str(path))
    stored, loaded = read_checkpoint(path)["optimizer_state_dict"], runner.alg.optimizer.state_dict()
    assert runner.alg.learning_rate == stored["param_groups"][0]["lr"]
    assert loaded["state"].keys() == stored["state"].keys()
    for name, state in loaded["state"].items():
        assert torch.equal(state["exp_avg"], stored["state"][name]["exp_avg"])
    assert runner.current_learning_iteration == 2
