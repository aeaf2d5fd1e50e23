# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The phases of a recipe run one after the other, and its command resumes it wherever it was killed; no simulator."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fresh_policy import write_fresh
from tiny_recipe import PHASES, TINY, written
from umc.rl.checkpoint import checkpoint_info, read_checkpoint, write_checkpoint
from umc.rl.watchdog import STALLED
from umc.training.recipe import read_recipe
from umc.training.recipe_runner import MAX_STALLS, RecipeRun, run_recipe
from umc.utils.errors import UmcError
from umc.utils.process import LAUNCHER, ChildFailed

FAKE = Path(__file__).parents[1] / "support" / "fake_umc.py"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to run in, with `fake_umc.py` for `umc`; that recipes resolve is tested in test_recipes.py."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("umc.training.recipe_runner.check_recipe", lambda _: None)
    monkeypatch.setattr("umc.utils.process.UMC", (str(FAKE),))
    return tmp_path


def calls(folder):
    path = folder / "calls.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def flag(arguments, name):
    return arguments[arguments.index(f"--{name}") + 1]


def test_phases_follow_each_other_and_the_policy_is_evaluated(place, capsys):
    argv = ["--recipe", written(place, evaluation={"num_envs": 24, "overrides": ["protocol.steps=100"]})]
    assert run_recipe(argv) == 0
    out = capsys.readouterr().out
    walk, speed, faults = calls(place)
    assert "--resume" not in walk
    assert "--checkpoint" not in walk
    assert (flag(walk, "max_iterations"), flag(walk, "seed"), flag(walk, "num_envs")) == ("2", "3", "8")
    assert {flag(call, "device") for call in calls(place)} == {"cpu"}
    assert "--resume" in speed
    assert flag(speed, "checkpoint").endswith("model_1.pt")
    assert flag(speed, "max_iterations") == "5"  # its own three after the two before it
    assert speed[-1] == "env.rewards.track_lin_vel.params.std=0.25"
    assert "--resume" not in faults
    assert flag(faults, "checkpoint").endswith("model_4.pt")
    assert (flag(faults, "task"), flag(faults, "num_envs")) == ("UMC-A1-Stage2", "16")
    assert faults[-2:] == ["physics=ovphysx", "env.scene.terrain=flat"]
    assert "[3/3] Stage 2, faults: iteration 4/4: 1,000 env-steps/s; whole recipe 100%, ETA 0:00:00" in out
    assert "evaluate it with: umc evaluate --checkpoint" in out
    state = json.loads((place / "logs" / "recipes" / "tiny_seed3" / "state.json").read_text())
    assert [entry["status"] for entry in state["phases"]] == ["done"] * PHASES

    assert run_recipe([*argv, "--evaluate"]) == 0
    assert len(calls(place)) == PHASES
    assert capsys.readouterr().out.count("done before") == PHASES
    asked = json.loads((place / "asked.json").read_text())
    assert flag(asked, "checkpoint").endswith("_tiny_seed3_phase3/model_3.pt")
    assert (flag(asked, "num_envs"), flag(asked, "device")) == ("24", "cpu")
    assert asked[-2:] == ["physics=ovphysx", "protocol.steps=100"]  # the engine that it was trained on


def test_progress_of_the_whole_recipe(place):
    run = RecipeRun(read_recipe(written(place)), place, "")
    # 2 x 8, 3 x 8 and 4 x 16 envs: half of the last phase is 0.69 of all; 2 iterations of 16 envs are left
    record = {"num_envs": 16, "num_steps_per_env": 24}
    assert run.overall(2, 2, 1000.0, record) == "whole recipe 69%, ETA 0:00:01"
    assert run.overall(1, 2, 1000.0, record).startswith("whole recipe 15%")  # the second goes on with the first's run


def test_every_seed_is_a_training_of_its_own(place):
    stages = {1: [{"iterations": 1}], 2: [{"iterations": 1, "seed": 4}]}
    for seed in ("3", "5"):
        run_recipe(["--recipe", written(place, stages=stages), "--seed", seed])
    assert [flag(call, "seed") for call in calls(place)] == ["3", "4", "5", "4"]  # Stage 2 names its own
    first, second = (flag(call, "checkpoint") for call in calls(place)[1::2])
    assert first != second
    assert "seed5_phase1/" in second


def test_a_changed_recipe_is_refused_unless_restarted(place):
    argv = ["--recipe", written(place)]
    run_recipe(argv)
    longer = {**TINY["stages"], 2: [{"name": "other name", "iterations": 4, "num_envs": 16}, {"iterations": 1}]}
    run_recipe(["--recipe", written(place, stages=longer)])  # what is done is the same: only the new phase
    assert len(calls(place)) == PHASES + 1
    with pytest.raises(UmcError, match=r"has changed since its phase 1 \(Stage 1, walk\) was trained; .*--restart"):
        run_recipe(["--recipe", written(place, num_envs=4)])
    run_recipe(["--recipe", written(place, num_envs=4), "--restart"])
    again = calls(place)[PHASES + 1 :]
    assert len(again) == PHASES
    assert "--resume" not in again[0]
    assert flag(again[0], "run_dir") != flag(calls(place)[0], "run_dir")
    Path(flag(again[2], "checkpoint")).unlink()
    with pytest.raises(UmcError, match=r"model_4\.pt is gone; start over with --restart"):
        run_recipe(["--recipe", written(place, num_envs=4)])


def test_a_failing_phase_ends_the_recipe_with_the_command_that_resumes_it(place, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(place / "scripts" / "train.py")])
    monkeypatch.setenv(LAUNCHER, "./isaaclab.sh")
    with monkeypatch.context() as broken:
        broken.setattr("umc.utils.process.UMC", ("-c", "print('no')\nraise SystemExit(7)\n"))
        with pytest.raises(ChildFailed):
            run_recipe(["--recipe", written(place), "--restart"])
    out = capsys.readouterr().out
    assert "no\n" in out
    assert "resume with: ./isaaclab.sh -p scripts/train.py --recipe " in out
    assert "--restart" not in out
    assert run_recipe(["--recipe", written(place)]) == 0


def test_a_phase_that_hung_is_resumed_at_once(place, capsys, monkeypatch):
    monkeypatch.setenv("FAKE_HANGS_AFTER", "1")  # iterations of each process
    assert run_recipe(["--recipe", written(place)]) == 0
    assert len(calls(place)) == 2 + 3 + 4  # one for each iteration of the three phases
    assert "--resume" in calls(place)[1]
    assert "is done" in capsys.readouterr().out


def test_a_phase_that_hangs_before_its_first_checkpoint_is_given_up(place, capsys, monkeypatch):
    monkeypatch.setenv("FAKE_HANGS_AFTER", "0")
    with pytest.raises(ChildFailed, match=str(STALLED)):
        run_recipe(["--recipe", written(place)])
    assert len(calls(place)) == MAX_STALLS
    assert "resume with: " in capsys.readouterr().out


def test_weights_can_come_from_another_recipe(place):
    """Folded for a baseline, whose network reads no mask and no flag."""
    other = written(place, "other")
    source = {"recipe": other, "stage": 1}
    faults = {1: [], 2: [{"iterations": 1, "from": source}]}
    argv = ["--recipe", written(place, stages=faults)]
    with pytest.raises(UmcError, match=r"Stage 1 of recipe other, which is not done .*--recipe other"):
        run_recipe(argv)
    run_recipe(["--recipe", other])
    run_recipe(argv)
    start = flag(calls(place)[-1], "checkpoint")
    assert start.endswith("other_seed3_phase1/model_4.pt")
    fresh = read_checkpoint(write_fresh(place / "fresh", "UMC-A1-Stage1"))
    write_checkpoint(start, {**fresh, "critic_state_dict": {}})  # fake_umc.py writes empty files
    walk = {1: [{"iterations": 1, "from": {**source, "fold": True}}]}
    run_recipe(["--recipe", written(place, "baseline", agent="nm_mlp", stages=walk)])
    folded = flag(calls(place)[-1], "checkpoint")
    assert checkpoint_info(read_checkpoint(folded), folded).model == "nm_mlp"


def test_a_phase_can_start_a_run_of_its_own_from_the_weights_before_it(place):
    first, second = TINY["stages"][1]
    stages = {1: [first, {**second, "from": "before"}, {"iterations": 1}], 2: []}
    assert run_recipe(["--recipe", written(place, stages=stages, agent="nm_mlp")]) == 0
    _, new, after = calls(place)
    assert "--resume" not in new
    assert flag(new, "checkpoint").endswith("tiny_seed3_phase1/model_1.pt")
    assert flag(new, "max_iterations") == "3"
    assert "env.scene.terrain=flat" in new
    assert "--resume" in after
    assert flag(after, "checkpoint").endswith("tiny_seed3_phase2/model_2.pt")


@pytest.mark.parametrize(
    ("token", "line"),
    [
        ("--num_envs=3", "does not go with --recipe"),
        ("env.scene.terrain=flat", "does not go with --recipe"),
        ("--seed=-1", "--seed is -1; it has to be 0 or more"),
    ],
)
def test_what_a_recipe_sets_itself_is_refused(place, token, line):
    with pytest.raises(UmcError, match=line):
        run_recipe(["--recipe", written(place), token])


DRIVER = """
import sys
import umc.training.recipe_runner as run
import umc.utils.process
umc.utils.process.UMC = (sys.argv[1],)
run.check_recipe = lambda _: None
sys.exit(run.run_recipe(sys.argv[2:]))
"""


def test_a_killed_recipe_resumes_from_its_last_checkpoint(place):
    """kill -9 of the command: its child saves and ends by itself, the same command resumes from that checkpoint."""
    stages = {1: [{"iterations": 2}], 2: [{"iterations": 400}]}
    argv = ["--recipe", written(place, stages=stages)]
    command = [sys.executable, "-c", DRIVER, str(FAKE), *argv]
    slow = {**os.environ, "FAKE_ITERATION_S": "0.1"}
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=slow)
    for line in first.stdout:
        if "iteration 3/400:" in line:
            break
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    second = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert second.returncode == 0, second.stdout + second.stderr
    _, stage2, resumed = calls(place)
    assert flag(stage2, "task") == "UMC-A1-Stage2"
    assert "--resume" in resumed
    number = int(Path(flag(resumed, "checkpoint")).stem.removeprefix("model_"))
    assert 2 <= number < 400
    assert f"resuming after iteration {number + 1}, {400 - number - 1} iterations" in second.stdout
    assert len(list(place.glob("logs/rsl_rl/umc_a1_mlp_stage2/*"))) == 1
    assert second.stdout.count("done before") == 1


def test_two_cannot_work_on_one_recipe(place, monkeypatch):
    monkeypatch.setattr("umc.utils.process.LOCK_TIMEOUT_S", 0.3)
    stages = {1: [{"iterations": 400}], 2: []}
    argv = ["--recipe", written(place, stages=stages)]
    slow = {**os.environ, "FAKE_ITERATION_S": "0.1"}
    first = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(FAKE), *argv], stdout=subprocess.PIPE, text=True, env=slow
    )
    for line in first.stdout:
        if "iteration 1/400" in line:
            break
    with pytest.raises(UmcError, match="another process works on"):
        run_recipe(argv)
    first.send_signal(signal.SIGTERM)  # passed on to the child, which saves
    out = first.communicate(timeout=60)[0]
    assert first.returncode != 0
    assert "resume with: " in out
    deadline = time.monotonic() + 60
    while not (files := sorted(place.glob("logs/rsl_rl/*/*/model_*.pt"))) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert files
