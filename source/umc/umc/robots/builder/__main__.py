# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Command line of the robot builder."""

import argparse
import sys
from pathlib import Path

from umc.robots.builder import BUILD_CFGS, build, build_visuals
from umc.robots.spawn import DATA
from umc.utils.cli import run_main
from umc.utils.outputs import require_writable


def main(argv: list[str]) -> int:
    """Build the robots named on the command line; return 0."""
    parser = argparse.ArgumentParser(prog="python -m umc.robots.builder", description=__doc__)
    parser.add_argument("robots", nargs="+", choices=sorted(BUILD_CFGS), help="robots to build")
    parser.add_argument("--out", type=Path, default=DATA, help="folder for the files (default: the package)")
    parser.add_argument("--visuals", action="store_true", help="write the visual meshes instead of USD and MJCF")
    parser.add_argument("--meshes", type=Path, help="folder of meshes that example-robot-data lacks (h1)")
    args = parser.parse_args(argv)
    require_writable(args.out, "--out")
    for name in args.robots:
        cfg = BUILD_CFGS[name]
        print(build_visuals(cfg, args.out, args.meshes) if args.visuals else build(cfg, args.out))
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main, sys.argv[1:]))
