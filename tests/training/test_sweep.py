# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A sweep of trainings: its runs; that all are trained unattended, that it goes on where it stopped, and its table."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
import torch
import yaml
from fresh_policy import write_fresh
from umc.training.arguments import DEFAULT_AGENT
from umc.training.sweep import check_trainings, parse_sweep, run_sweep, trainings_of
from umc.training.sweep_file import read_sweep_file
from umc.utils.config import read_overrides
from umc.utils.errors import UmcError

STAGE1 = ["--task", "UMC-A1-Stage1", "--agent", "mlp"]
STAGE2 = ["--task", "UMC-A1-Stage2", "--agent", "mlp"]


@pytest.fixture
def sweep(tmp_path, fake_umc):
    """`sweep(content, *argv)` runs a sweep whose trainings are `fake_umc.py`, one at once."""

    def run(content, *argv):
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"name": "mine", **content}))
        return run_sweep(["--sweep", "mine.yaml", "--jobs", "1", *argv])

    return run


def records(folder):
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("logs/*/*/*/run.json"))]
    return sorted(found, key=lambda record: (record["task"], record["seed"], record["overrides"]))


def wait_until_it_runs(folder, seed=1):
    deadline = time.monotonic() + 120
    while ("running", seed) not in [(record["status"], record["seed"]) for record in records(folder)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)


def trainings(name, *argv, task="UMC-A1-Stage2"):
    agent = [] if "ablation" in name else ["--agent", "mlp"]
    options, common, changes = parse_sweep(["--sweep", name, "--task", task, *agent, *argv])
    return trainings_of(read_sweep_file(name, read_overrides(changes, "sweep")), options, common)


def test_without_an_agent_the_default_one_is_trained():
    options, common, _ = parse_sweep(["--sweep", "seeds", "--task", "UMC-A1-Stage1"])
    found = trainings_of(read_sweep_file("seeds", {}), options, common)
    assert {one.agent for one in found} == {DEFAULT_AGENT}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["ablation_ratio", "--agent", "mlp"], "names its agents; give sweep.network=mlp"),
        (["ablation_ratio", "sweep.agents=[mlp,mlp]"], "twice"),
        (["seeds", "sweep.overrides.agent.algorithm.gamma=[0.99,0.99]"], "gamma=0.99 twice"),
    ],
)
def test_a_choice_that_would_be_ignored_is_refused(argv, words):
    with pytest.raises(UmcError, match=re.escape(words)):
        trainings(*argv)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["seeds", "agent.seed=7"], r"agent.seed does not go with --sweep: give sweep.seeds=\[1,2,3\]"),
        (["seeds", "env.events.faults.params.num_joints=[5,2]"], "num_joints"),
        (["ablation_paradigm", "sweep.network=mlp", "--max_iterations", "3"], "cannot hold the 4 stages of mlp_curric"),
    ],
)
def test_what_a_training_would_refuse_is_refused_before_the_first_is_trained(argv, words):
    with pytest.raises(UmcError, match=words):
        check_trainings(trainings(*argv))


def test_weights_that_do_not_fit_are_refused_before_the_first_is_trained(tmp_path):
    path = write_fresh(tmp_path, "UMC-G1-Stage1")
    with pytest.raises(UmcError, match="g1"):
        check_trainings(trainings("seeds", "--checkpoint", str(path)))


def test_a_machine_that_is_too_small_is_said_before_the_first_is_trained_unless_others_train(monkeypatch):
    monkeypatch.setattr("umc.tasks.memory.available_bytes", lambda: 1.0e9)
    argv = ["seeds", "env.scene.num_envs=7400"]
    with pytest.raises(UmcError, match="7400 envs need about"):
        check_trainings(trainings(*argv))
    check_trainings(trainings(*argv, "--ray", "2"))


def test_code_of_a_teacher_runs_with_consent_only(tmp_path):
    torch.jit.script(torch.nn.Linear(47, 12)).save(tmp_path / "motion.pt")
    argv = ["seeds", "--teacher", str(tmp_path / "motion.pt")]
    with pytest.raises(UmcError, match=r"is code \(TorchScript\); add --trust"):
        check_trainings(trainings(*argv, task="UMC-G1-Stage2"))
    trusted = trainings(*argv, "--trust", task="UMC-G1-Stage2")
    check_trainings(trusted)
    assert "--trust" in trusted[0].arguments()


def test_an_ablation_trains_one_stage_1_for_each_seed():
    found = trainings("ablation_ratio", "sweep.network=mlp", "sweep.seeds=[1,2]")
    first, rest = found[:2], found[2:]
    assert [(one.task, one.agent, one.seed) for one in first] == [("UMC-A1-Stage1", "mlp", seed) for seed in (1, 2)]
    assert len(rest) == 7 * 2
    assert all(one.after == first[one.seed - 1] for one in rest)
    assert len({one.key for one in found}) == len(found)


def test_no_stage_1_is_trained_for_runs_that_start_from_nothing_or_from_a_checkpoint():
    alone = trainings("ablation_paradigm", "sweep.network=mlp", "sweep.agents=[NETWORK_one_stage]")
    assert [one.after for one in alone] == [None]
    given = trainings("seeds", "--checkpoint", "pretrained")
    assert [(one.seed, one.after, one.arguments()[-1]) for one in given] == [(n, None, "pretrained") for n in (1, 2, 3)]


def test_every_seed_imitates_a_teacher_without_a_stage_1(tmp_path):
    walks, tolerates = (str(write_fresh(tmp_path / task, task)) for task in ("UMC-A1-Stage1", "UMC-A1-Stage2"))
    (alone,) = trainings("seeds", "sweep.seeds=[1]", "--teacher", tolerates)
    assert (alone.after, "--teacher" in alone.flags()) == (None, True)
    assert alone.key != trainings("seeds", "sweep.seeds=[1]", "--checkpoint", "pretrained")[0].key
    check_trainings([alone])
    with pytest.raises(UmcError, match="was trained without faults"):
        check_trainings(trainings("seeds", "sweep.seeds=[1]", "--teacher", walks))
    with pytest.raises(UmcError, match=r"env\.actions\.joint_pos\.scale=0\.4"):
        check_trainings(
            trainings("seeds", "sweep.seeds=[1]", "--teacher", tolerates, "env.actions.joint_pos.scale=0.4")
        )


def test_overrides_are_combined_and_reach_stage_1_where_they_hold():
    rates, joints = "agent.algorithm.learning_rate", "env.events.faults.params.num_joints"
    lists = (f"sweep.overrides.{rates}=[0.001,0.0003]", f"sweep.overrides.{joints}=[[1,2],[2,4]]")
    found = trainings("seeds", "sweep.seeds=[1]", *lists, "physics=ovphysx", "--num_envs", "8")
    assert all(one.common == ("physics=ovphysx", "--num_envs", "8") for one in found)
    assert [one.tokens for one in found] == [
        *([f"{rates}={rate}"] for rate in (0.001, 0.0003)),  # no faults in Stage 1
        *([f"{rates}={rate}", f"{joints}={some}"] for rate in (0.001, 0.0003) for some in ("[1,2]", "[2,4]")),
    ]


def test_only_overrides_that_differ_are_in_the_table_and_a_further_value_keeps_what_is_trained():
    rate = "agent.algorithm.learning_rate"
    alone = trainings("seeds", "sweep.seeds=[1]", f"sweep.overrides.{rate}=[0.001]")
    two = trainings("seeds", "sweep.seeds=[1]", f"sweep.overrides.{rate}=[0.001,0.0003]")
    assert [one.label for one in alone] == ["mlp, Stage 1, seed 1", "mlp, Stage 2, seed 1"]
    assert two[2].label == f"mlp, Stage 2, seed 1, {rate}=0.001"
    assert (alone[1].key, alone[1].tokens) == (two[2].key, [f"{rate}=0.001"])


def test_the_gpu_of_a_cluster_is_not_looked_for_here(monkeypatch):
    monkeypatch.setattr("umc.tasks.task_cfg.num_gpus", lambda: 0)
    argv = ["--device", "cuda", "--task", "UMC-A1-Stage1", "--agent", "mlp"]
    with pytest.raises(UmcError, match="no device cuda on this machine"):
        check_trainings(trainings("seeds", *argv))
    check_trainings(trainings("seeds", *argv, "--ray", "4"))


def test_a_longer_run_or_another_device_is_the_same_run():
    same = ([], ["--max_iterations", "10"], ["--max_iterations=20", "--device", "cpu"])
    keys = {trainings("seeds", *argv)[-1].key for argv in same}
    assert len(keys) == 1
    assert trainings("seeds", "--num_envs", "8")[-1].key not in keys


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
    assert (tmp_path / "logs/sweeps/mine_UMC-A1-Stage2_mlp/table.md").read_text() in out

    assert sweep({"seeds": [3, 4]}, *STAGE2, "--num_envs", "8") == 0
    assert "sweep of 4 trainings, 4 are there already" in capsys.readouterr().out
    assert sweep({"seeds": [3, 4, 5]}, *STAGE2, "--num_envs", "8", "--max_iterations", "3") == 0
    out = capsys.readouterr().out
    assert "resuming mlp, Stage 2, seed 3" in out
    kept = ", ".join(f"mlp, Stage 1, seed {seed}: 2 iterations" for seed in (3, 4))
    assert f"not prolonged, since Stage 2 started from it: {kept}; Stage 1 of new seeds is longer" in out
    expected = [(2, 1), (2, 1), (3, 1), (3, 2), (3, 2), (3, 1)]
    assert [(record["max_iterations"], len(record["starts"])) for record in records(tmp_path)] == expected


def test_stage_2_is_prolonged_without_its_stage_1(sweep, tmp_path, capsys):
    assert sweep({"seeds": [3]}, *STAGE2) == 0
    assert sweep({"seeds": [3]}, *STAGE2, "--max_iterations", "3") == 0
    out = capsys.readouterr().out
    assert "sweep of 2 trainings, 1 are there already" in out
    assert "not prolonged" not in out
    assert [record["max_iterations"] for record in records(tmp_path)] == [2, 3]


def test_a_stage_2_that_is_added_starts_from_the_stage_1_of_those_that_have_started(sweep, tmp_path, capsys):
    content = {"seeds": [1], "overrides": {"env.events.faults.params.num_joints": [[1, 2]]}}
    assert sweep(content, *STAGE2) == 0
    content["overrides"]["env.events.faults.params.num_joints"].append([2, 4])
    assert sweep(content, *STAGE2, "--max_iterations", "3", "--jobs", "2") == 0
    assert (
        "not prolonged, since Stage 2 started from it: mlp, Stage 1, seed 1: 2 iterations\n" in capsys.readouterr().out
    )
    assert [record["max_iterations"] for record in records(tmp_path)] == [2, 3, 3]


@pytest.mark.parametrize("status", [None, "finished", "running"])
def test_a_sweep_starts_from_the_folder_of_a_run_that_has_ended(tmp_path, status):
    path = write_fresh(tmp_path / "run", "UMC-A1-Stage1")
    if status is not None:
        record = {"task": "UMC-A1-Stage1", "agent": "mlp", "seed": 1, "overrides": [], "status": status}
        (path.parent / "run.json").write_text(json.dumps(record))
    argv = ["--sweep", "seeds", *STAGE2, "--checkpoint"]
    if status == "running":
        with pytest.raises(UmcError, match=rf"of a run that has not finished.* such as {path}"):
            parse_sweep([*argv, str(path.parent)])
    else:
        assert parse_sweep([*argv, str(path.parent)])[0].checkpoint == str(path)
    assert parse_sweep([*argv, str(path)])[0].checkpoint == str(path)


def test_one_that_fails_does_not_stop_the_others(sweep, tmp_path, capsys):
    content = {"seeds": [1], "overrides": {"agent.fail": [0, 1]}}
    assert sweep(content, *STAGE2) == 1
    out = capsys.readouterr().out
    assert "ended with 1: mlp, Stage 1, seed 1, agent.fail=1" in out
    assert "the robot has left the room" in out
    assert "left out mlp, Stage 2, seed 1, agent.fail=1: its Stage 1 failed" in out
    state = json.loads((tmp_path / "logs/sweeps/mine_UMC-A1-Stage2_mlp/sweep.json").read_text())
    assert [row["status"] for row in state["trainings"]] == ["finished", "failed", "finished", "failed"]


def test_ctrl_c_and_sigterm_let_trainings_save_and_the_same_command_goes_on(sweep, tmp_path, capsys):
    def stop(seed, signum):
        wait_until_it_runs(tmp_path, seed)
        signal.raise_signal(signum)

    before = signal.getsignal(signal.SIGTERM)
    for seed, signum, statuses in (
        (1, signal.SIGINT, ["interrupted"]),
        (2, signal.SIGTERM, ["finished", "interrupted"]),  # the first resumes and finishes
    ):
        thread = threading.Thread(target=stop, args=[seed, signum])
        thread.start()
        assert sweep({"seeds": [1, 2]}, *STAGE1, "--jobs", "1", "agent.wait=1") == 128 + signum
        thread.join()
        assert signal.getsignal(signal.SIGTERM) == before
        assert "the same command resumes" in capsys.readouterr().out
        assert [record["status"] for record in records(tmp_path)] == statuses


def test_a_run_that_died_after_its_last_checkpoint_is_not_trained_for_ever(sweep, tmp_path, capsys):
    assert sweep({"seeds": [1]}, *STAGE1) == 0
    (record,) = tmp_path.glob("logs/*/*/*/run.json")
    for status in ("running", "failed"):  # its last word is missing, or it was asked to go on
        record.write_text(json.dumps(json.loads(record.read_text()) | {"status": status}))
        assert sweep({"seeds": [1]}, *STAGE1) == 0
        assert "1 are there already" in capsys.readouterr().out
    assert json.loads(record.read_text())["starts"] == [{}]
    record.write_text(json.dumps(json.loads(record.read_text()) | {"max_iterations": None}))
    assert sweep({"seeds": [1]}, *STAGE1) == 0  # the training itself would say what is missing
    assert "resuming mlp, Stage 1, seed 1" in capsys.readouterr().out


@pytest.mark.slow
def test_killed_it_leaves_no_training_behind_and_the_same_command_goes_on(fake_umc, sweep, tmp_path, capsys):
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"name": "mine", "seeds": [1]}))
    argv = ["--sweep", "mine.yaml", *STAGE1, "agent.wait=1"]
    first = subprocess.Popen([*fake_umc, *argv])
    wait_until_it_runs(tmp_path)
    first.kill()
    first.wait()
    # waits until the training has saved, by which it gives the sweep's lock back
    assert sweep({"seeds": [1]}, *STAGE1, "agent.wait=1") == 0
    assert "resuming mlp, Stage 1, seed 1" in capsys.readouterr().out
    assert [(record["status"], len(record["starts"])) for record in records(tmp_path)] == [("finished", 2)]
