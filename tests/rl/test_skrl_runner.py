# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Runs of skrl survive and go on as rsl_rl's do, and each library takes what the other trained."""

from __future__ import annotations

import os
import signal

import dummy_skrl as dummy
import dummy_training
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensordict import TensorDict
from umc.rl.checkpoint import checkpoint_info, checkpoints_in, read_checkpoint
from umc.rl.policy import build_model
from umc.rl.runner import TrainingInterrupted
from umc.rl.skrl.packing import PackedEnv
from umc.rl.skrl.runner import SkrlRunner
from umc.rl.transfer import load_stage1_weights
from umc.utils.errors import UmcError

STEPS_PER_UPDATE = 2 * 4
"""Optimizer steps of one iteration: epochs x mini-batches of the dummy agent."""
NOISE = {"distribution.std_param", "distribution.log_std_param"}


def weights(runner):
    data = runner.alg.save()
    sets = ("actor_state_dict", "critic_state_dict")
    return {f"{one}.{name}": tensor.clone() for one in sets for name, tensor in data[one].items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def optimizer_steps(data):
    return {int(state["step"]) for state in data["optimizer_state_dict"]["state"].values()}


def test_a_resumed_run_is_bit_exact(tmp_path):
    straight = dummy.build(tmp_path / "straight")
    straight.train(6)
    path = dummy.build(tmp_path / "halves").train(3)
    torch.rand(5)  # a new process has other random numbers
    second = dummy.build(tmp_path / "halves")
    second.resume(str(path))
    assert second.alg.learning_rate != dummy_training.LEARNING_RATE  # the schedule has moved it
    assert second.train(6).name == "model_5.pt"
    assert same(weights(straight), weights(second))
    assert second.alg.learning_rate == straight.alg.learning_rate
    assert second.logger.tot_timesteps == straight.logger.tot_timesteps == 6 * dummy.STEPS * dummy.ENVS


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_after_the_running_iteration(tmp_path, signum):
    def on_step(now):
        if now == 9:  # in iteration 2
            os.kill(os.getpid(), signum)

    runner = dummy.build(tmp_path, dummy.LabEnv(on_step=on_step))
    with pytest.raises(TrainingInterrupted) as stop:
        runner.train(50)
    assert stop.value.checkpoint == tmp_path / "model_2.pt"
    data = read_checkpoint(stop.value.checkpoint)
    assert optimizer_steps(data) == {3 * STEPS_PER_UPDATE}
    info = checkpoint_info(data, stop.value.checkpoint)
    assert (info.robot, info.model, info.iteration, info.agent) == ("a1", "mlp", 2, "skrl_mlp_cfg_entry_point")


def test_saves_at_the_interval_and_logs_what_rsl_rl_logs(tmp_path, capsys):
    dummy.build(tmp_path, cfg=dummy.skrl_agent(save_interval=4)).train(8)
    assert [path.name for path in checkpoints_in(tmp_path)] == ["model_0.pt", "model_4.pt", "model_7.pt"]
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    for tag in ("Train/mean_reward", "Policy/mean_std", "Loss/value", "Loss/surrogate", "Loss/learning_rate"):
        assert [event.step for event in events.Scalars(tag)] == list(range(8))
    out = capsys.readouterr().out
    assert "iteration 8/8: " in out
    for word in ("env-steps/s, ETA 0:0", "episode 3 steps", "action std 0.", "saved model_7.pt"):
        assert word in out
    assert not list(tmp_path.glob("checkpoints"))  # skrl itself writes nothing
    assert len(list(tmp_path.glob("events.*"))) == 1


def test_episodes_start_at_random_lengths_where_the_agent_wants_it(tmp_path):
    lengths = []
    for spread in (False, True):
        lab = dummy.LabEnv()
        runner = dummy.build(tmp_path / str(spread), lab)
        lab.on_step = lambda now, lab=lab: lengths.append(lab.episode_length_buf.clone()) if now == 1 else None
        runner.train(1, init_at_random_ep_len=spread)
    assert lengths[0].unique().tolist() == [0]
    assert len(lengths[1].unique()) > 1


@pytest.mark.parametrize("giver", ["rsl_rl", "skrl"])
@pytest.mark.parametrize("std_type", ["scalar", "log"])
def test_a_stage_takes_over_from_either_library(tmp_path, giver, std_type):
    options = {"std_type": std_type}
    build = {"rsl_rl": dummy.build_rsl_rl, "skrl": lambda path, **cfg: dummy.build(path, cfg=dummy.skrl_agent(**cfg))}
    first = build[giver](tmp_path / "one", **options)
    path = first.train(4)
    taker = "skrl" if giver == "rsl_rl" else "rsl_rl"
    second = build[taker](tmp_path / "two", **options)
    fresh = weights(second)
    second.train(2)  # leaves Adam's moments, a learning rate and an iteration behind
    load_stage1_weights(second, path, "a1", "mlp")
    old, new = weights(first), weights(second)
    assert old.keys() == new.keys()
    for name, tensor in new.items():
        if name.removeprefix("actor_state_dict.") in NOISE:
            torch.testing.assert_close(tensor, fresh[name])
            assert not torch.equal(tensor, old[name])
        else:
            assert torch.equal(tensor, old[name]), name
    assert not second.alg.optimizer.state
    assert second.alg.learning_rate == dummy_training.LEARNING_RATE
    assert second.current_learning_iteration == 0
    second.train(1)


def test_mirror_and_compiling_are_refused(tmp_path):
    with pytest.raises(UmcError, match=r"no mirror; train this agent with --rl_library rsl_rl"):
        dummy.build(tmp_path, cfg={**dummy.skrl_agent(), "mirror": True})
    with pytest.raises(UmcError, match=r"leave agent.torch_compile_mode out"):
        dummy.build(tmp_path, cfg={**dummy.skrl_agent(), "torch_compile_mode": "default"})


def test_the_optimizer_is_the_same_in_both_libraries(tmp_path):
    path = dummy.build_rsl_rl(tmp_path / "one").train(3)
    runner = dummy.build(tmp_path / "two")
    runner.load(str(path))
    stored = read_checkpoint(path)
    assert runner.alg.learning_rate == stored["optimizer_state_dict"]["param_groups"][0]["lr"]
    moments = {name: state["exp_avg"].shape for name, state in stored["optimizer_state_dict"]["state"].items()}
    loaded = runner.alg.optimizer.state_dict()["state"]
    assert {name: state["exp_avg"].shape for name, state in loaded.items()} == moments
    assert runner.current_learning_iteration == 2


def test_what_skrl_trained_is_played_as_rsl_rls(tmp_path):
    """A fresh actor as scripts/play.py builds it, with the stored weights, gives the runner's mean actions."""
    runner = dummy.build(tmp_path)
    data = read_checkpoint(runner.train(3))
    widths = {**runner.env.actor_packing.widths, "more": 7}
    actor = build_model(runner.cfg, widths, len(dummy.JOINTS)).eval()
    actor.load_state_dict(data["actor_state_dict"])
    obs = TensorDict(runner.env.unwrapped.observe(), batch_size=[dummy.ENVS])
    with torch.no_grad():
        wanted = runner.agent.policy.act({"observations": runner.env.actor_packing.pack(obs)})[1]["mean_actions"]
        assert torch.equal(actor(obs), wanted)


def test_a_baseline_that_reads_neither_mask_nor_flag_trains(tmp_path):
    cfg = dummy.skrl_agent()
    cfg["obs_groups"]["actor"] = ["policy"]
    runner = dummy.build(tmp_path, cfg=cfg)
    before = weights(runner)
    runner.train(2)
    assert runner.env.observation_space.shape == (dummy.BASE + 3 * len(dummy.JOINTS),)
    assert not any(torch.equal(tensor, before[name]) for name, tensor in weights(runner).items())


def test_other_sizes_are_one_line(tmp_path):
    path = dummy.build(tmp_path).train(1)
    cfg = dummy.skrl_agent()
    cfg["actor"]["hidden_dims"] = [8]
    with pytest.raises(UmcError, match="do not fit the model") as error:
        dummy.build(tmp_path, cfg=cfg).load(str(path))
    assert "\n" not in str(error.value)


def test_learning_elsewhere_than_the_env_is_one_line(tmp_path):
    with pytest.raises(UmcError, match="on cpu, not on meta; give one device"):
        SkrlRunner(PackedEnv(dummy.LabEnv(), dummy.GROUPS), dummy.skrl_agent(), str(tmp_path), "meta")


def test_a_nan_of_the_env_stops_the_run_and_names_the_group(tmp_path):
    lab = dummy.LabEnv()
    runner = dummy.build(tmp_path, lab)
    lab.table[2] = float("nan")
    with pytest.raises(ValueError, match="observation group 'policy'"):
        runner.train(1)
