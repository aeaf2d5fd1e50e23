# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Training survives every death of its process and goes on as if nothing had happened."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import dummy_training as dummy
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from umc.rl import runner as runner_module
from umc.rl.checkpoint import checkpoint_info, checkpoints_in, read_checkpoint
from umc.rl.logger import Progress
from umc.rl.runner import TrainingInterrupted, UmcRunner
from umc.utils.errors import UmcError
from umc.utils.io import remove_leftovers
from umc.utils.provenance import read_progress

STEPS_PER_UPDATE = 2 * 4
"""Optimizer steps of one iteration: epochs x mini-batches of the dummy agent (rsl_rl's default is 4)."""


def same_weights(a: UmcRunner, b: UmcRunner):
    pairs = zip(a.alg.save()["actor_state_dict"].items(), b.alg.save()["actor_state_dict"].items(), strict=True)
    return all(name == other and torch.equal(x, y) for (name, x), (other, y) in pairs)


def optimizer_steps(data):
    return {int(state["step"]) for state in data["optimizer_state_dict"]["state"].values()}


def interrupted_at(folder, step, signals=(signal.SIGINT,), **options):
    """A runner whose env sends this process signals at an env step."""

    def on_step(now):
        if now == step:
            for signum in signals:
                os.kill(os.getpid(), signum)

    return dummy.build(folder, dummy.DummyEnv(on_step=on_step), **options)


@pytest.mark.slow
def test_kill_9_loses_at_most_one_save_interval(tmp_path):
    child = subprocess.Popen([sys.executable, dummy.__file__, str(tmp_path)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not any(int(path.stem.split("_")[1]) >= 3 for path in checkpoints_in(tmp_path)):
        assert time.monotonic() < deadline
        assert child.poll() is None
        time.sleep(0.01)
    child.kill()
    assert child.wait() == -signal.SIGKILL

    newest = checkpoints_in(tmp_path)[-1]
    data = read_checkpoint(newest)
    done = data["iter"] + 1
    assert optimizer_steps(data) == {done * STEPS_PER_UPDATE}

    runner = dummy.build(tmp_path)
    runner.resume(str(newest))
    assert runner.current_learning_iteration == done
    last = runner.train(done + 2)
    data = read_checkpoint(last)
    assert last.name == f"model_{done + 1}.pt"
    assert checkpoint_info(data, last).iteration == done + 1
    assert optimizer_steps(data) == {(done + 2) * STEPS_PER_UPDATE}
    remove_leftovers(tmp_path)
    assert not list(tmp_path.glob(".*"))


def test_a_resumed_run_is_bit_exact(tmp_path):
    straight = dummy.build(tmp_path / "straight")
    straight.train(6)
    first = dummy.build(tmp_path / "halves")
    path = first.train(3)
    first.env_counters["fault_episode"] += 4
    torch.rand(5)  # a new process has other random numbers
    second = dummy.build(tmp_path / "halves")
    assert not same_weights(straight, second)
    second.resume(str(path))
    assert second.train(6).name == "model_5.pt"
    assert same_weights(straight, second)
    assert second.alg.learning_rate == straight.alg.learning_rate
    assert second.logger.tot_timesteps == straight.logger.tot_timesteps


def test_counters_of_the_env_go_on(tmp_path):
    first = dummy.build(tmp_path)
    first.env_counters["fault_episode"] += torch.arange(8)
    path = first.train(1)
    second = dummy.build(tmp_path)
    second.resume(str(path))
    assert second.env_counters["fault_episode"].tolist() == list(range(8))
    third = dummy.build(tmp_path)
    third.env_counters["fault_episode"] = torch.zeros(3, dtype=torch.long)  # fewer envs now
    third.resume(str(path))
    assert third.env_counters["fault_episode"].tolist() == [7, 7, 7]


def test_learning_rate_of_the_adaptive_schedule_goes_on(tmp_path):
    first = dummy.build(tmp_path)
    path = first.train(4)
    assert first.alg.learning_rate != dummy.LEARNING_RATE  # else this shows nothing
    second = dummy.build(tmp_path)
    second.resume(str(path))
    assert second.alg.learning_rate == first.alg.learning_rate
    assert second.alg.optimizer.param_groups[0]["lr"] == first.alg.learning_rate


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_after_the_running_iteration(tmp_path, signum):
    before = signal.getsignal(signum)
    runner = interrupted_at(tmp_path, 9, (signum, signum))  # iteration 2 of 4 steps each; sent twice, as `timeout` does
    with pytest.raises(TrainingInterrupted) as stop:
        runner.train(50)
    assert stop.value.signum == signum
    assert stop.value.checkpoint == tmp_path / "model_2.pt"
    assert optimizer_steps(read_checkpoint(stop.value.checkpoint)) == {3 * STEPS_PER_UPDATE}
    assert signal.getsignal(signum) == before
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [event.step for event in events.Scalars("Train/mean_reward")] == [0, 1, 2]


def test_a_later_ctrl_c_stops_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(runner_module, "SECOND_SIGNAL_S", -1.0)
    runner = interrupted_at(tmp_path, 9, (signal.SIGINT, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt) as stop:
        runner.train(50)
    assert not isinstance(stop.value, TrainingInterrupted)
    assert [path.name for path in checkpoints_in(tmp_path)] == ["model_0.pt"]


def test_every_iteration_reports_its_duration_to_the_watchdog(tmp_path, monkeypatch):
    durations = []
    monkeypatch.setattr("umc.rl.watchdog.Watchdog.heartbeat", lambda _, seconds: durations.append(seconds))
    dummy.build(tmp_path).train(3)
    assert len(durations) == 3
    assert min(durations) > 0.0


def test_timed_saves_replace_each_other_and_keep_the_interval(tmp_path):
    dummy.build(tmp_path, cfg=dummy.agent(save_interval=4), save_every_s=0.0).train(8)
    assert [path.name for path in checkpoints_in(tmp_path)] == ["model_0.pt", "model_4.pt", "model_7.pt"]
    folder = tmp_path / "killed"
    with pytest.raises(TrainingInterrupted):
        interrupted_at(folder, 4 * 6 + 1, save_every_s=0.0).train(50)
    assert [path.name for path in checkpoints_in(folder)] == ["model_0.pt", "model_6.pt"]


def test_max_iterations_counts_the_whole_run(tmp_path):
    path = dummy.build(tmp_path).train(3)
    runner = dummy.build(tmp_path)
    runner.resume(str(path))
    with pytest.raises(UmcError, match="has 3 iterations already; give a higher --max_iterations"):
        runner.train(3)


def test_other_sizes_are_one_line(tmp_path):
    path = dummy.build(tmp_path).train(1)
    cfg = dummy.agent()
    cfg["actor"]["hidden_dims"] = [8]
    with pytest.raises(UmcError, match="do not fit the model") as error:
        dummy.build(tmp_path, cfg=cfg).load(str(path))
    assert "\n" not in str(error.value)


def test_a_runner_for_playing_needs_no_folder(tmp_path):
    path = dummy.build(tmp_path).train(1)
    runner = UmcRunner(dummy.DummyEnv(), dummy.agent())
    assert runner.load(str(path), load_cfg={"actor": True})["umc"]["robot"] == "a1"
    with pytest.raises(UmcError, match="give it `info`"):
        runner.save(str(tmp_path / "other.pt"))


def test_output_that_is_no_terminal_gets_few_plain_lines(tmp_path, capsys):
    dummy.build(tmp_path, cfg=dummy.agent(save_interval=20)).train(31)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("iteration ")]
    assert [line.split(":")[0] for line in lines] == [f"iteration {n}/31" for n in (1, 11, 21, 31)]
    assert "saved model_0.pt" in lines[0]
    assert "saved model_20.pt" in lines[2]
    for word in ("env-steps/s", "ETA 0:0", "reward -", "episode 4 steps", "action std 0."):
        assert word in lines[1]


def test_the_progress_file_says_how_far_the_run_is(tmp_path):
    dummy.build(tmp_path, cfg=dummy.agent(save_interval=3)).train(5)
    progress = read_progress(tmp_path)
    assert (progress["iteration"], progress["iterations"], progress["checkpoint"]) == (5, 5, "model_4.pt")
    assert progress["env_steps_per_s"] > 0
    assert progress["eta_s"] == 0
    assert progress["reward"] < 0


def test_rsl_rl_does_not_print_its_own_block(tmp_path, capsys):
    runner = dummy.build(tmp_path)
    capsys.readouterr()  # building prints the networks
    runner.train(2)
    assert "Learning iteration" not in capsys.readouterr().out
    assert (Path(tmp_path) / "git").is_dir()


def readable(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed and nothing is left
        return b""


def test_a_terminal_gets_one_bar_with_rate_and_eta():
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 160, 0, 0))
    with (
        os.fdopen(slave, "w") as terminal,
        Progress(total=100, done=40, steps_per_iteration=1536, stream=terminal) as progress,
    ):
        progress.update(seconds=2.0, reward=1.5, length=321.0, std=0.25, line=True)
        progress.saved("model_40.pt")
        progress.bar.refresh()
    shown = b""
    while chunk := readable(master):
        shown += chunk
    os.close(master)
    shown = shown.decode()
    last = shown.rstrip().split("\r")[-1]
    assert last.startswith("41/100 |")
    assert "768 env-steps/s, ETA 0:01:58, reward 1.50, episode 321 steps, action std 0.25" in last
    assert shown.count("\n") == 1
