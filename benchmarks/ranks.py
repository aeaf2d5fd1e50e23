# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How much faster several processes train one policy on a CPU than one process; Markdown.

All settings train the same number of envs: one process with one thread, one with as many threads as there are
processes, and that many processes with one thread each, connected by gloo. They take turns, each in trainings of its
own; the rate is that of all processes together. Rates are of the wall clock: leave the machine alone meanwhile. Usage:

    ./isaaclab.sh -p benchmarks/ranks.py [--processes 2] [--num_envs 256] [--agent mlp] [--rounds 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import positive
from ratios import save, spread

LAUNCHER = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node")
REFERENCE = "one process, one thread"


def rate(args: argparse.Namespace, processes: int, threads: int) -> float:
    """Train a few iterations and return the env steps per second of all processes."""
    from umc.utils.provenance import read_progress

    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        flags = [f"--task=UMC-{args.robot}-Stage1", f"--agent={args.agent}", "--device=cpu", f"--run_dir={run}"]
        flags += [f"--num_envs={args.num_envs // processes}", f"--max_iterations={args.iterations}"]
        start = [*LAUNCHER, str(processes), "-m", "umc"] if processes > 1 else ["-m", "umc"]
        child = subprocess.run(
            [sys.executable, *start, "train", *flags, *(["--distributed"] if processes > 1 else [])],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
            capture_output=True,
            text=True,
            check=False,
        )
        if child.returncode != 0:
            sys.exit(f"the training failed:\n{child.stdout[-2000:]}{child.stderr[-2000:]}")
        progress = read_progress(run)
    assert progress is not None  # the training ended well
    return progress["env_steps_per_s"]


def main() -> None:
    """Train with all settings in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--robot", default="A1", help="robot whose Stage 1 is trained")
    add("--agent", default="mlp", help="agent of the training")
    add("--processes", type=int, default=2, help="processes that train together")
    add("--num_envs", type=positive, default=256, help="envs of all processes together")
    add("--iterations", type=positive, default=6, help="iterations of each training; the last ones' rate counts most")
    add("--rounds", type=positive, default=3, help="trainings of each setting")
    add("--json", type=Path, help="file for the rates of all trainings")
    args = parser.parse_args()
    if args.processes < 2 or args.num_envs % args.processes:
        parser.error("--processes must be at least 2 and divide --num_envs")
    several = f"{args.processes} processes, one thread each"
    settings = {REFERENCE: (1, 1), f"one process, {args.processes} threads": (1, args.processes)}
    settings[several] = (args.processes, 1)
    rates: dict[str, list[float]] = {name: [] for name in settings}
    for _ in range(args.rounds):
        for name, setting in settings.items():
            rates[name].append(rate(args, *setting))
            print(f"{name}: {rates[name][-1]:,.0f} env-steps/s", file=sys.stderr, flush=True)
    print(f"| {args.robot}, {args.agent}, {args.num_envs} envs | env-steps/s | over {REFERENCE}: median (min to max) |")
    print("|---|---:|---|")
    for name, found in rates.items():
        ratios = [one / other for one, other in zip(found, rates[REFERENCE], strict=True)]
        print(f"| {name} | {statistics.median(found):,.0f} | {spread(ratios)} |")
    save(args.json, rates)


if __name__ == "__main__":
    main()
