# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A checkpoint becomes the policy it was, or one clear error."""

import pytest
import torch
import yaml
from fresh_policy import WIDTHS, write_fresh
from tensordict import TensorDict
from umc.rl.checkpoint import read_checkpoint
from umc.rl.policy import load_policy, registered_agent
from umc.utils.errors import UmcError

A1 = WIDTHS["a1"]


def observations(batch=3, widths=A1):
    return TensorDict({name: torch.randn(batch, width) for name, width in widths.items()}, batch_size=[batch])


def test_the_policy_gives_mean_actions_from_the_stored_weights(tmp_path):
    path = write_fresh(tmp_path)
    policy = load_policy(path, A1, robot="a1")
    obs = observations()
    actions = policy(obs)
    assert actions.shape == (3, 12)
    assert torch.equal(actions, policy(obs))
    for name, weight in read_checkpoint(path)["actor_state_dict"].items():
        assert torch.equal(weight, policy.actor.state_dict()[name])


def test_the_agent_cfg_of_the_run_wins_over_the_registered_one(tmp_path):
    """A run trained with agent.actor.hidden_dims=[32] has to load without repeating the override."""
    agent = registered_agent("UMC-A1-Stage2", "rsl_rl_mlp_cfg_entry_point")

    def narrow(cfg):
        cfg["actor"]["hidden_dims"] = [32]
        cfg["clip_actions"] = 0.01

    path = write_fresh(tmp_path, change=narrow)
    with pytest.raises(UmcError, match="do not fit"):
        load_policy(path, A1)
    narrow(agent)
    (tmp_path / "params").mkdir()
    # as Isaac Lab writes it, tuples and all
    (tmp_path / "params" / "agent.yaml").write_text(yaml.dump(agent))
    assert "python/tuple" in (tmp_path / "params" / "agent.yaml").read_text()
    policy = load_policy(path, A1)
    assert sum(parameter.numel() for parameter in policy.actor.core.parameters()) == (51 + 1) * 32 + (32 + 1) * 12
    assert policy(observations(64)).abs().max() <= 0.01


def test_an_agent_cfg_that_would_run_code_is_refused(tmp_path):
    path = write_fresh(tmp_path)
    (tmp_path / "params").mkdir()
    (tmp_path / "params" / "agent.yaml").write_text("actor: !!python/object/apply:os.getcwd []\nobs_groups: {}\n")
    with pytest.raises(UmcError, match="damaged"):
        load_policy(path, A1)


def test_another_robots_checkpoint_is_refused_with_the_task_to_use(tmp_path):
    path = write_fresh(tmp_path, task="UMC-G1-Stage1")
    with pytest.raises(UmcError, match=r"trained for robot g1.*UMC-G1-Stage1"):
        load_policy(path, A1, robot="a1")


def test_another_joint_order_is_refused(tmp_path):
    path = write_fresh(tmp_path)
    names = read_checkpoint(path)["infos"]["umc"]["joint_names"]
    load_policy(path, A1, joint_names=names)
    with pytest.raises(UmcError, match="joint order"):
        load_policy(path, A1, joint_names=names[::-1])


def test_a_task_without_the_policys_groups_is_refused(tmp_path):
    with pytest.raises(UmcError, match="joint_mask"):
        load_policy(write_fresh(tmp_path), {"policy": 48, "fault_flag": 3})


def test_an_agent_that_is_not_registered_is_refused(tmp_path):
    path = write_fresh(tmp_path, agent="rsl_rl_cnn_cfg_entry_point")
    with pytest.raises(UmcError, match="rsl_rl_cnn_cfg_entry_point is not registered"):
        load_policy(path, A1)
