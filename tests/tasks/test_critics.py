# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Privileged critics, which observe faults, and MLPs that learn the values of any actor, on a dummy environment."""

from dataclasses import MISSING
from types import SimpleNamespace

import pytest
import torch
from dummy_robot import DummyRobotEnv, agent_cfg, build_runner, mean_action
from umc.models import MaskedMlp
from umc.rl.agents import AGENTS
from umc.rl.critics import add_privileged_faults, use_mlp_critic, widen_critic
from umc.rl.model_cfg import UmcMlpModelCfg, UmcTransformerModelCfg
from umc.rl.transfer import load_stage1_weights
from umc.robots import A1_JOINTS
from umc.utils.errors import UmcError


def privileged_runner(folder, agent, sees_faults, groups=("critic",), **resets):
    """A runner whose critic observes 2 kinds of faults, every second of which is present."""
    env, env_cfg = DummyRobotEnv("A1"), SimpleNamespace(observations=SimpleNamespace())
    if sees_faults:
        env.groups["live_faults"] = (torch.arange(2 * len(A1_JOINTS)) % 2).float().expand(env.num_envs, -1).clone()

    def change(cfg):
        cfg.critic_sees_faults = sees_faults
        for name, value in resets.items():
            setattr(cfg.stage1_transfer, name, value)
        cfg.obs_groups = {**cfg.obs_groups, "critic": list(groups)}
        add_privileged_faults(env_cfg, cfg)

    runner = build_runner(folder, agent, env=env, change=change)
    assert hasattr(env_cfg.observations, "live_faults") == sees_faults
    return runner


def values(runner, **groups):
    with torch.inference_mode():
        return runner.alg.critic(runner.env.get_observations().clone().update(groups))


@pytest.mark.parametrize("agent", ["mlp", "transformer_small32"])
def test_a_privileged_critic_starts_as_the_one_of_stage_1(tmp_path, agent):
    first = privileged_runner(tmp_path / "one", agent, sees_faults=False)
    path = first.train(1)
    second = privileged_runner(tmp_path / "two", agent, sees_faults=True)
    load_stage1_weights(second, path, "a1", AGENTS[agent].network)
    none = torch.zeros_like(second.env.get_observations()["live_faults"])
    assert torch.allclose(values(second), values(first), atol=1e-5)
    assert torch.equal(values(second), values(second, live_faults=none))
    second.train(1)
    assert (values(second) - values(second, live_faults=none)).abs().max() > 1e-5
    # the actor does not read it
    assert torch.equal(mean_action(second), mean_action(second, live_faults=none))


@pytest.mark.parametrize("groups", [("critic",), ("critic", "fault_flag")])
def test_a_critic_that_is_privileged_in_both_stages_is_loaded_as_it_is(tmp_path, groups):
    first = privileged_runner(tmp_path / "one", "mlp", sees_faults=True, groups=groups)
    second = privileged_runner(tmp_path / "two", "mlp", sees_faults=True, groups=groups, reset_optimizer=False)
    load_stage1_weights(second, first.train(1), "a1", "mlp")
    assert torch.equal(values(second), values(first))


def test_a_critic_that_reads_the_flag_cannot_be_shown_the_faults_later(tmp_path):
    groups = ("critic", "fault_flag")
    path = privileged_runner(tmp_path / "one", "mlp", sees_faults=False, groups=groups).train(1)
    with pytest.raises(UmcError, match=r"Stage 1 reads fault_flag, .* leave it out of agent\.obs_groups\.critic"):
        load_stage1_weights(privileged_runner(tmp_path / "two", "mlp", True, groups), path, "a1", "mlp")


def test_a_privileged_critic_refuses_what_does_not_fit(tmp_path):
    path = privileged_runner(tmp_path / "one", "mlp", sees_faults=False).train(1)
    with pytest.raises(UmcError, match="needs a new optimizer"):
        load_stage1_weights(
            privileged_runner(tmp_path / "two", "mlp", sees_faults=True, reset_optimizer=False), path, "a1", "mlp"
        )
    other = {"layers.0.weight": torch.zeros(5, 3), "layers.0.bias": torch.zeros(5)}
    for columns in (torch.zeros(6, 4), torch.zeros(5, 2)):
        with pytest.raises(UmcError, match="needs a Stage 1 of the same sizes"):
            widen_critic(other, {**other, "layers.0.weight": columns})


def test_statistics_of_new_columns_leave_zeros_and_ones_nearly_as_they_are():
    known = {"n.mean": torch.ones(2), "n.var": torch.full((2,), 4.0), "n.count": torch.tensor([9, 7])}
    wider = widen_critic(known, {name: torch.zeros(3) for name in known})
    assert {name: value.tolist() for name, value in wider.items()} == {
        "n.mean": [1.0, 1.0, 0.0],
        "n.var": [4.0, 4.0, 1.0],
        "n.count": [9, 7, 9],
    }


def test_an_mlp_that_is_the_critic_already_keeps_its_settings():
    critic = UmcMlpModelCfg(hidden_dims=[64], activation="relu")
    cfg = SimpleNamespace(mlp_critic=True, critic=critic)
    use_mlp_critic(cfg)
    assert cfg.critic is critic


@pytest.mark.parametrize("agent", ["transformer_small32", "body_transformer"])
def test_an_mlp_learns_the_values_of_any_actor(tmp_path, agent):
    def run(folder, mlp_critic):
        def change(cfg):
            cfg.mlp_critic = mlp_critic
            use_mlp_critic(cfg)

        return build_runner(tmp_path / folder, agent, change=change)

    first = run("one", mlp_critic=True)
    assert isinstance(first.alg.critic.core, MaskedMlp)
    assert not isinstance(first.alg.get_policy().core, MaskedMlp)
    before = values(first)
    path = first.train(1)
    assert (values(first) - before).abs().max() > 1e-4
    second = run("two", mlp_critic=True)
    load_stage1_weights(second, path, "a1", agent)
    assert torch.equal(values(second), values(first))
    with pytest.raises(UmcError, match=r"another kind of network; repeat its run's agent\.mlp_critic"):
        load_stage1_weights(run("three", mlp_critic=False), path, "a1", agent)


def test_an_mlp_critic_has_the_widths_that_were_given():
    cfg = agent_cfg("A1", "transformer", 1)
    cfg.mlp_critic, cfg.critic.hidden_dims = True, [32, 16]
    use_mlp_critic(cfg)
    assert cfg.critic.hidden_dims == [32, 16]
    other = agent_cfg("A1", "transformer", 1)
    use_mlp_critic(other)
    assert isinstance(other.critic, UmcTransformerModelCfg)
    other.mlp_critic, other.critic.hidden_dims = True, MISSING  # as a model of one's own leaves it
    use_mlp_critic(other)
    assert other.critic.hidden_dims == UmcMlpModelCfg().hidden_dims
