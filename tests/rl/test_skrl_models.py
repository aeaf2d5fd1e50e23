# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The same weights act, judge and doubt the same, whichever library holds them."""

from __future__ import annotations

import dummy_skrl as dummy
import pytest
import torch
from skrl.models.torch import GaussianMixin
from tensordict import TensorDict
from umc.rl.skrl.packing import PackedEnv, Packing
from umc.rl.skrl.ppo import make_agent
from umc.utils.errors import UmcError

JOINTS, WIDTH = len(dummy.JOINTS), dummy.BASE + 3 * len(dummy.JOINTS)
NETWORKS = ("MaskedMlpModel", "MaskedTransformerModel")


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


def both(tmp_path, network, std_type="scalar"):
    """Models of rsl_rl after a little training, and skrl's with their weights."""
    trained = dummy.build_rsl_rl(tmp_path, network=network, std_type=std_type)
    trained.train(2)
    torch.manual_seed(1)
    env = PackedEnv(dummy.LabEnv(), dummy.GROUPS)
    agent = make_agent(env, dummy.skrl_agent(network=network, std_type=std_type))
    policy, value = agent.policy, agent.value
    assert any(not torch.equal(a, b) for a, b in zip(policy.parameters(), trained.alg.actor.parameters(), strict=True))
    policy.network.load_state_dict(trained.alg.actor.state_dict())
    value.network.load_state_dict(trained.alg.critic.state_dict())
    return trained.alg.actor, trained.alg.critic, agent, env


@pytest.mark.parametrize("std_type", ["scalar", "log"])
@pytest.mark.parametrize("network", NETWORKS)
def test_same_weights_same_actions_log_probabilities_entropies_and_values(tmp_path, network, std_type):
    actor, critic, agent, env = both(tmp_path, network, std_type)
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
        # skrl's own formulas over the same mean and noise
        _, theirs = GaussianMixin.act(agent.policy, {**inputs, "taken_actions": taken})
        torch.testing.assert_close(outputs["log_prob"], theirs["log_prob"], atol=1e-5, rtol=1e-6)


@pytest.mark.parametrize("network", NETWORKS)
def test_mask_and_flag_arrive(tmp_path, network):
    _, _, agent, env = both(tmp_path, network)
    obs = observations(0.4)
    before = agent.policy.act({"observations": env.actor_packing.pack(obs)})[1]["mean_actions"]
    dead = obs["joint_mask"].bool()
    obs["policy"][:, dummy.BASE :].view(-1, 3, JOINTS).transpose(1, 2)[dead] = float("nan")
    garbage = agent.policy.act({"observations": env.actor_packing.pack(obs)})[1]["mean_actions"]
    assert torch.equal(garbage, before)
    obs["fault_flag"] = -obs["fault_flag"]
    flagged = agent.policy.act({"observations": env.actor_packing.pack(obs)})[1]["mean_actions"]
    assert (flagged != before).any(1).all()


def test_groups_are_packed_in_the_agents_order():
    obs = observations(0.4, batch=5)
    packing = Packing.of(obs, ["policy", "joint_mask", "fault_flag"])
    packed = packing.pack(obs)
    assert torch.equal(packed, torch.cat([obs["policy"], obs["joint_mask"], obs["fault_flag"]], dim=1))
    assert packing.space.shape == packed.shape[1:]
    unpacked = packing.unpack(packed)
    for group in packing.widths:
        assert torch.equal(unpacked[group], obs[group])
    with pytest.raises(UmcError, match=r"reads height, hum, which the task does not have"):
        Packing.of(obs, ["policy", "height", "hum"])


def test_the_env_is_reset_once_and_keeps_its_seed():
    lab = dummy.LabEnv()
    env = PackedEnv(lab, dummy.GROUPS)
    for _ in range(2):
        assert env.reset()[0].shape == (dummy.ENVS, WIDTH + JOINTS + 3)
    assert lab.resets == 1  # dummy.LabEnv refuses a seed
    assert (env.num_envs, env.state().shape) == (dummy.ENVS, (dummy.ENVS, WIDTH))


def test_actions_are_clipped_on_their_way_to_the_env():
    lab = dummy.LabEnv()
    PackedEnv(lab, dummy.GROUPS, clip_actions=0.25).step(torch.full((dummy.ENVS, JOINTS), 3.0))
    assert lab.actions.unique().tolist() == [0.25]


def test_with_a_finite_horizon_the_end_of_time_is_an_end():
    for finite in (False, True):
        env = PackedEnv(dummy.LabEnv(finite=finite), dummy.GROUPS)
        for _ in range(2):
            _, _, terminated, truncated, _ = env.step(torch.zeros(dummy.ENVS, JOINTS))
        assert int(truncated.sum()) == (0 if finite else 2)
        assert int(terminated.sum()) == (4 if finite else 2)
