# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``train.py --sweep``: trains agents x seeds x overrides of a file in ``config/sweeps``, and ends with a table.

``umc evaluate --sweep`` reads the same files (:mod:`umc.evaluation.grid`). The same command resumes a sweep.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import itertools
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prettytable import PrettyTable, TableStyle

from umc.rl.agents import AGENTS
from umc.rl.checkpoint import checkpoints_in, iterations_of
from umc.rl.pretrained import is_pretrained
from umc.tasks.registry import checked_agent, checked_checkpoint, checked_task
from umc.training.arguments import DEFAULT_AGENT, SIZE_KEYS, parse, stage1_overrides
from umc.training.sweep_file import SweepFile, read_sweep_file
from umc.utils import executor, process
from umc.utils.cli import FAILED, MOST_WORKERS, Parser, as_flags, at_least_one, path, within
from umc.utils.config import override_key, read_overrides
from umc.utils.console import duration, escape_markdown, quiet, timed
from umc.utils.errors import UmcError
from umc.utils.io import atomic_write, write_json
from umc.utils.naming import (
    LIBRARIES,
    entry_point,
    experiment_folder,
    experiment_name,
    library_of,
    stage1_task,
    task_parts,
)
from umc.utils.outputs import require_writable
from umc.utils.process import command_line, lock_folder
from umc.utils.provenance import FINISHED, LINE_EVERY_S, PROGRESS_FILE, RUN_FILE, read_progress, read_record

TABLE = "table.md"
STATE = "sweep.json"
"""Files in a sweep's folder under ``logs/sweeps``."""

DEFAULT_SEED = 42
"""Of the tasks' agents (:class:`isaaclab_rl.rsl_rl.RslRlBaseRunnerCfg`)."""

UNSUPPORTED_FLAGS = {
    "--resume": "a sweep resumes by itself",
    "--run_name": "a sweep names its runs",
    "--run_dir": "a sweep names its runs",
    "--quick": "a sweep trains",
    "--video": "film the runs with umc film",
    "--distributed": "a run of a sweep is one process",
    "--seed": "give sweep.seeds=[1,2,3]",
}
"""Flags of a single training that a sweep does not take, and why."""


@dataclasses.dataclass(frozen=True)
class Training:
    """One training of a sweep."""

    options: argparse.Namespace
    """The sweep's own flags."""
    sweep: str
    task: str
    agent: str
    library: str
    seed: int
    own: Mapping[str, Any]
    """Values of the sweep's overrides by key."""
    varied: tuple[str, ...]
    """Keys of those that tell it from the others."""
    common: tuple[str, ...]
    """Further flags and overrides of all runs, as typed."""
    after: Training | None = None
    """Stage 1 whose weights it loads."""

    @property
    def stage(self) -> int:
        """1 or 2."""
        return task_parts(self.task)[1]

    @property
    def label(self) -> str:
        """Name in the table."""
        varied = [f"{key}={value}" for key, value in self.own.items() if key in self.varied]
        return ", ".join([self.agent, f"Stage {self.stage}", f"seed {self.seed}", *varied])

    @property
    def tokens(self) -> list[str]:
        """Its own overrides as a command line has them."""
        return [f"{key}={_written(value)}" for key, value in self.own.items()]

    @property
    def key(self) -> str:
        """Digest that identifies it; iterations and device do not count, since a run may be prolonged."""
        parts = [self.task, self.agent, self.library, self.seed, self.tokens, self.common, self.options.checkpoint]
        parts.append(None if self.after is None else self.after.key)
        parts += [self.options.teacher] if self.options.teacher else []
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]

    @property
    def folder(self) -> Path:
        """Its run folder, which exists from its first start on."""
        experiment = experiment_name(task_parts(self.task)[0], self.agent, self.stage)
        return experiment_folder(self.options.logs, experiment, self.library) / f"{self.sweep}-{self.key}"

    @property
    def record(self) -> dict[str, Any]:
        """Its ``run.json``; empty before its first start."""
        return read_record(self.folder) if (self.folder / RUN_FILE).is_file() else {}

    @property
    def last_checkpoint(self) -> Path | None:
        """Its last checkpoint; None if there is none yet."""
        return (checkpoints_in(self.folder) or [None])[-1]

    @property
    def iterations(self) -> int | None:
        """Iterations behind its last checkpoint; None if there is none yet."""
        last = self.last_checkpoint
        return None if last is None else iterations_of(last)

    @property
    def done(self) -> bool:
        """Whether it has all the iterations that are asked for."""
        return self.ended and self.record["max_iterations"] >= (self.options.max_iterations or 0)

    @property
    def ended(self) -> bool:
        """Whether it has all the iterations that it was started for."""
        record, iterations = self.record, self.iterations
        total = record.get("max_iterations")
        if total is None or iterations is None:
            return False
        # one that died between its last checkpoint and the last change of its record has nothing left to train
        return record.get("status") == FINISHED or iterations >= total

    def flags(self) -> list[str]:
        """Return the arguments of ``train.py`` that its starts have in common."""
        options = self.options
        sizes = {name: getattr(options, name) for name in ("logs", "max_iterations", "device")}
        own = as_flags(task=self.task, agent=entry_point(self.agent, self.library), **sizes)
        # the teacher's code has been confirmed
        return own + (as_flags(teacher=options.teacher, trust=True) if options.teacher else []) + list(self.common)

    def arguments(self) -> list[str]:
        """Return the arguments of ``train.py`` that start or resume it."""
        options, last, arguments = self.options, self.last_checkpoint, self.flags()
        if last is not None:
            return arguments + as_flags(resume=True, checkpoint=last)
        start = options.checkpoint if self.after is None else self.after.last_checkpoint
        if self.after is not None and start is None:
            raise UmcError(f"the Stage 1 of {self.label} has no checkpoint; start the sweep again")
        own = as_flags(seed=self.seed, run_dir=self.folder) + self.tokens
        return arguments + own + as_flags(checkpoint=start)


def run_sweep(argv: Sequence[str]) -> int:
    """Run ``train.py --sweep``; return 0 if all are trained, 1 if some failed, 130 after Ctrl-C, 143 after SIGTERM."""
    options, common, changes = parse_sweep(argv)
    sweep = read_sweep_file(options.sweep, read_overrides(changes, "sweep"))
    trainings = trainings_of(sweep, options, common)
    with timed("checking all trainings"), quiet():
        check_trainings(trainings)
    agent = "" if sweep.agent_names else f"_{trainings[-1].agent}"
    folder = options.logs / "sweeps" / f"{sweep.name}_{trainings[-1].task}{agent}"
    with contextlib.ExitStack() as stack:
        if options.ray is None:
            workers: executor.Executor = executor.LocalExecutor(options.jobs, options.device)
        else:
            workers = stack.enter_context(executor.ray_executor(options.ray, options.ray_address, options.device))
        stack.enter_context(lock_folder(folder, f"trains the sweep in {folder}", inherit=True))
        return Sweep(trainings, folder, workers).run()


def check_trainings(trainings: Sequence[Training]) -> None:
    """Raise UmcError for flags and overrides that would end a training at its start, hours later perhaps."""
    from umc.tasks.task_cfg import pick_device
    from umc.training.curriculum import add_curriculum
    from umc.training.plan import (
        add_launcher_options,
        add_teacher,
        check_cfgs,
        check_run,
        new_cfgs,
        require_same_interface,
        require_usable,
    )

    options = trainings[0].options
    device = pick_device(options.device if options.ray is None else None)
    here = {} if options.ray is None else {"device": device}  # other machines may have the device asked for
    seen = set()
    for training in trainings:
        key = (training.done, training.task, training.library, training.agent, *training.tokens)
        if key in seen:  # another seed
            continue
        seen.add(key)
        argv = [*training.flags(), *training.tokens, *as_flags(checkpoint=training.options.checkpoint, **here)]
        request = parse(argv)
        add_launcher_options(request, argv)
        request.options.trust = training.options.trust  # flags() has it for the trainings, whose teacher is read here
        add_teacher(request)
        if request.teacher is not None:
            require_same_interface(request.teacher, request.all_overrides)
        training.options.trust = True  # asked once
        if any(override_key(token) == SIZE_KEYS["seed"] for token in request.overrides):
            raise UmcError(f"{SIZE_KEYS['seed']} does not go with --sweep: {UNSUPPORTED_FLAGS['--seed']}")
        env_cfg, agent_cfg, _ = new_cfgs(request, device)
        # other machines run it, or nothing does
        if training.options.ray is None and not training.done:
            check_run(request, env_cfg, agent_cfg, device, imitates=request.teacher is not None)
        else:
            check_cfgs(env_cfg, agent_cfg)
        if request.checkpoint is not None:
            require_usable(request, request.checkpoint)
        add_curriculum(env_cfg, agent_cfg, request.spec)


def parse_sweep(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str], list[str]]:
    """Return the sweep's own flags, flags and overrides of all its runs, and the changes of the sweep's file."""
    parser = Parser(add_help=False, allow_abbrev=False)
    add = parser.add_argument
    add("--sweep", required=True)
    add("--task")
    add("--agent")
    add("--rl_library", choices=LIBRARIES)
    add("--checkpoint")
    add("--teacher")
    add("--trust", action="store_true")
    add("--max_iterations", type=int)
    add("--device")
    add("--logs", type=path, default=Path("logs"))
    add("--jobs", type=int)
    add("--ray", type=int)
    add("--ray_address")
    options, rest = parser.parse_known_args(list(argv))
    for flag in (token.split("=")[0] for token in rest):
        if flag in UNSUPPORTED_FLAGS:
            raise UmcError(f"{flag} does not go with --sweep: {UNSUPPORTED_FLAGS[flag]}")
    at_least_one(options.max_iterations, "--max_iterations")
    for flag in ("jobs", "ray"):
        within(getattr(options, flag), f"--{flag}", 1, MOST_WORKERS)
    require_writable(options.logs, "--logs")
    if options.ray is not None and options.jobs is not None:
        raise UmcError("--jobs is for this machine, --ray for a cluster; give one of them")
    if options.ray_address is not None and options.ray is None:
        raise UmcError("--ray_address needs --ray WORKERS")
    if options.checkpoint is not None and not is_pretrained(options.checkpoint):
        file = checked_checkpoint(options.checkpoint)
        is_run = Path(options.checkpoint).is_dir() and (file.parent / RUN_FILE).is_file()
        if is_run and read_record(file.parent).get("status", FINISHED) != FINISHED:
            raise UmcError(
                f"--checkpoint {options.checkpoint} is the folder of a run that has not finished, whose last "
                f"checkpoint changes; give the file to start from, such as {file}"
            )
        options.checkpoint = str(file)
    changes = [token for token in rest if token.startswith("sweep.")]
    return options, [token for token in rest if token not in changes], changes


def trainings_of(sweep: SweepFile, options: argparse.Namespace, common: Sequence[str]) -> list[Training]:
    """Return all trainings of a sweep, Stage 1 first.

    Every seed gets a Stage 1 of its own. Agents that have one Stage 1 in common (ablations) share it, seed by seed.
    """
    task = checked_task(options.task)
    has_stage1 = options.checkpoint is None and options.teacher is None
    first: dict[str, Training] = {}
    rest: dict[str, Training] = {}
    if options.agent and sweep.agent_names:
        raise UmcError(f"sweep {sweep.name} names its agents; give sweep.network=mlp or sweep.agents=[mlp] for --agent")
    agents, seeds = sweep.agent_names or [options.agent or DEFAULT_AGENT], sweep.seeds or [DEFAULT_SEED]
    varied = tuple(key for key, values in sweep.overrides.items() if len(values) > 1)
    for name, seed, values in itertools.product(agents, seeds, itertools.product(*sweep.overrides.values())):
        agent, spec = checked_agent(name, task, options.rl_library)
        own = dict(zip(sweep.overrides, values, strict=True))
        library = library_of(agent) or LIBRARIES[0]
        training = Training(options, sweep.name, task, spec.name, library, seed, own, varied, tuple(common))
        if training.stage == 2 and spec.stage1 is not None and has_stage1:
            kept = set(stage1_overrides(training.tokens))
            before = dataclasses.replace(
                training,
                task=stage1_task(task),
                agent=AGENTS[spec.stage1].name,
                own={key: value for key, value in own.items() if f"{key}={_written(value)}" in kept},
                common=tuple(stage1_overrides(common)),
            )
            training = dataclasses.replace(training, after=first.setdefault(before.key, before))
        if (key := training.key) in rest:
            raise UmcError(f"sweep {sweep.name} has {training.label} twice; list each agent, seed and value once")
        rest[key] = training
    return [*first.values(), *rest.values()]


class Sweep:
    """Trainings, each after the Stage 1 that it needs, their progress, and the workers that run them."""

    def __init__(self, trainings: list[Training], folder: Path, workers: executor.Executor) -> None:
        self.trainings, self.folder, self.workers = trainings, folder, workers
        self.waiting = [training for training in trainings if not self._settled(training)]
        self.running: dict[int, tuple[Training, executor.Running, float]] = {}
        """By slot: a training, its process, and when it was started."""
        self.codes: dict[str, int] = {}
        """How trainings of this start ended, by key."""
        self.durations: list[float] = []

    def run(self) -> int:
        """Train what is missing, print the table, and return the exit status."""
        done, total = len(self.trainings) - len(self.waiting), len(self.trainings)
        there = f", {done} are there already" if done else ""
        print(f"sweep of {total} trainings{there}; {self.workers.count} at once; logs in {self.folder}", flush=True)
        kept = [one for one in self.trainings if not one.done and self._is_started_from(one)]
        longer = any(one.stage == 1 for one in self.waiting)
        if kept and (longer or any(one.after is not None and one.last_checkpoint is None for one in self.waiting)):
            lengths = ", ".join(f"{one.label}: {one.iterations} iterations" for one in kept)
            new = "; Stage 1 of new seeds is longer" if longer else ""
            print(f"not prolonged, since Stage 2 started from it: {lengths}{new}", flush=True)
        signals: list[int] = []  # collected, so that none interrupts the start of a training
        with process.handle_signals(signals.append):
            self._work(signals)
            if signals:
                self._stop()
        self._finish()
        if signals:
            print("stopped; trainings have saved, the same command resumes", flush=True)
            return 128 + signals[0]
        return 0 if all(self._settled(training) for training in self.trainings) else FAILED

    def _is_started_from(self, training: Training) -> bool:
        """Return whether it is a whole Stage 1 from which a Stage 2 has started: all others start from the same."""
        after = [one for one in self.trainings if one.after is not None and one.after.key == training.key]
        return training.ended and any(one.last_checkpoint is not None for one in after)

    def _settled(self, training: Training) -> bool:
        return training.done or self._is_started_from(training)

    def _work(self, signals: list[int]) -> None:
        printed = time.monotonic()
        while (self.waiting or self.running) and not signals:
            self._collect()
            self._start()
            if not self.running:
                return  # what is left waits for something that failed
            if time.monotonic() - printed >= LINE_EVERY_S:
                printed = time.monotonic()
                self._print_progress()
            time.sleep(executor.POLL_S)

    def _start(self) -> None:
        for slot in range(self.workers.count):
            training = None if slot in self.running else self._next()
            if training is None:
                continue
            self.waiting.remove(training)
            verb = "resuming" if training.last_checkpoint else "starting"
            print(f"{verb} {training.label}", flush=True)
            (training.folder / PROGRESS_FILE).unlink(missing_ok=True)  # of an earlier start
            log = self.folder / f"{training.key}.log"
            job = executor.Job((*process.UMC, "train", *training.arguments()), log=log)
            self.running[slot] = (training, self.workers.start(job, slot), time.monotonic())

    def _next(self) -> Training | None:
        """Return the next training that can start."""
        # the last checkpoint is written before the record is
        ending = {training.key for training, *_ in self.running.values()}
        for training in list(self.waiting):
            before = training.after
            if before is not None and self.codes.get(before.key, 0) != 0:
                self.waiting.remove(training)
                self.codes[training.key] = FAILED
                print(f"left out {training.label}: its Stage 1 failed", flush=True)
            elif before is None or training.last_checkpoint or (before.key not in ending and self._settled(before)):
                return training
        return None

    def _collect(self) -> None:
        for slot, (training, child, started) in list(self.running.items()):
            if (result := child.poll()) is None:
                continue
            del self.running[slot]
            self.codes[training.key] = result.code
            seconds = time.monotonic() - started
            if result.code == 0:
                self.durations.append(seconds)
                print(f"done in {duration(seconds)}: {training.label}", flush=True)
            else:
                print(f"ended with {result.code}: {training.label}: {result.output}", flush=True)
            self._write()

    def _stop(self) -> None:
        print("stopping; trainings save first ...", flush=True)
        for _, child, _ in self.running.values():
            child.stop()
        while self.running:
            self._collect()
            time.sleep(executor.POLL_S)

    def _print_progress(self) -> None:
        done = sum(code == 0 for code in self.codes.values())
        left = len(self.waiting) + len(self.running)
        eta = ""
        if self.durations:
            eta = f", ETA about {duration(left * statistics.mean(self.durations) / self.workers.count)}"
        print(f"{done} trained, {len(self.running)} running, {len(self.waiting)} waiting{eta}", flush=True)
        for training, *_ in self.running.values():
            if progress := read_progress(training.folder):
                of, eta = f"{progress['iteration']}/{progress['iterations']}", duration(progress["eta_s"])
                print(f"  {training.label}: iteration {of}, ETA {eta}", flush=True)

    def _finish(self) -> None:
        self._write()
        table = table_of(self._rows())
        with atomic_write(self.folder / TABLE) as file:
            file.write(f"{table}\n".encode())
        print(f"{table}\ntable: {self.folder / TABLE}")
        stage2 = [training for training in self.trainings if training.stage == 2 and training.done]
        if stage2:
            paths = [str(training.last_checkpoint) for training in stage2]
            print("compare them: " + command_line("evaluate", ["--checkpoint", *paths]), flush=True)

    def _rows(self) -> list[dict[str, Any]]:
        return [self._row(training) for training in self.trainings]

    def _row(self, training: Training) -> dict[str, Any]:
        record, checkpoint = training.record, training.last_checkpoint
        status, result = record.get("status", "not started"), record.get("result") or {}
        if self.codes.get(training.key, 0) not in (0, *process.STOPPED) and status != FINISHED:
            status = "failed"
        return {
            "training": training.label,
            "status": status,
            "iterations": training.iterations,
            **{name: result.get(name) for name in ("reward", "episode_steps")},
            "checkpoint": None if checkpoint is None else str(checkpoint),
        }

    def _write(self) -> None:
        write_json(self.folder / STATE, {"trainings": self._rows()})


def table_of(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as a Markdown table."""
    table = PrettyTable([name.replace("_", " ") for name in rows[0]], align="l", float_format=".2")
    table.none_format = ""
    table.set_style(TableStyle.MARKDOWN)
    cells = [[escape_markdown(value) if isinstance(value, str) else value for value in row.values()] for row in rows]
    table.add_rows(cells)
    return table.get_string()


def _written(value: Any) -> str:
    """Return a value as an override token has it."""
    return value if isinstance(value, str) else json.dumps(value).replace(" ", "")
