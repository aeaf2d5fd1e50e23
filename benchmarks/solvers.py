# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a robot's solver settings cost: env steps a second of its Stage 2 task with some of them changed; Markdown.

Every variant lives in a process of its own, and they take turns block by block, so that other programs slow all of them
alike. ``benchmarks/soak.py`` with the same flags shows what the settings are good for. Usage:

    ./isaaclab.sh -p benchmarks/solvers.py [--robots A1 H1 G1 Solo8] [--engines newton_mjwarp ovphysx]
    ./isaaclab.sh -p benchmarks/solvers.py --robots H1 --engines ovphysx --variants position_iterations=8
"""

from __future__ import annotations

import argparse
import statistics

from common import ENGINES, positive
from envs import ROBOTS, run_in_turns
from ratios import spread
from solver_flags import NEWTON, PHYSX

VARIANTS = {
    "newton_mjwarp": ("njmax=100", "njmax=400", "nconmax=80", "substeps=2", "armature=0"),
    "ovphysx": ("position_iterations=4", "position_iterations=16", "velocity_iterations=0", "armature=0"),
}
"""What is changed, one setting at a time."""


def measure(robot: str, engine: str, args: argparse.Namespace) -> list[str]:
    """Measure the robot's own settings and all variants in turns; return rows of the table."""
    common = [f"--robots={robot}", f"--engine={engine}", f"--num_envs={args.num_envs}", f"--device={args.device}"]
    programs = {"own": ("UMC", common)}
    programs |= {change: ("UMC", [*common, f"--{change}"]) for change in args.variants or VARIANTS[engine]}
    answers = run_in_turns(programs, args.rounds, args.steps)
    seconds = {name: [one["seconds"] for one in found] for name, found in answers.items()}
    rows = []
    for name, taken in seconds.items():
        shares = [own / other for own, other in zip(seconds["own"], taken, strict=True)]
        rate = args.num_envs * args.steps / statistics.median(taken)
        rows.append(f"| {robot} | {engine} | {name.replace('=', ' ')} | {rate:,.0f} | {spread(shares)} |")
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--robots", nargs="+", choices=ROBOTS, default=ROBOTS)
    add("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    add("--variants", nargs="+", help="settings in place of the usual ones, for example njmax=300; see soak.py --help")
    add("--num_envs", type=positive, default=64)
    add("--device", default="cpu", help="cpu or cuda")
    add("--rounds", type=positive, default=5, help="blocks of every variant")
    add("--steps", type=positive, default=20, help="env steps of a block")
    args = parser.parse_args()
    for engine in args.engines:
        known = (*(NEWTON if engine == "newton_mjwarp" else PHYSX), "armature")
        for variant in args.variants or ():
            if variant.split("=")[0] not in known or "=" not in variant:
                parser.error(f"{engine} has no variant '{variant}'; write setting=value, of {', '.join(known)}")
    print(f"{args.device}, {args.num_envs} envs, {args.rounds} rounds of blocks of {args.steps} env steps\n")
    print("| robot | engine | setting | env-steps/s | over its own settings: median (min to max) |")
    print("|---|---|---|---:|---|", flush=True)
    for robot in args.robots:
        for engine in args.engines:
            print("\n".join(measure(robot, engine, args)), flush=True)


if __name__ == "__main__":
    main()
