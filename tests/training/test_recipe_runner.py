# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A recipe's phases follow each other, and a run of it goes on wherever it was killed; no simulator."""

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
    """A folder to run in, and recipes that are taken to resolve: that is tested above."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("umc.training.recipe_runner.check_recipe", lambda _: None)
    monkeypatch.setattr("umc.utils.process.UMC", (str(FAKE),))
    return tmp_path


def calls(folder):
    path = folder / "calls.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def flag(arguments, name):
    return arguments[arguments.index(f"--{name}") + 1]


def test_phases_follow_each_other_and_are_not_repeated(place, capsys):
    argv = ["--recipe", written(place)]
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
    assert "recipe tiny is done" in out
    assert "evaluate it with: umc evaluate --checkpoint" in out
    state = json.loads((place / "logs" / "recipes" / "tiny_seed3" / "state.json").read_text())
    assert [entry["status"] for entry in state["phases"]] == ["done"] * PHASES

    assert run_recipe(argv) == 0
    assert len(calls(place)) == PHASES
    assert capsys.readouterr().out.count("done before") == PHASES
    # another seed is another training
    assert run_recipe([*argv, "--seed", "4"]) == 0
    assert len(calls(place)) == 2 * PHASES
    assert {flag(call, "seed") for call in calls(place)[PHASES:]} == {"4"}


def test_progress_of_the_whole_recipe(place):
    run = RecipeRun(read_recipe(written(place)), place, "")
    # 2 x 8, 3 x 8 and 4 x 16 envs: half of the last phase is 0.69 of all; 2 iterations of 16 envs are left
    record = {"num_envs": 16, "num_steps_per_env": 24}
    assert run.overall(2, 2, 1000.0, record) == "whole recipe 69%, ETA 0:00:01"
    assert run.overall(1, 2, 1000.0, record).startswith("whole recipe 15%")  # the second goes on with the first's run


def test_a_phase_with_a_seed_of_its_own_is_trained_for_every_seed_of_the_recipe(place):
    stages = {1: [{"iterations": 2}], 2: [{"iterations": 1, "seed": 4}, {"iterations": 1}]}
    argv = ["--recipe", written(place, stages=stages)]
    for number, seed in enumerate(("3", "4", "5"), start=1):
        assert run_recipe([*argv, "--seed", seed]) == 0
        assert len(calls(place)) == number * PHASES
    walks, faults = calls(place)[::PHASES], calls(place)[1::PHASES]
    assert [flag(call, "seed") for call in walks] == ["3", "4", "5"]
    assert [flag(call, "seed") for call in faults] == ["4", "4", "4"]
    starts = [flag(call, "checkpoint") for call in faults]
    assert len(set(starts)) == 3
    assert all("_phase1/" in start for start in starts)


def test_a_changed_recipe_is_not_gone_on_with_by_mistake(place):
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
    assert flag(again[0], "run_dir") not in {flag(call, "run_dir") for call in calls(place)[:1]}


def test_a_failing_phase_ends_the_recipe_and_says_how_to_go_on(place, capsys, monkeypatch):
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


def test_a_phase_that_hung_is_gone_on_with_at_once(place, capsys, monkeypatch):
    monkeypatch.setenv("FAKE_HANGS_AFTER", "1")  # iterations of each process
    assert run_recipe(["--recipe", written(place)]) == 0
    assert len(calls(place)) == 2 + 3 + 4  # one for each iteration of the three phases
    assert "--resume" in calls(place)[1]
    assert "is done" in capsys.readouterr().out


def test_a_phase_that_hangs_before_it_gets_on_is_given_up(place, capsys, monkeypatch):
    monkeypatch.setenv("FAKE_HANGS_AFTER", "0")
    with pytest.raises(ChildFailed, match=str(STALLED)):
        run_recipe(["--recipe", written(place)])
    assert len(calls(place)) == MAX_STALLS
    assert "resume with: " in capsys.readouterr().out


def test_weights_can_come_from_another_recipe(place):
    other = written(place, "other")
    stages = {1: [], 2: [{"iterations": 1, "from": {"recipe": other, "stage": 1}}]}
    argv = ["--recipe", written(place, stages=stages)]
    with pytest.raises(UmcError, match=r"Stage 1 of recipe other, which is not done .*--recipe other"):
        run_recipe(argv)
    run_recipe(["--recipe", other])
    run_recipe(argv)
    assert flag(calls(place)[-1], "checkpoint").endswith("other_seed3_phase1/model_4.pt")


def test_a_phase_can_take_the_weights_before_it_and_begin_anew(place):
    first, second = TINY["stages"][1]
    stages = {1: [first, {**second, "from": "before"}, {"iterations": 1}], 2: []}
    assert run_recipe(["--recipe", written(place, stages=stages, agent="nm_mlp")]) == 0
    _, anew, after = calls(place)
    assert "--resume" not in anew
    assert flag(anew, "checkpoint").endswith("tiny_seed3_phase1/model_1.pt")
    assert flag(anew, "max_iterations") == "3"
    assert "env.scene.terrain=flat" in anew
    assert "--resume" in after
    assert flag(after, "checkpoint").endswith("tiny_seed3_phase2/model_2.pt")


@pytest.mark.parametrize("token", ["--num_envs=3", "env.scene.terrain=flat", "--task"])
def test_a_recipe_says_the_rest_itself(place, token):
    with pytest.raises(UmcError, match="does not go with --recipe"):
        run_recipe(["--recipe", written(place), token])


DRIVER = """
import sys
import umc.training.recipe_runner as run
import umc.utils.process
umc.utils.process.UMC = (sys.argv[1],)
run.check_recipe = lambda _: None
sys.exit(run.run_recipe(sys.argv[2:]))
"""


def test_killed_at_any_point_it_goes_on_from_there(place):
    """kill -9 of the command: its child saves and ends by itself, the same command goes on with that checkpoint."""
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


def test_a_baseline_starts_from_a_stage_1_without_mask_and_flag(place):
    """Its network has no input for them; fake_umc.py writes empty files, so that a real one is put there."""
    other = written(place, "other")
    run_recipe(["--recipe", other])
    fresh = read_checkpoint(write_fresh(place / "fresh", "UMC-A1-Stage1"))
    write_checkpoint(flag(calls(place)[2], "checkpoint"), {**fresh, "critic_state_dict": {}})
    stages = {1: [{"iterations": 1, "from": {"recipe": other, "stage": 1, "fold": True}}]}
    run_recipe(["--recipe", written(place, agent="nm_mlp", stages=stages)])
    start = flag(calls(place)[-1], "checkpoint")
    assert checkpoint_info(read_checkpoint(start), start).model == "nm_mlp"


def test_the_policy_is_evaluated_on_the_engine_that_it_was_trained_on(place):
    evaluation = {"num_envs": 24, "overrides": ["protocol.steps=100"]}
    run_recipe(["--recipe", written(place, evaluation=evaluation), "--evaluate"])
    asked = json.loads((place / "asked.json").read_text())
    assert flag(asked, "checkpoint").endswith("_tiny_seed3_phase3/model_3.pt")
    assert (flag(asked, "num_envs"), flag(asked, "device")) == ("24", "cpu")
    assert asked[-2:] == ["physics=ovphysx", "protocol.steps=100"]


def test_a_checkpoint_that_is_gone_is_told_before_anything_is_trained(place):
    argv = ["--recipe", written(place)]
    run_recipe(argv)
    Path(flag(calls(place)[2], "checkpoint")).unlink()
    with pytest.raises(UmcError, match=r"model_4\.pt is gone; start the recipe anew with --restart"):
        run_recipe(argv)
