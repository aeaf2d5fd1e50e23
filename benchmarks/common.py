# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What benchmarks share: tasks, clocks, flags, and processes of their own."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

ROBOTS = ("A1", "Go2", "H1", "G1", "Solo8")
"""Robots as they stand in the task ids."""

ENGINES = ("newton_mjwarp", "ovphysx")

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
"""Environment of a child."""


def stage2_cfg(robot: str, engine: str, num_envs: int, device: str = "cpu", terrain: str = "flat") -> Any:
    """Return a robot's Stage 2 task, with all its faults."""
    import umc.tasks  # noqa: F401
    from isaaclab_tasks.utils import load_cfg_from_registry, resolve_presets

    registered = load_cfg_from_registry(f"UMC-{robot}-Stage2", "env_cfg_entry_point")
    cfg: Any = resolve_presets(registered, [engine, terrain])
    cfg.scene.num_envs, cfg.sim.device, cfg.seed = num_envs, device, 1
    return cfg


def positive(text: str) -> int:
    """Read a count of a command line."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("it has to be at least 1")
    return value


def clock_of(device: str) -> Callable[[], float]:
    """Return the clock that counts on a device [s]: processor time on a CPU, wall time on CUDA once the GPU is done."""
    if "cuda" not in device:
        return time.process_time

    def wall_time() -> float:
        import torch

        torch.cuda.synchronize()
        return time.perf_counter()

    return wall_time


def clock_name(device: str) -> str:
    """Return what :func:`clock_of` counts."""
    return "wall time" if "cuda" in device else "processor time"


class Timers:
    """Times of the host in functions by part [s]; an inner one's time is not the outer one's."""

    def __init__(self, device: str) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._clock = time.perf_counter if "cuda" in device else time.process_time
        self._inner = 0.0

    def timed(self, part: str, func: Callable[..., Any], term: Any = None) -> Any:
        """Return a function that adds its time to a part's, with the attributes of ``term``, by default of ``func``."""
        timers, owner = self, func if term is None else term

        class Timed:
            def __getattr__(self, name: str) -> Any:
                return getattr(owner, name)

            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                outer, timers._inner = timers._inner, 0.0
                start = timers._clock()
                try:
                    return func(*args, **kwargs)
                finally:
                    taken = timers._clock() - start
                    timers.seconds[part] += taken - timers._inner
                    timers._inner = outer + taken

        return Timed()


@dataclass(frozen=True)
class Usage:
    """What a program took."""

    wall: float
    """Wall time [s]."""
    processor: float
    """Processor time of it and its children, user and system [s]."""
    peak: int
    """Largest resident size of one of its processes [byte]."""


def usage_of(command: Sequence[str], folder: str, statuses: Sequence[int] = (0,)) -> Usage:
    """Run Python with some arguments in a folder, with one thread; return what it took, or end with its output."""
    with tempfile.TemporaryFile("w+") as output:
        start = time.monotonic()
        child = subprocess.Popen(
            [sys.executable, *command], cwd=folder, env=ONE_THREAD, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in statuses:
            output.seek(0)
            sys.exit(f"{' '.join(command)} ended with {child.returncode}:\n{output.read()[-2000:]}")
    return Usage(wall, usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss)  # Linux counts in KiB


def run_apart(what: str, script: str, arguments: Sequence[str]) -> str:
    """Run a benchmark in a process of its own; return the last line that it prints, or end with its output."""
    command = [sys.executable, str(Path(script).resolve()), *arguments]
    child = subprocess.run(command, capture_output=True, text=True, env=ONE_THREAD, check=False)
    if child.returncode != 0:
        sys.exit(f"{what} failed:\n{child.stdout[-3000:]}{child.stderr[-3000:]}")
    return child.stdout.splitlines()[-1]


def run_and_exit(main: Callable[[list[str]], int]) -> NoReturn:
    """Run a benchmark and end the process at once: the teardown of an engine may hang."""
    from umc.utils.cli import run_main

    status = 1
    try:
        status = run_main(main, sys.argv[1:])
    except Exception:  # noqa: BLE001  (Python would print it after the teardown)
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
