# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A sweep of trainings: its runs; that all are trained unattended, that it goes on where it stopped, and its table."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml
from umc.training import train as launch
from umc.training.sweep import parse_sweep, run_sweep, trainings_of
from umc.utils.config import read_overrides, read_sweep_file
from umc.utils.errors import UmcError
from umc.utils.process import lock_folder

DUMMY = Path(__file__).parents[1] / "support" / "dummy_train.py"
STAGE1 = ["--task", "UMC-A1-Stage1", "--agent", "mlp"]
STAGE2 = ["--task", "UMC-A1-Stage2", "--agent", "mlp"]

DRIVER = """
import sys
import umc.utils.process
from umc.training.sweep import run_sweep
umc.utils.process.UMC = (sys.argv[1],)
sys.exit(run_sweep(sys.argv[2:]))
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """`sweep(content, *argv)` runs a sweep whose trainings are `dummy_train.py`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("umc.utils.process.UMC", (str(DUMMY),))

    def run(content, *argv):
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"name": "mine", **content}))
        return run_sweep(["--sweep", "mine.yaml", *argv])

    return run


def records(folder):
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("logs/*/*/*/run.json"))]
    return sorted(found, key=lambda record: (record["task"], record["seed"], record["overrides"]))


def wait_until_one_runs(folder):
    deadline = time.monotonic() + 120
    while not any('"running"' in path.read_text() for path in folder.glob("logs/*/*/*/run.json")):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)


def jobs(name, *changes, task="UMC-A1-Stage2", agent="mlp", common=(), checkpoint=None):
    options = argparse.Namespace(task=task, agent=agent, rl_library=None, checkpoint=checkpoint)
    return trainings_of(read_sweep_file(name, read_overrides(changes, "sweep")), options, list(common))


def test_an_ablation_trains_one_stage_1_for_each_seed():
    all_jobs = jobs("ablation_ratio", "sweep.network=mlp", "sweep.seeds=[1,2]")
    first, rest = all_jobs[:2], all_jobs[2:]
    assert [(job.task, job.agent, job.seed) for job in first] == [("UMC-A1-Stage1", "mlp", seed) for seed in (1, 2)]
    assert len(rest) == 7 * 2
    assert all(job.after == first[job.seed - 1] for job in rest)
    assert len({job.key for job in all_jobs}) == len(all_jobs)


def test_what_starts_from_nothing_waits_for_nothing():
    alone = jobs("ablation_paradigm", "sweep.network=mlp", "sweep.agents=[NETWORK_one_stage]")
    assert [job.after for job in alone] == [None]
    told = jobs("seeds", checkpoint="pretrained")
    assert [(job.seed, job.after, job.checkpoint) for job in told] == [(seed, None, "pretrained") for seed in (1, 2, 3)]


def test_overrides_are_combined_and_reach_stage_1_where_they_hold():
    rates, ratios = "agent.algorithm.learning_rate", "env.events.faults.params.num_joints"
    all_jobs = jobs(
        "seeds", "sweep.seeds=[1]", f"sweep.overrides.{rates}=[0.001,0.0003]", f"sweep.overrides.{ratios}=[[1,2],[2,4]]"
    )
    first = [job for job in all_jobs if job.task.endswith("1")]
    assert [job.tokens for job in first] == [[f"{rates}=0.001"], [f"{rates}=0.0003"]]  # no faults there
    assert [job.tokens for job in all_jobs[2:]] == [
        [f"{rates}={rate}", f"{ratios}={joints}"] for rate in (0.001, 0.0003) for joints in ("[1,2]", "[2,4]")
    ]


def test_a_longer_run_or_another_device_is_the_same_run():
    names = {
        jobs("seeds", common=common)[-1].key
        for common in ([], ["--max_iterations", "10"], ["--max_iterations=20", "--device", "cpu"])
    }
    assert len(names) == 1
    assert jobs("seeds", common=["--num_envs", "8"])[-1].key not in names


def test_everything_is_trained_once_and_may_be_prolonged(sweep, tmp_path, capsys):
    assert sweep({"seeds": [3, 4]}, *STAGE2, "--jobs", "2", "--num_envs", "8") == 0
    out = capsys.readouterr().out
    first, second = records(tmp_path)[:2], records(tmp_path)[2:]
    assert [record["seed"] for record in first + second] == [3, 4, 3, 4]
    starts = [Path(record["start"]) for record in second]
    assert [json.loads((path.parent / "run.json").read_text())["seed"] for path in starts] == [3, 4]
    assert out.count("| finished") == 4
    assert "3.00" in out  # the reward of seed 3
    assert "compare them: umc evaluate --checkpoint logs/rsl_rl/umc_a1_mlp_stage2/" in out
    assert (tmp_path / "logs/sweeps/mine_UMC-A1-Stage2/table.md").read_text() in out

    assert sweep({"seeds": [3, 4]}, *STAGE2, "--num_envs", "8") == 0
    assert "sweep of 4 trainings, 4 are there already" in capsys.readouterr().out
    assert sweep({"seeds": [3, 4, 5]}, *STAGE2, "--num_envs", "8", "--max_iterations", "3") == 0
    assert "resuming mlp, Stage 1, seed 3" in capsys.readouterr().out
    assert [(record["max_iterations"], record["starts"]) for record in records(tmp_path)] == [
        (3, 2),
        (3, 2),
        (3, 1),
    ] * 2


def test_one_that_fails_does_not_stop_the_others(sweep, tmp_path, capsys):
    content = {"seeds": [1], "overrides": {"agent.fail": [0, 1]}}
    assert sweep(content, *STAGE2) == 1
    out = capsys.readouterr().out
    assert "ended with 1: mlp, Stage 1, seed 1, agent.fail=1" in out
    assert "the robot has left the room" in out
    assert "left out mlp, Stage 2, seed 1, agent.fail=1: its Stage 1 failed" in out
    state = json.loads((tmp_path / "logs/sweeps/mine_UMC-A1-Stage2/sweep.json").read_text())
    assert [row["status"] for row in state["trainings"]] == ["finished", "failed", "finished", "failed"]


def test_ctrl_c_lets_trainings_save_and_the_same_command_goes_on(sweep, tmp_path, capsys):
    def stop():
        wait_until_one_runs(tmp_path)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=stop)
    thread.start()
    assert sweep({"seeds": [1, 2]}, *STAGE1, "agent.wait=1") == 143
    thread.join()
    assert signal.getsignal(signal.SIGTERM) == before
    assert "the same command resumes" in capsys.readouterr().out
    assert [record["status"] for record in records(tmp_path)] == ["interrupted"]
    thread = threading.Thread(target=stop)  # the second run waits, too
    thread.start()
    assert sweep({"seeds": [1, 2]}, *STAGE1, "agent.wait=1") == 143
    thread.join()
    assert [record["status"] for record in records(tmp_path)] == ["finished", "interrupted"]


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["--seed", "3"], "--seed does not go with --sweep: give sweep.seeds"),
        (["--resume"], "--resume does not go with --sweep"),
        (["--distributed"], "a run of a sweep is one process"),
        (["--jobs", "0"], "--jobs is 0"),
        (["--jobs", "2", "--ray", "2"], "give one of them"),
        (["--ray_address", "1.2.3.4:1"], "--ray_address needs --ray"),
        (["--checkpoint", "nowhere.pt"], "no checkpoint at nowhere.pt"),
        (["sweep.seeds=3"], "sweep seeds: seeds is 3; input should be a valid list"),
        (["sweep.seeds=[1,1]"], "holds a seed twice"),
        (["sweep.overrides.agent.x=3"], "overrides.agent.x is 3; input should be a valid list"),
        (["sweep.gird=3"], "unknown key gird; did you mean grid?"),
        (["sweep.agents=[lstm]"], "unknown agent lstm"),
        (["--task", "UMC-A1-Stage3"], "unknown task UMC-A1-Stage3"),
    ],
)
def test_what_is_wrong_is_one_line(argv, line, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert launch.main([*STAGE1, "--sweep", "seeds", *argv]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert line in err
    assert err.count("\n") == 1


def test_a_run_that_died_after_its_last_checkpoint_is_not_trained_for_ever(sweep, tmp_path, capsys):
    assert sweep({"seeds": [1]}, *STAGE1) == 0
    (record,) = tmp_path.glob("logs/*/*/*/run.json")
    for status in ("running", "failed"):  # its last word is missing, or it was asked to go on
        record.write_text(json.dumps(json.loads(record.read_text()) | {"status": status}))
        assert sweep({"seeds": [1]}, *STAGE1) == 0
        assert "1 are there already" in capsys.readouterr().out
    assert json.loads(record.read_text())["starts"] == 1


@pytest.mark.slow
def test_killed_it_leaves_no_training_behind_and_the_same_command_goes_on(sweep, tmp_path, capsys):
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"name": "mine", "seeds": [1]}))
    argv = ["--sweep", "mine.yaml", *STAGE1, "agent.wait=1"]
    first = subprocess.Popen([sys.executable, "-c", DRIVER, str(DUMMY), *argv])
    wait_until_one_runs(tmp_path)
    first.kill()
    first.wait()
    # waits until the training has saved, by which it gives the sweep's lock back
    assert sweep({"seeds": [1]}, *STAGE1, "agent.wait=1") == 0
    assert "resuming mlp, Stage 1, seed 1" in capsys.readouterr().out
    assert [(record["status"], record["starts"]) for record in records(tmp_path)] == [("finished", 2)]


def test_a_second_start_of_the_same_sweep_is_refused(sweep, tmp_path, monkeypatch):
    monkeypatch.setattr("umc.utils.process.LOCK_TIMEOUT_S", 0.3)
    with (
        lock_folder(tmp_path / "logs/sweeps/mine_UMC-A1-Stage1", "it"),
        pytest.raises(UmcError, match="another process"),
    ):
        sweep({"seeds": [1]}, *STAGE1)


def test_flags_of_a_sweep_need_one(capsys, tmp_path):
    assert launch.main([*STAGE1, "--jobs", "2"]) == 2
    assert "--jobs is for several trainings; give --sweep, too" in capsys.readouterr().err


def test_tokens_are_shared_out():
    options, common, changes = parse_sweep(
        [*STAGE1, "--sweep", "seeds", "sweep.seeds=[1]", "physics=ovphysx", "--num_envs", "8"]
    )
    assert (options.task, options.sweep) == ("UMC-A1-Stage1", "seeds")
    assert common == ["physics=ovphysx", "--num_envs", "8"]
    assert changes == ["sweep.seeds=[1]"]
