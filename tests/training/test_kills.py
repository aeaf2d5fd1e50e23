# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""SIGKILL at 50 random moments: the same command continues, and nothing older than one save interval is lost."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import dummy_training as dummy
import pytest
from fresh_policy import write_fresh
from made_up_study import made_up_study
from tiny_recipe import written
from umc.evaluation.evaluate import report_again
from umc.evaluation.study import STUDY, load_study, save_study
from umc.rl.checkpoint import checkpoints_in, iterations_of, read_checkpoint
from umc.training.recipe_runner import run_recipe
from umc.utils.provenance import read_progress

SEED = 27
TRAININGS, RECIPES, REPORTS, EVALUATIONS, ENGINE_TRAININGS = 25, 12, 8, 2, 3
"""Kills of each kind."""

pytestmark = pytest.mark.slow


@pytest.fixture
def forks(monkeypatch) -> BaseContext:
    """Start processes from one that has imported what they need and, unlike this one, has no threads."""
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(dummy.__file__))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dummy_training", "umc.evaluation.evaluate"])
    first = context.Process(target=abs, args=(0,))
    first.start()
    first.join()
    return context


def killed_after(seconds: float, process: BaseProcess) -> bool:
    """Let a process work and kill it; return whether it was still at work."""
    process.start()
    time.sleep(seconds)
    process.kill()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def test_a_training_loses_at_most_one_save_interval(tmp_path, forks):
    moments, done = random.Random(SEED), 0
    for _ in range(TRAININGS):
        assert killed_after(
            moments.uniform(0.0, 2.0), forks.Process(target=dummy.train_or_resume, args=(tmp_path, 1_000_000))
        )
        files = checkpoints_in(tmp_path)
        for path in files:
            read_checkpoint(path)
        before, done = done, iterations_of(files[-1]) if files else 0
        shown = (read_progress(tmp_path) or {"iteration": 0})["iteration"]
        assert done >= max(before, shown - 1)
    assert done > TRAININGS
    dummy.train_or_resume(tmp_path, done + 1)
    last = read_checkpoint(checkpoints_in(tmp_path)[-1])
    steps = {int(state["step"]) for state in last["optimizer_state_dict"]["state"].values()}
    assert steps == {(done + 1) * 2 * 4}  # epochs x mini-batches: no iteration is missing, none counts twice


def kill_at_work(child: subprocess.Popen, ready: Callable[[], bool], seconds: float) -> None:
    """Kill a process some time after it is ready."""
    until = time.monotonic() + 300.0
    while not ready():
        assert child.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    time.sleep(seconds)
    child.kill()
    child.wait()


def killed_command(words: list[str], ready: Callable[[], bool], seconds: float) -> None:
    """Start a command of `umc` and kill it some time after it is ready."""
    with open(os.devnull, "w") as nowhere:
        child = subprocess.Popen([sys.executable, "-m", "umc", *words], stdout=nowhere, stderr=nowhere)
    kill_at_work(child, ready, seconds)


def times_of_checkpoints(folder: Path) -> dict[Path, int]:
    """When each checkpoint of all runs was written [ns]; of the fake training, one per iteration."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("logs/rsl_rl/*/*/model_*.pt")}


def test_a_recipe_repeats_no_iteration(fake_umc, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_ITERATION_S", "0.3")
    moments, phases = random.Random(SEED), {1: [{"iterations": 60}], 2: [{"iterations": 60}]}
    argv = ["--recipe", written(tmp_path, stages=phases)]
    written_at: dict[Path, int] = {}
    for _ in range(RECIPES):
        with subprocess.Popen([*fake_umc, *argv], stdout=subprocess.DEVNULL) as recipe:
            count = len(written_at)
            kill_at_work(recipe, lambda least=count: len(times_of_checkpoints(tmp_path)) > least, moments.uniform(0, 2))
        assert recipe.returncode == -signal.SIGKILL
        before, written_at = written_at, times_of_checkpoints(tmp_path)
        assert before.items() <= written_at.items()
    monkeypatch.setenv("FAKE_ITERATION_S", "0")
    assert run_recipe(argv) == 0
    assert written_at.items() <= times_of_checkpoints(tmp_path).items()  # no iteration was trained again
    for stage in (1, 2):
        (run,) = tmp_path.glob(f"logs/rsl_rl/umc_a1_mlp_stage{stage}/*")
        assert [iterations_of(path) for path in checkpoints_in(run)] == list(range(1, 61))
    calls = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert sum("--resume" in call for call in calls) > RECIPES / 2


def test_a_report_is_whole_or_not_there(tmp_path, forks):
    save_study(tmp_path / STUDY, made_up_study(members=4))
    moments = random.Random(SEED)
    for _ in range(REPORTS):
        killed_after(moments.uniform(0.0, 4.0), forks.Process(target=report_again, args=(tmp_path,)))
        assert len(load_study(tmp_path / STUDY).policies) == 3
        if (report := tmp_path / "report.json").is_file():
            assert len(json.loads(report.read_text())["policies"]) == 3
    report_again(tmp_path)


def finish(words: list[str]) -> str:
    """Run a command of `umc` to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "umc", *words], capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.engine
def test_an_evaluation_keeps_its_batches(tmp_path):
    moments, out = random.Random(SEED), tmp_path / "out"
    flags = "--quick --episodes 6 --num_envs 8 physics=ovphysx env.scene.terrain=flat"
    words = ["evaluate", "--checkpoint", str(write_fresh(tmp_path)), *flags.split(), "--out", str(out)]
    kept: dict[Path, bytes] = {}
    for kill in range(EVALUATIONS):
        killed_command(words, lambda least=kill + 1: len([*out.glob("partial/*.pt")]) >= least, moments.uniform(0, 0.5))
        parts = {path: path.read_bytes() for path in out.glob("partial/[!.]*.pt")}
        assert kept.items() <= parts.items()
        kept = parts
    shown = finish(words)
    assert f"{len(kept)} of 6 batches are already done" in shown or len(kept) == 6
    assert all(path.read_bytes() == content for path, content in kept.items())
    assert (out / "report.html").is_file()


@pytest.mark.engine
def test_a_training_on_an_engine_continues(tmp_path):
    moments, run = random.Random(SEED), tmp_path / "run"
    new = ["--run_dir", str(run), "--num_envs", "8", "--max_iterations", "100000", "physics=ovphysx"]
    task = ["train", "--task", "UMC-A1-Stage1", "--agent", "mlp", "--device", "cpu", "--logs", str(tmp_path)]
    resumed = [*task, "--resume", "--checkpoint", str(run)]
    words, done = [*task, *new, "env.scene.terrain=flat", "agent.save_interval=1"], 0
    for _ in range(ENGINE_TRAININGS):
        killed_command(words, lambda least=done: len(checkpoints_in(run)) > least, moments.uniform(0.0, 1.0))
        files = checkpoints_in(run)
        assert [iterations_of(path) for path in files] == list(range(1, len(files) + 1))
        assert len(files) >= read_progress(run)["iteration"] - 1
        words, done = resumed, len(files)
    finish([*resumed, "--max_iterations", str(done + 1)])
    assert iterations_of(checkpoints_in(run)[-1]) == done + 1
    assert not list(run.glob(".*.tmp*"))
