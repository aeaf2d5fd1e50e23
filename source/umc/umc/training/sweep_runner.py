# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``scripts/train.py --sweep``: trains every run of a sweep unattended, goes on where it stopped, ends with a table."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import re
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from umc.tasks.registry import checked_checkpoint
from umc.training.arguments import DEFAULT_AGENT
from umc.training.sweep import Job, jobs_of, read_training_sweep
from umc.utils import executor, process
from umc.utils.cli import Parser, at_least_one
from umc.utils.errors import UmcError
from umc.utils.io import atomic_write, write_json
from umc.utils.naming import LIBRARIES, task_parts
from umc.utils.process import one_at_a_time, typed
from umc.utils.provenance import FINISHED, read_record

TABLE = "table.md"
STATE = "sweep.json"
"""Files in a sweep's folder under ``logs/sweeps``."""

LINE_EVERY_S = 60.0
"""Time between two lines about what runs [s]."""

DEFAULT_SEED = 42
"""Of the tasks' agents (:class:`isaaclab_rl.rsl_rl.RslRlBaseRunnerCfg`)."""

UNSUPPORTED_FLAGS = {
    "--resume": "a sweep goes on by itself",
    "--run_name": "a sweep names its runs",
    "--quick": "a sweep trains",
    "--video": "film the runs with scripts/play.py",
    "--distributed": "a run of a sweep is one process",
    "--seed": "give sweep.seeds=[1,2,3]",
}
"""Flags of a single training that a sweep does not take, and why."""

LINE = re.compile(r"iteration (\d+)/(\d+): .*?ETA ([\d:]+|\d+ days?, [\d:]+)")
"""What a training says about itself."""

FAILED = 1


class _Stop(Exception):
    """Ctrl-C or SIGTERM."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


def run_sweep(argv: Sequence[str]) -> int:
    """Run ``scripts/train.py --sweep``.

    Args:
        argv: Arguments without the script's name.

    Returns:
        Exit status: 0 all trained, 1 some failed, 130 Ctrl-C, 143 SIGTERM.

    Raises:
        UmcError: If something is wrong with the command line or the sweep.
    """
    options, common, changes = parse_sweep(argv)
    sweep = read_training_sweep(options.sweep, changes)
    jobs = jobs_of(sweep, options.task, options.agent, options.rl_library, common, options.checkpoint, DEFAULT_SEED)
    folder = options.logs / "sweeps" / f"{sweep['name']}_{jobs[-1].task}"
    with one_at_a_time(folder, f"the sweep in {folder}"), contextlib.ExitStack() as stack:
        if options.ray is not None:
            workers: executor.Executor = stack.enter_context(
                executor.ray_executor(options.ray, options.ray_address, _device(common))
            )
        else:
            workers = executor.LocalExecutor(options.jobs, _device(common))
        return Sweep(jobs, options.logs, folder, workers).run()


def parse_sweep(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str], list[str]]:
    """Read the command line of a sweep.

    Args:
        argv: Arguments without the script's name.

    Returns:
        The sweep's own flags; flags and overrides of all its runs; what it changes of the sweep's file.

    Raises:
        UmcError: If a flag does not go with a sweep.
    """
    parser = Parser(add_help=False, allow_abbrev=False)
    add = parser.add_argument
    add("--sweep", required=True)
    add("--task")
    add("--agent", default=DEFAULT_AGENT)
    add("--rl_library", choices=LIBRARIES)
    add("--checkpoint")
    add("--logs", type=Path, default=Path("logs"))
    add("--jobs", type=int)
    add("--ray", type=int)
    add("--ray_address")
    options, rest = parser.parse_known_args(list(argv))
    for token in rest:
        why = UNSUPPORTED_FLAGS.get(token.split("=")[0])
        if why is not None:
            raise UmcError(f"{token.split('=')[0]} does not go with --sweep: {why}")
    at_least_one(options.jobs, "--jobs")
    at_least_one(options.ray, "--ray")
    if options.ray is not None and options.jobs is not None:
        raise UmcError("--jobs is for this machine, --ray for a cluster; give one of them")
    if options.ray_address is not None and options.ray is None:
        raise UmcError("--ray_address needs --ray WORKERS")
    if options.checkpoint is not None and not options.checkpoint.startswith("pretrained"):
        options.checkpoint = str(checked_checkpoint(options.checkpoint))
    changes = [token for token in rest if token.startswith("sweep.")]
    return options, [token for token in rest if token not in changes], changes


class Sweep:
    """Trainings, and how far they are.

    Args:
        jobs: All trainings, each after the one that it needs.
        logs: Folder of all runs.
        folder: The sweep's own folder.
        workers: Where trainings run.
    """

    def __init__(self, jobs: list[Job], logs: Path, folder: Path, workers: executor.Executor) -> None:
        self.jobs, self.logs, self.folder, self.workers = jobs, logs, folder, workers
        self.waiting = [job for job in jobs if not job.done(logs)]
        self.running: dict[int, tuple[Job, executor.Running]] = {}
        """By slot."""
        self.codes: dict[str, int] = {}
        """How trainings of this start ended, by key."""
        self.durations: list[float] = []
        self.started: dict[str, float] = {}

    def run(self) -> int:
        """Train everything that is missing, then print the table.

        Returns:
            Exit status.
        """
        done, total = len(self.jobs) - len(self.waiting), len(self.jobs)
        there = f", {done} are there already" if done else ""
        print(f"sweep of {total} trainings{there}; {self.workers.count} at once; logs in {self.folder}", flush=True)
        with _signals():
            try:
                self._work()
            except _Stop as stop:
                self._stop()
                self._finish()
                print("stopped; trainings have saved, the same command goes on", flush=True)
                return 128 + stop.signum
        self._finish()
        return 0 if all(job.done(self.logs) for job in self.jobs) else FAILED

    def _work(self) -> None:
        said = time.monotonic()
        while self.waiting or self.running:
            self._collect()
            self._start()
            if not self.running:
                return  # what is left waits for something that failed
            if time.monotonic() - said >= LINE_EVERY_S:
                said = time.monotonic()
                self._say()
            time.sleep(executor.POLL_S)

    def _start(self) -> None:
        for slot in range(self.workers.count):
            job = None if slot in self.running else self._next()
            if job is None:
                continue
            self.waiting.remove(job)
            verb = "going on with" if job.last_checkpoint(self.logs) else "starting"
            print(f"{verb} {job.label}", flush=True)
            work = executor.Job((*process.UMC, "train", *job.arguments(self.logs)), log=self.log(job))
            self.started[job.key] = time.monotonic()
            self.running[slot] = (job, self.workers.start(work, slot))

    def _next(self) -> Job | None:
        """The next training that can start."""
        ending = {job.key for job, _ in self.running.values()}  # the last checkpoint is written before the record is
        for job in list(self.waiting):
            if job.after is not None and self.codes.get(job.after.key, 0) != 0:
                self.waiting.remove(job)
                self.codes[job.key] = FAILED
                print(f"left out {job.label}: its Stage 1 failed", flush=True)
            elif job.after is None or (job.after.key not in ending and job.after.done(self.logs)):
                return job
        return None

    def _collect(self) -> None:
        for slot, (job, child) in list(self.running.items()):
            if (result := child.poll()) is None:
                continue
            del self.running[slot]
            self.codes[job.key] = result.code
            seconds = time.monotonic() - self.started[job.key]
            if result.code == 0:
                self.durations.append(seconds)
                print(f"done in {_hours(seconds)}: {job.label}", flush=True)
            else:
                print(f"ended with {result.code}: {job.label}: {result.output}", flush=True)
            self._write()

    def _stop(self) -> None:
        print("stopping; trainings save first ...", flush=True)
        for _, child in self.running.values():
            child.stop()
        while self.running:
            self._collect()
            time.sleep(executor.POLL_S)

    def _say(self) -> None:
        done = sum(code == 0 for code in self.codes.values())
        left = len(self.waiting) + len(self.running)
        eta = ""
        if self.durations:
            seconds = left * sum(self.durations) / len(self.durations) / self.workers.count
            eta = f", ETA about {_hours(seconds)}"
        print(f"{done} trained, {len(self.running)} running, {len(self.waiting)} waiting{eta}", flush=True)
        for job, _ in self.running.values():
            lines = [match for line in self._lines(job) if (match := LINE.match(line))]
            if lines:
                print(f"  {job.label}: iteration {lines[-1][1]}/{lines[-1][2]}, ETA {lines[-1][3]}", flush=True)

    def _finish(self) -> None:
        self._write()
        table = table_of(self.rows())
        with atomic_write(self.folder / TABLE) as file:
            file.write(f"{table}\n".encode())
        print(f"{table}\ntable: {self.folder / TABLE}")
        last = [
            str(job.last_checkpoint(self.logs))
            for job in self.jobs
            if task_parts(job.task)[1] == 2 and job.done(self.logs)
        ]
        if last:
            print("compare them: " + typed("evaluate", ["--checkpoint", *last]), flush=True)

    def rows(self) -> list[dict[str, Any]]:
        """What is known of each training."""
        return [self._row(job) for job in self.jobs]

    def _row(self, job: Job) -> dict[str, Any]:
        folder = job.folder(self.logs)
        record = {} if folder is None else read_record(folder)
        checkpoint = job.last_checkpoint(self.logs)
        status = record.get("status", "not started")
        if self.codes.get(job.key, 0) not in (0, 130, 143) and status != FINISHED:
            status = "failed"
        return {
            "training": job.label,
            "status": status,
            "iterations": job.iterations(self.logs),
            **{name: (record.get("result") or {}).get(name) for name in ("reward", "episode_steps")},
            "checkpoint": None if checkpoint is None else str(checkpoint),
        }

    def log(self, job: Job) -> Path:
        """File with a training's output."""
        return self.folder / f"{job.key}.log"

    def _lines(self, job: Job) -> list[str]:
        log = self.log(job)
        text = log.read_text(errors="replace") if log.is_file() else ""
        return [line for line in text.splitlines() if line.strip()]

    def _write(self) -> None:
        write_json(self.folder / STATE, {"trainings": self.rows()})


def table_of(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as a Markdown table."""

    def text(value: Any) -> str:
        return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)

    cells = [[name.replace("_", " ") for name in rows[0]]]
    cells += [[text(value) for value in row.values()] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = [
        "| " + " | ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def _device(common: Sequence[str]) -> str | None:
    """The device that was asked for, if any."""
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--device")
    return parser.parse_known_args(list(common))[0].device


def _hours(seconds: float) -> str:
    return str(datetime.timedelta(seconds=round(seconds)))


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Turn the first Ctrl-C or SIGTERM into :class:`_Stop`; later ones are ignored while trainings save."""

    def note(signum: int, _frame: Any) -> None:
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_IGN)
        raise _Stop(signum)

    before = {signum: signal.signal(signum, note) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
