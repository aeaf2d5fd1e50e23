# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Two processes, connected by gloo on the CPU, learn what one learns, and end together whatever ends one of them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import dummy_distributed as dummy
import pytest
import torch
from umc.cli.main import main
from umc.faults import FaultSchedule, FaultState
from umc.rl.checkpoint import checkpoints_in, read_checkpoint
from umc.tasks.task_cfg import pick_device
from umc.training import train
from umc.training.plan import Plan, broadcast_plan
from umc.utils import distributed
from umc.utils.distributed import Ranks, ranks_from_env, without_ranks
from umc.utils.errors import UmcError
from umc.utils.executor import LocalExecutor
from umc.utils.process import ChildFailed

TIMEOUT_S = 500.0
"""Longest run of two processes; PyTorch's import alone takes many seconds on a busy machine."""


def run(folder, *todo):
    """Starts two processes as torchrun does, but without its own process; what they ended with, and what they wrote."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for rank in range(2):
        numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
        env = {**os.environ, **{name: str(number) for name, number in numbers.items()}, "MASTER_ADDR": "127.0.0.1"}
        command = [sys.executable, dummy.__file__, str(folder), *todo]
        started.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    try:
        texts = [process.communicate(timeout=TIMEOUT_S) for process in started]
    finally:
        for process in started:
            process.kill()
    return [process.returncode for process in started], [out + err for out, err in texts]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Folder and output of two processes that trained whatever can be trained one after the other."""
    folder = tmp_path_factory.mktemp("two")
    codes, texts = run(folder, "alike", "whole", "halves", "stop")
    assert codes == [0, 0], "\n".join(texts)
    return folder, texts


def last(folder):
    return read_checkpoint(checkpoints_in(folder)[-1])


def weights(data):
    parts = (data["actor_state_dict"], data["critic_state_dict"])
    return {f"{number}.{name}": tensor for number, part in enumerate(parts) for name, tensor in part.items()}


def names(folder):
    return [path.name for path in checkpoints_in(folder)]


@pytest.mark.slow
def test_two_processes_learn_what_one_learns_from_all_envs(trained, tmp_path):
    dummy.train(tmp_path, "alike")
    two = last(trained[0] / "alike")
    one, both = weights(last(tmp_path / "alike")), weights(two)
    assert one.keys() == both.keys()
    for name, weight in one.items():
        torch.testing.assert_close(both[name], weight, atol=1e-5, rtol=0.0, msg=name)
    first = weights(read_checkpoint(trained[0] / "alike" / "model_0.pt"))
    # else it shows nothing
    assert max((both[name] - weight).abs().max().item() for name, weight in first.items()) > 1e-3
    state = two["infos"]["resume"]
    assert state["timesteps"] == dummy.ITERATIONS * 4 * dummy.ENVS


@pytest.mark.slow
def test_resuming_changes_nothing(trained, tmp_path):
    folder, texts = trained
    state = read_checkpoint(folder / "halves" / f"model_{dummy.ITERATIONS - 1}.pt")["infos"]["resume"]
    assert state["carried"]["fault_episode"].tolist() == list(range(dummy.ENVS))  # those of both
    assert not torch.equal(state["random"]["torch"], state["random_of_others"][0]["torch"])
    for rank, text in enumerate(texts):
        assert f"goes on: {list(range(8 * rank, 8 * rank + 8))}" in text
    one = dummy.runner_of(tmp_path, "whole")  # a single process resumes the run of two, too
    one.resume(str(folder / "whole" / "model_5.pt"))
    assert one.env_counters["fault_episode"].tolist() == list(range(dummy.ENVS))
    whole, halves = weights(last(folder / "whole")), weights(last(folder / "halves"))
    assert names(folder / "halves") == names(folder / "whole") == [f"model_{number}.pt" for number in range(6)]
    for name, weight in whole.items():
        assert torch.equal(halves[name], weight), name


@pytest.mark.slow
def test_a_signal_to_one_process_stops_all_with_one_checkpoint_of_networks_that_are_equal(trained):
    folder, texts = trained
    assert all(f"stopped: {int(signal.SIGTERM)} model_2.pt" in text for text in texts)
    assert names(folder / "stop") == ["model_0.pt", "model_1.pt", "model_2.pt"]
    # both have the same networks, and the first writes them
    for what in ("alike", "whole", "halves", "stop"):
        mine, other = last(folder / what)["infos"]["resume"]["weights"]  # digests
        assert mine == other, what
        assert len(list((folder / what).glob("events.*"))) == (2 if what == "halves" else 1)
    assert "saved model_0.pt" in texts[0]
    assert "saved" not in texts[1]


@pytest.mark.slow
def test_the_death_of_one_process_ends_the_others_and_keeps_the_checkpoint(tmp_path):
    codes, texts = run(tmp_path, "die")  # ends long before distributed.TIMEOUT is at its end
    assert codes == [1, -signal.SIGKILL], texts
    assert "another process of the run is gone" in texts[0]
    assert "Traceback" not in texts[0]
    assert names(tmp_path / "die") == ["model_0.pt", "model_1.pt"]
    assert read_checkpoint(tmp_path / "die" / "model_1.pt")["iter"] == 1


JOINTS = ("a", "b", "c")


def faults(num_envs, ranks):
    severity = {"rom": {"uniform": [0.1, 0.3]}, "effort": 1.0, "velocity": 1.0}
    schedule = FaultSchedule(JOINTS, severity=severity, num_joints=(1, 3))
    state = FaultState(schedule, num_envs, ranks.first_env(num_envs))
    for _ in range(3):
        state.reset(torch.arange(num_envs))
    return state


def test_two_processes_draw_the_faults_of_one_with_all_their_envs():
    whole = faults(32, Ranks())
    halves = [faults(16, Ranks(rank, rank, 2)) for rank in range(2)]
    for name in ("scenario", "joints", "onset", "severity"):
        parts = [getattr(half.plan, name) for half in halves]
        assert torch.equal(torch.cat(parts), getattr(whole.plan, name)), name
        assert not torch.equal(*parts), name
    assert torch.equal(torch.cat([half.uniform("noise") for half in halves]), whole.uniform("noise"))


def test_every_process_has_a_seed_of_its_own():
    seeds = [Ranks(rank, rank, 64).seed(seed) for seed in range(100) for rank in range(64)]
    assert len(set(seeds)) == len(seeds)
    assert Ranks(0, 0, 64).seed(42) == Ranks().seed(42) == 42
    assert max(Ranks(63, 7, 64).seed(2**32 - 1), 0) < 2**32


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE is 'two', no number"),
        ({"WORLD_SIZE": "²"}, "WORLD_SIZE is '²', no number"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2, LOCAL_RANK=0, WORLD_SIZE=2 contradict each other"),
        ({"RANK": "0", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}, "contradict each other"),
    ],
)
def test_contradictory_variables_are_refused(monkeypatch, variables, line):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UmcError, match=line):
        ranks_from_env()


def test_a_child_that_is_no_rank_has_none_of_their_variables():
    env = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "x", "HOME": "/h"}
    assert without_ranks(env) == {"HOME": "/h"}


@pytest.mark.parametrize(
    ("gpus", "local_rank", "asked", "device"),
    [
        (0, 1, None, "cpu"),
        (4, 3, None, "cuda:3"),
        (4, 2, "cuda", "cuda:2"),
        (1, 3, None, "cuda:0"),  # the one that a scheduler shows it
        (4, 1, "cpu", "cpu"),
        (2, 3, None, UmcError("process 3 of this machine has no GPU")),
        (8, 3, "cuda:1", UmcError("each process takes the GPU of its number")),
    ],
)
def test_every_process_takes_the_gpu_of_its_number(monkeypatch, gpus, local_rank, asked, device):
    several(monkeypatch, local_rank)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    if isinstance(device, UmcError):
        with pytest.raises(UmcError, match=str(device)):
            pick_device(asked)
    else:
        assert pick_device(asked) == device


def test_a_gpu_with_too_old_a_driver_is_not_used(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)  # as NVML counts
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device(None) == "cpu"
    assert LocalExecutor(None, None).gpus == 0
    with pytest.raises(UmcError, match="finds no GPU, or only an older driver"):
        pick_device("cuda")


@pytest.mark.parametrize(
    ("device", "others", "refused"),
    [("cuda:0", ["a"], True), ("cuda:0", ["b", "b"], True), ("cuda:0", ["b", None], False), ("cpu", [None], False)],
)
def test_processes_that_share_a_gpu_are_refused(monkeypatch, device, others, refused):
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid="a"))
    monkeypatch.setattr(distributed, "all_gather", lambda mine: [mine, *others])
    several(monkeypatch, 0)
    record = SimpleNamespace(path=Path("f"))
    chosen = SimpleNamespace(device=device, folder=Path("run"), start_from=None, record=record, env_cfg=record)
    with pytest.raises(UmcError, match="each needs one of its own") if refused else contextlib.nullcontext():
        broadcast_plan(cast(Plan, chosen))


def several(monkeypatch, rank):
    for name, number in (("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", 8)):
        monkeypatch.setenv(name, str(number))


def test_several_processes_and_the_flag_go_together(monkeypatch, capfd):
    assert main(["train", "--task", "UMC-A1-Stage1", "--distributed"]) == 2
    assert "--distributed needs a launcher" in capfd.readouterr().err
    several(monkeypatch, 0)
    assert main(["train", "--task", "UMC-A1-Stage1"]) == 2
    assert "8 processes were started (WORLD_SIZE); add --distributed" in capfd.readouterr().err


@pytest.mark.parametrize(("store", "code"), [(None, 2), ("False", 2), ("True", 130)])
def test_a_missing_stage_1_is_trained_on_the_way_by_torchrun_only(monkeypatch, capfd, tmp_path, store, code):
    def run_umc(*_):
        raise ChildFailed("train", 130)

    monkeypatch.chdir(tmp_path)
    several(monkeypatch, 0)
    monkeypatch.setattr(train, "connect", lambda *_: None)
    monkeypatch.setattr("umc.training.plan.needs_stage1", lambda _: True)
    monkeypatch.setattr(train, "run_umc", run_umc)
    monkeypatch.delenv(distributed.AGENT_STORE, raising=False)
    if store is not None:
        monkeypatch.setenv(distributed.AGENT_STORE, store)
    argv = ["--task", "UMC-A1-Stage2", "--agent", "mlp", "--device", "cpu", "--distributed"]
    assert main(["train", *argv]) == code
    assert ("train Stage 1 first, or start with torchrun" in capfd.readouterr().err) == (code == 2)


def test_a_mistake_of_one_process_is_raised_in_all(monkeypatch):
    monkeypatch.setattr(distributed, "connected", lambda: True)
    monkeypatch.setattr(distributed, "all_gather", lambda mine: [mine, None, "no GPU"])
    with pytest.raises(distributed.SharedError, match=r"no GPU \(process 2\)"):
        distributed.run_on_all_ranks(lambda: 1)


def test_only_errors_about_other_ranks_become_rank_lost_errors(monkeypatch):
    several(monkeypatch, 0)
    with pytest.raises(RuntimeError, match="shapes"), distributed.catch_lost_ranks():
        raise RuntimeError("shapes cannot be multiplied")
    with pytest.raises(distributed.RankLostError), distributed.catch_lost_ranks():
        raise RuntimeError("[gloo/transport/tcp/pair.cc:538] Connection closed by peer [127.0.0.1]:34567")
