# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``run.json``: everything needed to repeat a run."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveInt

import umc
from umc.utils.config import OpenFile, validated
from umc.utils.errors import UmcError
from umc.utils.io import write_json
from umc.utils.naming import library_of
from umc.utils.text import read_json

RUN_FILE = "run.json"

PROGRESS_FILE = "progress.json"
"""File in a run folder with the progress of its training; rewritten after every iteration."""

FINISHED = "finished"
"""Status of a run that has had all its iterations."""

LINE_EVERY_S = 60.0
"""Time between two lines about the progress of a recipe or a sweep [s]."""

PACKAGES = {
    "umc": "umc",
    "isaaclab": "isaaclab",
    "torch": "torch",
    "warp": "warp-lang",
    "mujoco_warp": "mujoco-warp",
    "newton": "newton",
    "ovphysx": "ovphysx",
    "rsl_rl": "rsl-rl-lib",
    "skrl": "skrl",
}
"""Name in the file and name of the distribution."""


def now() -> str:
    """Return the time in UTC, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str | None]:
    """Return the versions of what a run depends on; None where a package is missing."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name, distribution in PACKAGES.items():
        try:
            found[name] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def git_state() -> dict[str, Any] | None:
    """Return the commit of this package's checkout and whether it has changes; None without a checkout or git."""
    folder = Path(umc.__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # else the repository around a virtual environment answers
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None


class RunRecord:
    """The file ``run.json`` of one run folder, rewritten atomically whenever something changes."""

    def __init__(self, folder: Path, fields: dict[str, Any]) -> None:
        """Hold the fields of a run; nothing is written before :meth:`write`."""
        self.path = folder / RUN_FILE
        self.fields = fields
        self.writes = True
        """Whether the file is written: by one of several processes only."""
        self.held = False
        """Whether changes wait for :meth:`release`: a refused ``--resume`` leaves the file as it was."""

    def write(self, **changes: Any) -> None:
        """Change fields and write the file."""
        self.fields.update(changes)
        if self.held or not self.writes:
            return
        write_json(self.path, self.fields)

    def release(self) -> None:
        """Write the changes that were held back, and from now on every one."""
        if self.held:
            self.held = False
            self.write()

    def start(self, argv: list[str]) -> None:
        """Note that a process works on this run now."""
        started = {"command": shlex.join([sys.executable, *sys.argv[:1], *argv]), "started_at": now()}
        started |= {"git": git_state(), "versions": versions()}
        self.write(status="running", starts=[*self.fields.get("starts", []), started], ended_at=None)

    def finish(self, status: str, **changes: Any) -> None:
        """Note how the process ended: ``finished``, ``interrupted`` or ``failed``."""
        self.write(status=status, ended_at=now(), **changes)


def new_record(folder: Path, task: str, agent: str, **fields: Any) -> RunRecord:
    """Return the record of a new run, not written yet.

    Its first five fields are Isaac Lab's run manifest, so that ``isaaclab play --checkpoint latest`` finds the run.
    """
    manifest = {
        "version": 1,
        "library": library_of(agent),
        "task": task,
        "created_at": now(),
        "metadata": {"agent": agent},
    }
    return RunRecord(folder, {**manifest, "agent": agent, **fields})


class _Record(OpenFile):
    """Fields of ``run.json`` that are read; others are kept, since this file is also Isaac Lab's manifest."""

    task: str
    agent: str
    seed: int
    overrides: list[str]
    agent_overrides: list[str] = []
    num_envs: PositiveInt | None = None
    max_iterations: PositiveInt | None = None
    num_steps_per_env: PositiveInt | None = None
    status: str | None = None
    device: str | None = None
    physics: str | None = None
    starts: list[dict[str, Any]] = []
    parent: dict[str, Any] | None = None
    fault_curriculum: list[list[int | list[float]]] = []
    teacher: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    changed: dict[str, int] | None = None
    """Iterations of the checkpoint from which starts on an override is in effect, by its key."""


def read_record(folder: Path, fix: str = "restore it, or give another run") -> dict[str, Any]:
    """Read the ``run.json`` of a run folder; raise UmcError if there is none, or with the ``fix`` if it is invalid."""
    path = folder / RUN_FILE
    if not path.exists():
        raise UmcError(f"{folder} has no {RUN_FILE}: it is not a run of umc train; give another --checkpoint")
    fields = read_json(path, fix, allow_nan=True)  # the reward of a run may be NaN
    validated(_Record, fields, f"{path} is not a record of umc train ({fix})")
    return fields


class _Progress(OpenFile):
    """Fields of ``progress.json`` that are read."""

    model_config = ConfigDict(allow_inf_nan=False)

    iteration: NonNegativeInt
    iterations: NonNegativeInt
    env_steps_per_s: Annotated[float, Field(gt=0.0)]
    eta_s: Annotated[float, Field(ge=0.0)]


def write_progress(folder: Path, progress: dict[str, Any]) -> None:
    """Write how far a run is: iteration, iterations, env_steps_per_s, eta_s, reward and the last checkpoint."""
    write_json(folder / PROGRESS_FILE, progress, sync=False)


def read_progress(folder: Path) -> dict[str, Any] | None:
    """Return what :func:`write_progress` wrote; None before the first iteration, or if a power cut has damaged it."""
    path = folder / PROGRESS_FILE
    if not path.is_file():
        return None
    try:
        progress = read_json(path, "", allow_nan=True)
        validated(_Progress, progress, "")
    except UmcError:  # the next iteration writes it anew
        return None
    return progress
