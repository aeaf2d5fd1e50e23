# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc tune``: measure on this machine how many threads a training should have, and what engine and envs cost."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from umc.rl.agents import AGENTS
from umc.utils.cli import Parser, as_flags
from umc.utils.console import quiet
from umc.utils.errors import UmcError
from umc.utils.isaaclab_flags import asks_for_help, show_help
from umc.utils.process import ChildFailed, run_umc
from umc.utils.provenance import read_progress
from umc.utils.threads import cores, write_tuned

DESCRIPTION = (
    "Train a few iterations with different threads, engines and numbers of envs on the CPU, and print their speed. The "
    "fastest number of threads is kept for this machine; umc train uses it from then on."
)

EXAMPLES = ("", "--agent transformer", "--task UMC-G1-Stage1")

NUM_ENVS = (256, 128, 512)
"""Numbers of envs; threads and engines are compared with the first."""

ITERATIONS = 4
"""Iterations of each training; its speed is that of all but the first, which warms up."""

WORTH = 1.05
"""More threads have to be so many times faster [-]: fewer leave cores to other trainings."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``umc tune``."""
    parser.add_argument("--task", default="UMC-A1-Stage1", help="gym id of the task that is trained")
    parser.add_argument("--agent", default="mlp", help="agent; small and large networks are kept apart")


def main(argv: list[str]) -> int:
    """Run ``umc tune``; return its exit status."""
    if asks_for_help(argv):
        return show_help(argv, "tune", DESCRIPTION, EXAMPLES, [add_arguments])
    parser = Parser(add_help=False)
    add_arguments(parser)
    options = parser.parse_args(argv)
    if options.agent not in AGENTS:
        raise UmcError(f"--agent {options.agent} is none; choose one of {', '.join(AGENTS)}")
    from umc.tasks.registry import checked_agent, checked_task
    from umc.tasks.task_cfg import ENGINES
    from umc.training.plan import network_size

    engine, other = ENGINES
    task, size = checked_task(options.task), network_size(AGENTS[options.agent])
    checked_agent(options.agent, task)
    print(f"{'engine':<14}{'envs':>5}{'threads':>9}{'env-steps/s':>13}")
    speeds = {threads: _speed(task, options.agent, engine, NUM_ENVS[0], threads) for threads in choices()}
    threads = fewest_worth(speeds)
    file = write_tuned({size: threads})  # first: what follows only informs
    _speed(task, options.agent, other, NUM_ENVS[0], threads)
    for num_envs in NUM_ENVS[1:]:
        _speed(task, options.agent, engine, num_envs, threads)
    print(f"kept: {threads} of {cores()} threads for {size} networks ({file}); umc train uses them")
    print("Engine and envs change what is learned: choose them with physics=NAME and --num_envs.")
    return 0


def choices() -> list[int]:
    """Return numbers of threads to compare: powers of two, and all cores."""
    most = cores()
    return sorted({most, *(2**power for power in range(most.bit_length()) if 2**power <= min(most, 16))})


def fewest_worth(speeds: dict[int, float]) -> int:
    """Return the fewest threads than which no more are clearly faster."""
    fastest = max(speeds.values())
    return min(threads for threads, speed in speeds.items() if fastest <= WORTH * speed)


def _speed(task: str, agent: str, engine: str, num_envs: int, threads: int) -> float:
    """Train with these settings, print and return the speed [env steps/s]."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    with tempfile.TemporaryDirectory(prefix="umc_tune_") as folder:
        run = Path(folder) / "run"
        flags = as_flags(task=task, agent=agent, num_envs=num_envs, max_iterations=ITERATIONS, run_dir=run)
        log = Path(folder) / "output.log"
        words = [*flags, "--device", "cpu", "--logs", folder, f"physics={engine}", "env.scene.terrain=flat"]
        try:
            with quiet():
                run_umc("train", words, log=log)
        except ChildFailed:
            print(log.read_text(errors="replace"), end="", flush=True)
            raise
        progress = read_progress(run)
    assert progress is not None  # the training ended well
    rate = progress["env_steps_per_s"]
    print(f"{engine:<14}{num_envs:>5}{threads:>9}{rate:>13,.0f}", flush=True)
    return rate
