# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``--quick``: both stages, evaluation and video in a few minutes, each in its own process."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from umc.rl.checkpoint import TERRAIN_KEY, newest_checkpoint
from umc.tasks.task_cfg import physics_name, pick_device, resolve_cfgs
from umc.training.arguments import SIZE_KEYS, TrainRequest
from umc.utils.config import SELECTORS, override_key
from umc.utils.console import quiet
from umc.utils.errors import UmcError
from umc.utils.naming import experiment_folder, experiment_name, run_stamp
from umc.utils.process import ChildFailed, run_umc

NUM_ENVS = 16
ITERATIONS = 3
"""Sizes of each stage: enough to pass through every part, far too little to learn."""


@dataclasses.dataclass
class Phase:
    """A command that has been started."""

    name: str
    log: Path | None
    """Its output; None where it went to the terminal."""
    seconds: float = 0.0
    """How long it took [s]."""
    code: int | None = None
    """Its exit status; None while it runs."""


class Phases:
    """Commands of ``umc`` that run one after another; with a folder ``logs`` their output is kept there, too.

    ``on_change`` is called when a command has been announced and when it has ended.
    """

    def __init__(self, total: int, logs: Path | None = None, on_change: Callable[[], object] = lambda: None) -> None:
        self.started: list[Phase] = []
        self._total, self._logs, self._on_change = total, logs, on_change

    def run(self, name: str, command: str, arguments: Sequence[str]) -> None:
        """Run a command; raise ChildFailed if it does not end with 0."""
        number = len(self.started) + 1
        print(f"[{number}/{self._total}] {name}", flush=True)
        log = None if self._logs is None else self._logs / f"{number}_{name.replace(' ', '_')}.log"
        phase = Phase(name, log)
        self.started.append(phase)
        self._on_change()
        start = time.monotonic()
        try:
            run_umc(command, arguments, log=log)
            phase.code = 0
        except ChildFailed as failure:
            phase.code = failure.code
            raise
        finally:
            phase.seconds = time.monotonic() - start
            self._on_change()


def run_quick(request: TrainRequest) -> int:
    """Train, evaluate and film with few envs and iterations; sizes of the command line win."""
    folder, phases = quick_folder(request), Phases(number_of_phases(request))
    checkpoint = run_pipeline(request, folder, phases)
    print(f"times: {', '.join(f'{phase.name} {phase.seconds:.0f} s' for phase in phases.started)}")
    print("--quick is done: every part works.")
    print(f"checkpoint: {checkpoint}")
    print(f"report: {one_of(folder / 'evaluation', 'report.json')}")
    print(f"video: {one_of(folder / 'video', '*.mp4')}", flush=True)
    return 0


def quick_folder(request: TrainRequest) -> Path:
    """Return a new folder for everything that a quick run writes."""
    name = f"{run_stamp()}_{request.task}_{request.spec.name}"
    return (request.options.logs / "quick" / name).resolve()


def number_of_phases(request: TrainRequest) -> int:
    """Return how many commands :func:`run_pipeline` runs."""
    return 3 if request.stage1_agent is None else 4


def run_pipeline(
    request: TrainRequest, folder: Path, phases: Phases, num_envs: int = NUM_ENVS, iterations: int = ITERATIONS
) -> Path:
    """Train, evaluate and film in a folder, with these sizes unless the request has others; return the checkpoint."""
    options = request.options
    options.logs = folder / "logs"
    typed = {override_key(token) for token in request.overrides}
    for name, few in (("num_envs", num_envs), ("max_iterations", iterations)):
        if SIZE_KEYS[name] not in typed:
            setattr(options, name, getattr(options, name) or few)
    print("This checks that every part works; it is too short to learn to walk.")
    request.overrides = [*request.overrides, *quick_ground(request)]
    if request.stage1_agent is not None:
        phases.run("Stage 1", "train", request.stage1_arguments())
    this = ["--task", request.task, *request.flags(request.agent), *request.overrides]
    phases.run(f"Stage {request.stage}", "train", this)
    checkpoint = newest_checkpoint(trained_in(request))
    if checkpoint is None:
        folder = trained_in(request)
        raise UmcError(f"training left no checkpoint in {folder}; leave out agent.experiment_name with --quick")
    shown = ["--quick", *(token for token in request.overrides if override_key(token) in SELECTORS)]
    shown += ["--device", options.device] if options.device else []
    policy = ["--checkpoint", str(checkpoint)]
    out = folder / "evaluation"
    phases.run("evaluation", "evaluate", [*policy, "--task", request.task, "--out", str(out), *shown])
    phases.run("video", "film", [*policy, "--out", str(folder / "video"), *shown])
    return checkpoint


def trained_in(request: TrainRequest) -> Path:
    """Return the folder of the runs of :func:`run_pipeline` at the stage that is asked for."""
    runs = experiment_name(request.robot, request.spec.name, request.stage)
    return experiment_folder(request.options.logs, runs, request.library)


def quick_ground(request: TrainRequest) -> list[str]:
    """Return the override for flat ground if the task has tracks, on which Newton on a CPU takes six times as long."""
    from umc.terrains import ground_name

    named = any(override_key(token).startswith((TERRAIN_KEY, "presets")) for token in request.overrides)
    if named or pick_device(request.options.device) != "cpu":
        return []
    with quiet():
        env_cfg, _ = resolve_cfgs(request.task, request.agent, request.overrides)
    ground = ground_name(env_cfg.scene.terrain)
    if ground == "flat" or physics_name(env_cfg) != "newton_mjwarp":
        return []
    print(f"flat ground, since Newton on a CPU is slow on the tracks of the task; {TERRAIN_KEY}={ground} keeps them")
    return [f"{TERRAIN_KEY}=flat"]


def one_of(folder: Path, pattern: str) -> Path:
    """Return the first file that matches; raise UmcError if there is none."""
    found = sorted(folder.rglob(pattern))
    if not found:
        raise UmcError(f"no {pattern} in {folder}, although the script that writes it ended with 0")
    return found[0]
