# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Stands in for ``umc`` in recipes and sweeps: ``train`` writes runs and learns nothing, ``evaluate`` does nothing.
``train --recipe`` and ``train --sweep`` are the real ones, with such trainings.

Every call leaves its arguments in ``calls.jsonl`` or ``asked.json``. ``FAKE_ITERATION_S`` is the time of an iteration
[s], ``FAKE_HANGS_AFTER`` after how many it ends as if it hung. The override ``agent.fail=1`` ends the run with 1,
``agent.wait=1`` lets a new one wait for SIGTERM after its first iteration.
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from umc.rl.checkpoint import iterations_of
from umc.rl.watchdog import HUNG
from umc.utils.distributed import ranks_from_env
from umc.utils.io import write_json
from umc.utils.process import end_with_parent
from umc.utils.provenance import RUN_FILE, write_progress


def train(argv: list[str]) -> int:
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    end_with_parent()
    assert not ranks_from_env().is_distributed
    parser = argparse.ArgumentParser()
    for flag in ("task", "agent", "logs", "device", "run_dir", "checkpoint"):
        parser.add_argument(f"--{flag}")
    for flag in ("max_iterations", "num_envs", "seed"):
        parser.add_argument(f"--{flag}", type=int)
    parser.add_argument("--resume", action="store_true")
    options, overrides = parser.parse_known_args(argv)
    with Path("calls.jsonl").open("a") as calls:
        calls.write(json.dumps(argv) + "\n")
    if options.resume:
        last = Path(options.checkpoint)
        run, first = last.parent, iterations_of(last)
        assert not (run / f"model_{first}.pt").exists()
        record = json.loads((run / RUN_FILE).read_text())
    else:
        run, first = Path(options.run_dir), 0
        run.mkdir(parents=True, exist_ok=True)
        record = {"task": options.task, "agent": options.agent, "seed": options.seed, "overrides": overrides}
        record |= {"start": options.checkpoint, "starts": [], "num_envs": options.num_envs, "num_steps_per_env": 24}
    total = options.max_iterations or 2
    record |= {"status": "running", "max_iterations": total, "starts": [*record["starts"], {}]}
    for iteration in range(first, total):
        if str(iteration - first) == os.environ.get("FAKE_HANGS_AFTER"):
            return HUNG
        time.sleep(float(os.environ.get("FAKE_ITERATION_S", "0")))
        (run / f"model_{iteration}.pt").touch()
        write_json(run / RUN_FILE, record)
        progress = {"iteration": iteration + 1, "iterations": total, "env_steps_per_s": 1000.0, "eta_s": 1.0}
        write_progress(run, progress)
        print(f"iteration {iteration + 1}/{total}: 1,000 env-steps/s, ETA 0:00:01", flush=True)
        if "agent.fail=1" in overrides:
            print("the robot has left the room", flush=True)
            return 1
        while "agent.wait=1" in overrides and not stopped and not options.resume:
            time.sleep(0.05)
        if stopped:
            write_json(run / RUN_FILE, {**record, "status": "interrupted"})
            return 128 + signal.SIGTERM
    result = {"reward": float(record["seed"]), "episode_steps": 10.0}
    write_json(run / RUN_FILE, {**record, "status": "finished", "result": result})
    return 0


def train_several(argv: list[str]) -> int:
    from umc.training import recipe_runner, sweep
    from umc.utils import process

    process.UMC = (__file__,)
    recipe_runner.check_recipe = sweep.check_trainings = lambda *_, **__: None
    return sweep.run_sweep(argv) if "--sweep" in argv else recipe_runner.run_recipe(argv)


command, *arguments = sys.argv[1:]
if command == "train":
    several = {"--recipe", "--sweep"} & set(arguments)
    sys.exit(train_several(arguments) if several else train(arguments))
Path("asked.json").write_text(json.dumps(arguments))
