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

command, *argv = sys.argv[1:]
if command == "evaluate":
    Path("asked.json").write_text(json.dumps(argv))
    sys.exit(0)
end_with_parent()
parser = argparse.ArgumentParser()
for flag in ("task", "agent", "logs", "device", "run_name", "checkpoint"):
    parser.add_argument(f"--{flag}")
for flag in ("max_iterations", "num_envs", "seed"):
    parser.add_argument(f"--{flag}", type=int)
parser.add_argument("--resume", action="store_true")
options, overrides = parser.parse_known_args(argv)
with Path("calls.jsonl").open("a") as calls:
    calls.write(json.dumps(argv) + "\n")

_, robot, stage = options.task.lower().split("-")
agent = options.agent.removeprefix("rsl_rl_").removesuffix("_cfg_entry_point")
if options.resume:
    last = Path(options.checkpoint)
    run, first = last.parent, int(last.stem.removeprefix("model_")) + 1
    assert not (run / f"model_{first}.pt").exists()
else:
    run, first = (
        Path(options.logs) / "rsl_rl" / f"umc_{robot}_{agent}_{stage}" / f"{time.time_ns()}_{options.run_name}",
        0,
    )
run.mkdir(parents=True, exist_ok=True)
(run / "run.json").write_text(json.dumps({"seed": options.seed}))

stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
print(f"{options.num_envs} envs x 24 steps, {options.max_iterations} iterations, seed {options.seed}", flush=True)
for iteration in range(first, options.max_iterations):
    if str(iteration - first) == os.environ.get("FAKE_HANGS_AFTER"):
        sys.exit(STALLED)
    time.sleep(float(os.environ.get("FAKE_ITERATION_S", "0")))
    (run / f"model_{iteration}.pt").touch()
    print(f"iteration {iteration + 1}/{options.max_iterations}: 1,000 env-steps/s, ETA 0:00:01, reward 1", flush=True)
    if stopped:
        sys.exit(128 + signal.SIGTERM)
