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
from umc.robots import A1_JOINTS
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


@pytest.mark.parametrize(
    ("written", "widths", "options", "message"),
    [
        ({"task": "UMC-G1-Stage1"}, A1, {"robot": "a1"}, r"trained for robot g1.*UMC-G1-Stage1"),
        ({}, A1, {"joint_names": list(A1_JOINTS[::-1])}, "joint order"),
        ({}, {"policy": 48, "fault_flag": 3}, {}, "joint_mask"),
        ({"agent": "rsl_rl_cnn_cfg_entry_point"}, A1, {}, "rsl_rl_cnn_cfg_entry_point is not registered"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, written, widths, options, message):
    path = write_fresh(tmp_path, **written)
    with pytest.raises(UmcError, match=message):
        load_policy(path, widths, **options)


def test_an_agent_cfg_that_would_run_code_is_refused(tmp_path):
    path = write_fresh(tmp_path)
    load_policy(path, A1, joint_names=A1_JOINTS)
    (tmp_path / "params").mkdir()
    (tmp_path / "params" / "agent.yaml").write_text("actor: !!python/object/apply:os.getcwd []\nobs_groups: {}\n")
    with pytest.raises(UmcError, match="damaged"):
        load_policy(path, A1)
