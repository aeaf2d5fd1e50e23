# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Measure the processor time from a command to its result: the start of a training, an export, a refused flag.

The training is one step of two robots and one update, so its time is that to the first env step and little more. Each
row is the least of ``--rounds`` runs, with bytecode on disk; it is compared with the imports that no command can do
without (torch, Newton and Isaac Lab's environments). Usage:

    ./isaaclab.sh -p benchmarks/start.py [--rounds 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from common import positive, usage_of
from ratios import save

UMC = ("-m", "umc")
FEW = ("--num_envs", "2", "--max_iterations", "1", "agent.num_steps_per_env=1", "agent.algorithm.num_mini_batches=1")
PROGRAMS: dict[str, tuple[str, ...]] = {
    "import torch": ("-c", "import torch"),
    "import torch, newton, isaaclab.envs": ("-c", "import torch, newton; from isaaclab.envs import ManagerBasedRLEnv"),
    "train A1, flat ground": (*UMC, "train", "--task", "UMC-A1-Stage1", *FEW, "env.scene.terrain=flat"),
    "train A1, tracks": (*UMC, "train", "--task", "UMC-A1-Stage1", *FEW),
    "train G1, Newton": (*UMC, "train", "--task", "UMC-G1-Stage1", *FEW, "physics=newton_mjwarp"),
    "export A1": (*UMC, "export", "--checkpoint", "pretrained:a1_mlp_stage2", "--out", "exported"),
    "train --help": (*UMC, "train", "--help"),
    "an unknown flag": (*UMC, "train", "--task", "UMC-A1-Stage1", "--nonsense", "1"),
}
"""Arguments of Python."""
REFERENCE = "import torch, newton, isaaclab.envs"


def main() -> None:
    """Measure all programs in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=positive, default=3, help="runs of each program")
    parser.add_argument("--json", type=Path, help="file for the seconds of all runs")
    args = parser.parse_args()
    seconds: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(args.rounds):
        for name, arguments in PROGRAMS.items():
            with tempfile.TemporaryDirectory() as folder:
                # the one that is refused ends with 2
                seconds[name].append(round(usage_of(arguments, folder, (0, 2)).processor, 2))
                print(f"{name}: {seconds[name][-1]:.2f} s", file=sys.stderr, flush=True)
    least = min(seconds[REFERENCE])
    print(f"{'':<38}{'processor time [s]':>20}{'ratio':>8}")
    for name, runs in seconds.items():
        print(f"{name:<38}{min(runs):>20.2f}{min(runs) / least:>8.2f}")
    save(args.json, seconds)


if __name__ == "__main__":
    main()
