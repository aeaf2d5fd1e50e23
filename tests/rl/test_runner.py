# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Training survives every death of its process and goes on as if nothing had happened."""

from __future__ import annotations

import io
import os
import re
import select
import signal
from types import SimpleNamespace

import dummy_skrl
import dummy_training as dummy
import pytest
import torch
from changed_files import Bomb
from rsl_rl.runners import OnPolicyRunner
from rsl_rl.utils.log_writer import LogWriter
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter
from umc.rl import runner as runner_module
from umc.rl.checkpoint import checkpoint_info, checkpoints_in, read_checkpoint, write_checkpoint
from umc.rl.logger import HEADER_EVERY, LINE_EVERY, IterationStats, Progress
from umc.rl.models import MaskedMlpModel
from umc.rl.runner import TrainingInterrupted, UmcRunner
from umc.utils.errors import UmcError
from umc.utils.naming import LIBRARIES
from umc.utils.provenance import PROGRESS_FILE, read_progress

STEPS_PER_UPDATE = 2 * 4
"""Optimizer steps of one iteration: epochs x mini-batches of the dummy agent (rsl_rl's default is 4)."""


def optimizer_steps(data):
    return {int(state["step"]) for state in data["optimizer_state_dict"]["state"].values()}


def build(library, folder, env=None, save_every_s=1000.0, **cfg):
    """A runner of a library on its dummy env."""
    if library == "rsl_rl":
        return dummy.build(folder, env, dummy.agent(**cfg), save_every_s)
    return dummy_skrl.build(folder, env, dummy_skrl.agent(**cfg), save_every_s)


def interrupted_at(folder, step, signals=(signal.SIGINT,), library="rsl_rl", **options):
    """A runner whose env sends this process signals at an env step."""

    def on_step(now):
        if now == step:
            for signum in signals:
                signal.raise_signal(signum)

    env = dummy.DummyEnv(on_step=on_step) if library == "rsl_rl" else dummy_skrl.LabEnv(on_step=on_step)
    return build(library, folder, env, **options)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_resumed_run_is_bit_exact(tmp_path, library):
    straight = build(library, tmp_path / "straight")
    straight.train(6)
    first = build(library, tmp_path / "halves")
    path = first.train(3)
    torch.rand(5)  # a new process has other random numbers
    second = build(library, tmp_path / "halves")
    second.resume(str(path))
    assert second.alg.learning_rate == first.alg.learning_rate != dummy.LEARNING_RATE  # the schedule has moved it
    assert {group["lr"] for group in second.alg.optimizer.param_groups} == {first.alg.learning_rate}
    assert second.train(6).name == "model_5.pt"
    wanted, found = dummy_skrl.weights(straight), dummy_skrl.weights(second)
    assert wanted.keys() == found.keys()
    assert all(torch.equal(tensor, found[name]) for name, tensor in wanted.items())
    assert second.alg.learning_rate == straight.alg.learning_rate
    assert second.logger.tot_timesteps == straight.logger.tot_timesteps == 6 * 4 * 8


def test_counters_of_the_env_go_on(tmp_path):
    first = dummy.build(tmp_path)
    first.env_counters["fault_episode"] += torch.arange(8)
    path = first.train(1)
    second = dummy.build(tmp_path)
    second.resume(str(path))
    assert second.env_counters["fault_episode"].tolist() == list(range(8))
    second.env_counters["fault_episode"] = torch.zeros(3, dtype=torch.long)  # fewer envs now
    second.resume(str(path))
    assert second.env_counters["fault_episode"].tolist() == [7, 7, 7]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_after_the_running_iteration(tmp_path, signum, library):
    before = signal.getsignal(signum)
    # in iteration 2 of 4 steps each; sent twice, as `timeout` does
    runner = interrupted_at(tmp_path, 9, (signum, signum), library)
    with pytest.raises(TrainingInterrupted) as stop:
        runner.train(50)
    assert stop.value.signum == signum
    assert stop.value.checkpoint == tmp_path / "model_2.pt"
    data = read_checkpoint(stop.value.checkpoint)
    assert optimizer_steps(data) == {3 * STEPS_PER_UPDATE}
    info = checkpoint_info(data, stop.value.checkpoint)
    assert (info.iteration, info.agent) == (2, f"{library}_mlp_cfg_entry_point")
    assert signal.getsignal(signum) == before
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [event.step for event in events.Scalars("Train/mean_reward")] == [0, 1, 2]


def test_a_signal_while_a_line_is_being_written_saves_too(tmp_path, monkeypatch):
    class Terminal(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data):
            if b"iteration 3/50" in bytes(data):
                signal.raise_signal(signal.SIGINT)
            return len(data)

    runner = build("rsl_rl", tmp_path, save_interval=1)
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BufferedWriter(Terminal())))
    with pytest.raises(TrainingInterrupted) as stop:
        runner.train(50)
    assert stop.value.checkpoint == tmp_path / "model_3.pt"


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_signal_in_the_last_iteration_ends_a_complete_run(tmp_path, library):
    steps = dummy.agent()["num_steps_per_env"]
    path = interrupted_at(tmp_path, 4 * steps - 1, library=library).train(4)
    assert path == checkpoints_in(tmp_path)[-1]
    assert path.name == "model_3.pt"


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("part", ["observations", "weights", "losses"])
def test_a_training_that_diverges_ends_in_one_line_and_saves_nothing_more(tmp_path, library, part, monkeypatch):
    runner = interrupted_at(tmp_path, 0, (), library, save_interval=1)
    runner.train(2)
    if part == "observations":
        getattr(runner.env, "env", runner.env).table.fill_(torch.nan)
    elif part == "weights":
        runner.alg.optimizer.param_groups[0]["params"][0].data.fill_(torch.nan)
    else:
        end, stats = runner.logger.on_iteration, IterationStats(0.0, None, None, 0.5, {"value": torch.nan})
        monkeypatch.setattr(runner.logger, "on_iteration", lambda iteration, _: end(iteration, stats))
    with pytest.raises(UmcError, match=r"diverged in iteration 2 .*model_1.pt; give a smaller"):
        runner.train(50)
    assert [path.name for path in checkpoints_in(tmp_path)] == ["model_0.pt", "model_1.pt"]
    read_checkpoint(tmp_path / "model_1.pt")


def test_the_iteration_that_diverges_is_named(tmp_path, monkeypatch):
    runner = interrupted_at(tmp_path, 0, (), LIBRARIES[0], save_interval=1)
    end = runner.logger.on_iteration

    def spoil(iteration, stats):
        end(iteration, stats)
        if iteration == 2:
            getattr(runner.env, "env", runner.env).table.fill_(torch.nan)

    monkeypatch.setattr(runner.logger, "on_iteration", spoil)
    with pytest.raises(UmcError, match="diverged in iteration 4 "):
        runner.train(50)


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    """They may become so in the last mini-batch of an iteration, after its losses."""
    runner = interrupted_at(tmp_path, 0, (), LIBRARIES[0], save_interval=1)
    runner.train(2)
    runner.alg.optimizer.param_groups[0]["params"][0].data.fill_(torch.nan)
    with pytest.raises(UmcError, match=r"weights are not finite.*model_1.pt"):
        runner.save(str(tmp_path / "model_2.pt"))
    assert [path.name for path in checkpoints_in(tmp_path)] == ["model_0.pt", "model_1.pt"]


def test_the_speed_is_not_that_of_the_first_iteration(tmp_path):
    progress = Progress(total=100, done=0, steps_per_iteration=1000, stream=io.StringIO(), run_folder=tmp_path)
    for seconds in (10.0, 1.0, 1.0, 4.0):
        progress.update(IterationStats(seconds, None, None, 0.5, {}))
    assert progress.state["env_steps_per_s"] == pytest.approx(500.0)


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


def test_an_error_leaves_the_last_timed_save_alone(tmp_path):
    def on_step(now):
        if now == 4 * 6 + 1:
            raise KeyError("broken")

    runner = dummy.build(tmp_path, dummy.DummyEnv(on_step=on_step), dummy.agent(save_interval=100), save_every_s=0.0)
    with pytest.raises(KeyError, match="broken"):
        runner.train(50)
    assert [path.name for path in checkpoints_in(tmp_path)] == ["model_0.pt", "model_5.pt"]


def test_the_timed_save_before_the_last_one_is_still_there_for_who_reads_it(tmp_path):
    kept = []
    runner = dummy.build(tmp_path, cfg=dummy.agent(save_interval=100), save_every_s=0.0)
    save = runner.save

    def saving(path, infos=None):
        save(path, infos)
        kept.append([one.name for one in checkpoints_in(tmp_path)])

    runner.save = saving
    runner.train(6)
    assert kept[3] == ["model_0.pt", "model_2.pt", "model_3.pt"]
    assert [path.name for path in checkpoints_in(tmp_path)] == ["model_0.pt", "model_5.pt"]


def test_max_iterations_counts_the_whole_run(tmp_path):
    path = dummy.build(tmp_path).train(3)
    runner = dummy.build(tmp_path)
    runner.resume(str(path))
    with pytest.raises(UmcError, match="has 3 iterations already; give a higher --max_iterations"):
        runner.train(3)


@pytest.mark.parametrize("library", LIBRARIES)
def test_other_sizes_are_one_line(tmp_path, library):
    path = build(library, tmp_path).train(1)
    other = build(library, tmp_path)
    first_layer = next(layer for layer in other.alg.get_policy().modules() if isinstance(layer, torch.nn.Linear))
    first_layer.weight = torch.nn.Parameter(first_layer.weight[:, 1:])
    with pytest.raises(UmcError, match="do not fit the model") as error:
        other.load(str(path))
    assert "\n" not in str(error.value)


def test_isaac_labs_play_and_train_run_no_code_from_the_checkpoint_of_a_umc_policy(tmp_path):
    """They make rsl_rl's own runner, whatever the task."""
    loaded = []
    runner = object.__new__(OnPolicyRunner)
    policy = object.__new__(MaskedMlpModel)
    runner.device = "cpu"
    runner.alg = SimpleNamespace(get_policy=lambda: policy, load=lambda data, *_: loaded.append(data) or True)
    torch.save({"actor_state_dict": Bomb(tmp_path / "boom"), "iter": 1, "infos": None}, tmp_path / "evil.pt")
    with pytest.raises(UmcError, match=r"evil.pt is damaged or no checkpoint"):
        runner.load(str(tmp_path / "evil.pt"))
    assert not (tmp_path / "boom").exists()
    path = dummy.put_checkpoint(tmp_path)
    assert runner.load(str(path))["umc"]["robot"] == "a1"
    assert runner.current_learning_iteration == 5
    assert len(loaded) == 1


def test_counters_that_are_not_valid_are_one_line(tmp_path):
    path = dummy.put_checkpoint(tmp_path)
    data = read_checkpoint(path)
    data["infos"]["resume"]["random"]["numpy"] = [1]
    write_checkpoint(path, data)
    with pytest.raises(UmcError, match="no valid counters and random states"):
        dummy.build(tmp_path / "other").resume(str(path))
    data["optimizer_state_dict"] = {"state": 3}
    write_checkpoint(path, data)
    with pytest.raises(UmcError, match="do not fit the model"):
        dummy.build(tmp_path / "third").resume(str(path))


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
    for word in ("env-steps/s", "ETA 0:0", "reward -", "episode 4 steps", "value loss ", "action noise 0."):
        assert word in lines[1]


@pytest.mark.parametrize("library", LIBRARIES)
def test_saves_at_the_interval_and_logs(tmp_path, library, capsys):
    runner = build(library, tmp_path, save_interval=4)
    capsys.readouterr()  # building prints the networks
    runner.train(8)
    assert [path.name for path in checkpoints_in(tmp_path)] == ["model_0.pt", "model_4.pt", "model_7.pt"]
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    for tag in ("Train/mean_reward", "Policy/mean_std", "Loss/value", "Loss/surrogate", "Loss/learning_rate"):
        assert [event.step for event in events.Scalars(tag)] == list(range(8))
    out = capsys.readouterr().out
    assert "iteration 8/8: " in out
    assert "Learning iteration" not in out  # rsl_rl's own block
    assert (tmp_path / "git").is_dir()
    assert not (tmp_path / "checkpoints").exists()  # skrl itself writes nothing
    assert len(list(tmp_path.glob("events.*"))) == 1
    progress = read_progress(tmp_path)
    assert (progress["iteration"], progress["iterations"], progress["checkpoint"]) == (8, 8, "model_7.pt")
    assert progress["env_steps_per_s"] > 0
    assert progress["eta_s"] == 0
    assert progress["reward"] < 0


def readable(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed and nothing is left
        return b""


def test_a_terminal_gets_a_table_whose_header_repeats_and_a_bar(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm-256color")
    master, slave = os.openpty()
    shown = b""
    with (
        os.fdopen(slave, "w") as terminal,
        Progress(total=300, done=40, steps_per_iteration=1536, stream=terminal) as progress,
    ):
        stats = IterationStats(2.0, 1.5, 321.0, 0.25, {"value": 0.0125, "entropy": 9.0}, 0.75)
        for _ in range(LINE_EVERY * HEADER_EVERY + 1):
            progress.update(stats)
            ready, _, _ = select.select([master], [], [], 0)
            shown += os.read(master, 65536) if ready else b""
        for _ in range(2):  # as at the end of a training whose last iteration saves
            progress.saved("model_240.pt")
    while chunk := readable(master):
        shown += chunk
    os.close(master)
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).splitlines()]
    header = "iteration  steps/s      ETA   reward  episode  value loss    noise   faults"
    assert [line.split() for line in lines].count(header.split()) == 2
    assert ["41/300", "768", "0:08:38", "1.50", "321", "0.0125", "0.25", "75%"] in [line.split() for line in lines]
    assert [line.endswith("saved model_240.pt") for line in lines].count(True) == 1
    assert any(line.startswith("241/300 ") and line.endswith("768 env-steps/s, ETA 0:01:58") for line in lines)
    assert "entropy" not in "".join(lines)


def test_the_share_of_faults_is_the_newest_that_the_environment_logged(tmp_path, capsys):
    env = dummy.DummyEnv()
    step = env.step

    def logged(actions):
        observed, reward, done, extras = step(actions)
        log = {"Faults/share": 0.1 * env.steps} if env.steps in (2, 4) else {}
        return observed, reward, done, {**extras, "log": log}

    env.step = logged
    dummy.build(tmp_path, env=env, cfg=dummy.agent(save_interval=1)).train(2)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("iteration ")]
    assert all("faults in 40% of envs" in line for line in lines)
    assert len(lines) == 2


def test_a_writer_of_another_service_is_told_that_the_run_is_over(tmp_path):
    """Those of W&B and Neptune are TensorBoard writers, too."""
    calls = []

    class Writer(SummaryWriter, LogWriter):
        def stop(self):
            calls.append("stop")

    logger = dummy.build(tmp_path).logger
    logger.writer = Writer(str(tmp_path))
    logger.stop_logging_writer()
    assert calls == ["stop"]


@pytest.mark.parametrize("content", ["", "{", '{"iteration": -1}'])
def test_a_progress_file_that_a_power_cut_has_damaged_is_as_good_as_none(tmp_path, content):
    dummy.build(tmp_path).train(1)
    assert read_progress(tmp_path)["iteration"] == 1
    (tmp_path / PROGRESS_FILE).write_text(content)
    assert read_progress(tmp_path) is None
