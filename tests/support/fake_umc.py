# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Stands in for ``umc train`` where only the order of things matters: writes checkpoints, learns nothing.

``FAKE_ITERATION_S`` is the time of an iteration [s], ``FAKE_HANGS_AFTER`` after how many it ends as if it hung; every
call leaves its arguments in ``calls.jsonl``.
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from umc.rl.watchdog import STALLED
from umc.utils.process import end_with_parent
from umc.utils.provenance import write_progress

command, *argv = sys.argv[1:]
if command == "evaluate":
    Path("asked.json").write_text(json.dumps(argv))
    sys.exit(0)
end_with_parent()
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
    run, first = last.parent, int(last.stem.removeprefix("model_")) + 1
    assert not (run / f"model_{first}.pt").exists()
else:
    run, first = Path(options.run_dir), 0
run.mkdir(parents=True, exist_ok=True)
record = {"task": options.task, "agent": options.agent, "seed": options.seed, "overrides": overrides}
(run / "run.json").write_text(json.dumps({**record, "num_envs": options.num_envs, "num_steps_per_env": 24}))

stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
for iteration in range(first, options.max_iterations):
    if str(iteration - first) == os.environ.get("FAKE_HANGS_AFTER"):
        sys.exit(STALLED)
    time.sleep(float(os.environ.get("FAKE_ITERATION_S", "0")))
    (run / f"model_{iteration}.pt").touch()
    progress = {"iteration": iteration + 1, "iterations": options.max_iterations, "env_steps_per_s": 1000.0}
    write_progress(run, progress)
    print(f"iteration {iteration + 1}/{options.max_iterations}: 1,000 env-steps/s, ETA 0:00:01, reward 1", flush=True)
    if stopped:
        sys.exit(128 + signal.SIGTERM)
