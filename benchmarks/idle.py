# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Processor time that PhysX takes on a CPU while nothing is simulated, with the patch of its polling thread or not.

A training on a CPU pays for it while its networks learn, too. Usage:

    ./isaaclab.sh -p benchmarks/idle.py [--seconds 10] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

from common import positive, run_apart
from ratios import add_json_flag, save, spread

SORTS = ("unpatched", "patched")


def measure(sort: str, seconds: float) -> float:
    """Return the share of one core that an idle simulation of one robot takes [-]."""
    from umc.utils import patches

    if sort == "unpatched":
        patches.TIMER_SLACK_NS = 50_000  # Linux's own
    patches.apply()
    from isaaclab.scene import InteractiveScene, InteractiveSceneCfg
    from isaaclab.sim import SimulationCfg, build_simulation_context
    from umc.robots import A1_CFG
    from umc.tasks.base import physics_presets

    engine = physics_presets(njmax=100, nconmax=20).ovphysx
    with build_simulation_context(sim_cfg=SimulationCfg(physics=engine, device="cpu")) as sim:
        cfg: Any = InteractiveSceneCfg(num_envs=1, env_spacing=4.0)
        cfg.robot = A1_CFG.replace(prim_path="{ENV_REGEX_NS}/Robot")
        InteractiveScene(cfg)
        sim.reset()
        start = time.process_time()
        time.sleep(seconds)
        return (time.process_time() - start) / seconds


def measure_apart(sort: str, seconds: float) -> float:
    """Run :func:`measure` in a process of its own."""
    return float(run_apart(sort, __file__, [f"--sort={sort}", f"--seconds={seconds}"]))


def main() -> None:
    """Print the shares and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--sort", choices=SORTS, help=argparse.SUPPRESS)
    add_json_flag(parser)
    args = parser.parse_args()
    if args.seconds <= 0.0:
        parser.error("--seconds has to be above 0")
    if args.sort:
        print(f"\n{measure(args.sort, args.seconds)}", flush=True)
        os._exit(0)  # the teardown of an engine may hang
    shares = [[measure_apart(sort, args.seconds) for sort in SORTS] for _ in range(args.rounds)]
    before, after = (statistics.median(column) for column in zip(*shares, strict=True))
    ratios = [first / second for first, second in shares]
    print(f"part of a core: {before:.3f} unpatched, {after:.3f} patched; ratio {spread(ratios)}")
    save(args.json, {"idle PhysX, unpatched / patched": ratios})


if __name__ == "__main__":
    main()
