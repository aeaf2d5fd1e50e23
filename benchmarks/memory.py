# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How much memory an env takes while it trains on a CPU, and a layer besides its weights (``umc/models/size.py``).

Trains one iteration at two sizes, each in a process of its own, and compares their largest resident sizes. Usage:

    ./isaaclab.sh -p benchmarks/memory.py [--robots A1 G1] [--engines ovphysx newton_mjwarp] [--agents mlp transformer]
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from common import usage_of
from torch import nn

SIZES = (64, 448)
"""Envs of the two trainings."""


def peak_bytes(robot: str, engine: str, agent: str, num_envs: int) -> int:
    """Return the largest resident size of a training of one iteration."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--task", f"UMC-{robot}-Stage1", "--agent", agent, "--device", "cpu", "--logs", folder]
        flags += ["--num_envs", str(num_envs), "--max_iterations", "1", f"physics={engine}"]
        return usage_of(["-m", "umc", "train", *flags], folder).peak


def object_bytes(make: Callable[[], nn.Module], count: int) -> float:
    """Return the memory that one of so many modules takes."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    modules = [make() for _ in range(count)]
    return (resident() - before) / len(modules)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", nargs="+", default=["A1", "G1"])
    parser.add_argument("--engines", nargs="+", default=["ovphysx", "newton_mjwarp"])
    parser.add_argument("--agents", nargs="+", default=["mlp", "transformer"])
    args = parser.parse_args()
    layer = object_bytes(lambda: nn.Sequential(nn.Linear(1, 1), nn.ELU()), 5000)
    block = object_bytes(lambda: nn.TransformerEncoderLayer(1, 1, 1, batch_first=True), 1000)
    print(f"width 1: {layer / 1e3:.1f} KB per layer, {block / 1e3:.1f} KB per encoder block\n")
    print("| robot | engine | agent | without envs [MB] | per env [MB] |\n|---|---|---|---|---|")
    for robot in args.robots:
        for engine in args.engines:
            for agent in args.agents:
                small, large = (peak_bytes(robot, engine, agent, size) / 1e6 for size in SIZES)
                each = (large - small) / (SIZES[1] - SIZES[0])
                print(f"| {robot} | {engine} | {agent} | {small - SIZES[0] * each:.0f} | {each:.3f} |", flush=True)


if __name__ == "__main__":
    main()
