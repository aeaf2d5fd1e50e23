# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Stage 2 finds the right Stage 1 checkpoint and takes over its weights, and nothing but its weights."""

from __future__ import annotations

import os

import dummy_training as dummy
import pytest
import torch
from umc.rl import stages
from umc.rl.checkpoint import read_checkpoint, write_checkpoint
from umc.rl.stages import find_stage1, hand_over, newest_checkpoint
from umc.utils.errors import UmcError
from umc.utils.naming import stage1_task, task_parts


def put(path, time_ns):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, ns=(time_ns, time_ns))
    return path


def test_task_names():
    assert task_parts("UMC-G1-Stage2") == ("g1", 2)
    assert stage1_task("UMC-Solo8-Stage2") == "UMC-Solo8-Stage1"
    with pytest.raises(UmcError, match="no UMC task"):
        task_parts("Isaac-Velocity-Flat-Unitree-A1")


def test_newest_is_the_last_of_the_run_that_saved_last(tmp_path):
    assert newest_checkpoint(tmp_path / "absent") is None
    put(tmp_path / "2026-01-01_10-00-00" / "model_9.pt", 3)
    wanted = put(tmp_path / "2026-01-01_10-00-00" / "model_10.pt", 40)  # resumed after the other run began
    put(tmp_path / "2026-01-02_10-00-00" / "model_500.pt", 20)
    put(tmp_path / "2026-01-03_10-00-00" / ".model_1.pt.5.tmp", 50)  # killed before its first save
    (tmp_path / "notes.txt").touch()
    assert newest_checkpoint(tmp_path) == wanted


def test_stage_1_of_the_same_robot_and_model_only(tmp_path, monkeypatch):
    shipped = tmp_path / "package" / "a1_mlp_stage1.pt"
    monkeypatch.setattr(stages, "shipped_policy", lambda *who: {("a1", "mlp", 1): shipped}.get(who))
    logs = tmp_path / "logs"
    for experiment in ("umc_a1_mlp_stage2", "umc_a1_transformer_stage1", "umc_g1_mlp_stage1"):
        put(logs / "rsl_rl" / experiment / "run" / "model_5.pt", 9)
    assert find_stage1(logs, "a1", "mlp") == shipped
    assert find_stage1(logs, "a1", "mlp", shipped=False) is None
    assert find_stage1(logs, "g1", "transformer") is None
    own = put(logs / "rsl_rl" / "umc_a1_mlp_stage1" / "run" / "model_5.pt", 0)
    assert find_stage1(logs, "a1", "mlp") == own


@pytest.mark.parametrize("std_type", ["scalar", "log"])
def test_hand_over(tmp_path, std_type):
    cfg = dummy.agent(std_type)
    first = dummy.build(tmp_path / "one", cfg=cfg)
    path = first.train(4)
    second = dummy.build(tmp_path / "two", cfg=cfg, stage=2, task="UMC-A1-Stage2")
    second.train(2)  # leaves Adam's moments, a learning rate and an iteration behind
    assert second.alg.optimizer.state
    hand_over(second, path, "a1", "mlp")

    old, new = first.alg.save(), second.alg.save()
    noise = {"distribution.std_param", "distribution.log_std_param"}
    for network in ("actor_state_dict", "critic_state_dict"):
        assert old[network].keys() == new[network].keys()
        for name, weight in old[network].items():
            assert name in noise or torch.equal(weight, new[network][name])
    trained, fresh = ({n: w for n, w in state["actor_state_dict"].items() if n in noise} for state in (old, new))
    assert len(fresh) == 1
    started = dummy.build(tmp_path / "three", cfg=cfg).alg.save()["actor_state_dict"]
    for name, std in fresh.items():
        assert not torch.equal(std, trained[name])
        assert torch.allclose(std, started[name])
    assert not second.alg.optimizer.state
    assert second.alg.learning_rate == dummy.LEARNING_RATE
    assert {group["lr"] for group in second.alg.optimizer.param_groups} == {dummy.LEARNING_RATE}
    assert second.current_learning_iteration == 0


@pytest.mark.parametrize(("noise", "optimizer"), [(True, False), (False, True), (False, False)])
def test_hand_over_resets_what_the_agent_says(tmp_path, noise, optimizer):
    first = dummy.build(tmp_path / "one")
    path = first.train(4)
    # neither the learning rate of this run nor that which PPO adapted may pass for the other
    learnt = first.alg.learning_rate
    assert learnt != dummy.LEARNING_RATE
    cfg = {**dummy.agent(), "hand_over": {"reset_noise": noise, "reset_optimizer": optimizer}}
    second = dummy.build(tmp_path / "two", cfg=cfg)
    hand_over(second, path, "a1", "mlp")
    std = second.alg.get_policy().distribution.std_param
    wanted = torch.full_like(std, dummy.INIT_STD) if noise else first.alg.get_policy().distribution.std_param
    assert torch.equal(std, wanted)
    assert not torch.equal(first.alg.get_policy().distribution.std_param, torch.full_like(std, dummy.INIT_STD))
    assert bool(second.alg.optimizer.state) != optimizer
    assert second.alg.learning_rate == (dummy.LEARNING_RATE if optimizer else learnt)
    assert second.current_learning_iteration == 0


def test_hand_over_of_an_optimizer_that_is_not_there_is_one_clear_error(tmp_path):
    path = dummy.build(tmp_path / "one").train(1)
    data = read_checkpoint(path)
    del data["optimizer_state_dict"]  # as in a policy that is shipped
    write_checkpoint(path, data)
    cfg = {**dummy.agent(), "hand_over": {"reset_noise": True, "reset_optimizer": False}}
    with pytest.raises(UmcError, match="has no optimizer_state_dict"):
        hand_over(dummy.build(tmp_path / "two", cfg=cfg), path, "a1", "mlp")
    hand_over(dummy.build(tmp_path / "three"), path, "a1", "mlp")


def test_hand_over_refuses_strangers(tmp_path):
    path = dummy.build(tmp_path / "one").train(1)
    runner = dummy.build(tmp_path / "two")
    before = [weight.clone() for weight in runner.alg.get_policy().parameters()]
    with pytest.raises(UmcError, match="trained for robot a1"):
        hand_over(runner, path, "g1", "mlp")
    with pytest.raises(UmcError, match="holds the mlp model"):
        hand_over(runner, path, "a1", "transformer")
    other = dummy.build(tmp_path / "three", joint_names=dummy.JOINTS[::-1])
    with pytest.raises(UmcError, match="another joint order"):
        hand_over(other, path, "a1", "mlp")
    assert all(torch.equal(a, b) for a, b in zip(before, runner.alg.get_policy().parameters(), strict=True))
