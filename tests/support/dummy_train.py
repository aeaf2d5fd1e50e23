# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Stands in for ``umc train`` in sweeps: understands the flags that a sweep gives it, trains nothing, writes runs.

`--max_iterations N` counts N steps; `agent.fail=1` ends with 1, `agent.wait=1` waits for SIGTERM after the first step.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path

from umc.utils.distributed import ranks_from_env
from umc.utils.io import write_json
from umc.utils.process import end_with_parent
from umc.utils.provenance import RUN_FILE


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["train"])
    for flag in ("--task", "--agent", "--logs", "--seed", "--run_dir", "--max_iterations", "--checkpoint", "--device"):
        parser.add_argument(flag)
    parser.add_argument("--resume", action="store_true")
    options, overrides = parser.parse_known_args()
    assert not ranks_from_env().several
    if options.resume:
        folder = Path(options.checkpoint).parent
        record = json.loads((folder / RUN_FILE).read_text())
        first = int(Path(options.checkpoint).stem.split("_")[1]) + 1
    else:
        folder = Path(options.run_dir)
        folder.mkdir(parents=True)
        record = {"task": options.task, "agent": options.agent, "seed": int(options.seed), "overrides": overrides}
        record |= {"start": options.checkpoint, "starts": 0}
        first = 0
    total = int(options.max_iterations or 2)
    record |= {"status": "running", "max_iterations": total, "starts": record["starts"] + 1}
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    end_with_parent()
    for iteration in range(first, total):
        (folder / f"model_{iteration}.pt").write_text("weights")
        print(f"iteration {iteration + 1}/{total}: 100 env-steps/s, ETA 0:00:01", flush=True)
        write_json(folder / RUN_FILE, record)
        if "agent.fail=1" in overrides:
            print("the robot has left the room", flush=True)
            return 1
        while "agent.wait=1" in overrides and not stopped and not options.resume:
            time.sleep(0.05)
        if stopped:
            record["status"] = "interrupted"
            write_json(folder / RUN_FILE, record)
            return 143
    record |= {"status": "finished", "result": {"reward": float(record["seed"]), "episode_steps": 10.0}}
    write_json(folder / RUN_FILE, record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
