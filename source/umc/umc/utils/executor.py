# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Runs jobs, each a Python process of its own, on this machine or on the workers of a Ray cluster.

Sweeps of trainings and evaluations use it. A job's files travel with it, so that workers need no shared disk unless the
job itself writes to one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from umc.utils.distributed import num_gpus
from umc.utils.errors import UmcError
from umc.utils.memory import available_bytes
from umc.utils.process import exit_status, spawn
from umc.utils.threads import cores

FOLDER = "{folder}"
"""Placeholder in the arguments of a job for its temporary folder."""

CONNECT_TIMEOUT_S = 10.0
"""How long a cluster may take to answer [s]."""

POLL_S = 0.5
"""Time between two looks at a process [s]."""

SAVE_TIMEOUT_S = 300.0
"""How long a stopped training may take to save [s]: an iteration of the slowest on a CPU."""

JOB_BYTES = 4_000_000_000
"""Memory that a training of 256 envs may need [byte]: A1's transformer on Newton (``umc/tasks/memory.py``)."""

LOST = 1
"""Exit status of a job whose worker is gone or does not see the job's files."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A Python process, and the files that travel to and from it."""

    arguments: tuple[str, ...]
    """Arguments of the Python interpreter; ``{folder}`` stands for the job's temporary folder."""
    log: Path | None = None
    """File to append its output to, on a disk that all workers share; None: a temporary one."""
    inputs: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    """Files to write into its folder before it starts, by relative path."""
    outputs: tuple[str, ...] = ()
    """Files to bring back from its folder, by relative path."""
    retries: int = 0
    """How often Ray starts it again if its machine is lost."""


@dataclasses.dataclass(frozen=True)
class Result:
    """How a job ended."""

    code: int
    """Exit status; 128 + number if a signal ended it."""
    output: str = ""
    """Last lines of what it printed, joined by `` | ``, or why it could not run."""
    files: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    """Those of its outputs that exist, by relative path."""


def run_all(executor: Executor, jobs: Iterable[Job]) -> Iterator[tuple[int, Result]]:
    """Run jobs, ``executor.count`` at once; yield place and result of each as it ends; stop all if left early."""
    waiting = list(enumerate(jobs))[::-1]
    running: dict[int, tuple[int, Running]] = {}
    try:
        while waiting or running:
            for slot in range(executor.count):
                if waiting and slot not in running:
                    number, job = waiting.pop()
                    running[slot] = (number, executor.start(job, slot))
            for slot, (number, process) in list(running.items()):
                if (result := process.poll()) is not None:
                    del running[slot]
                    yield number, result
            if running:
                time.sleep(POLL_S)
    finally:
        for _, process in running.values():
            process.stop()


class LocalProcess:
    """A job as a child of this process."""

    def __init__(
        self,
        job: Job,
        arguments: Iterable[str] = (),
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.job = job
        self._scratch = tempfile.TemporaryDirectory(prefix="umc_job_")
        self.folder = Path(self._scratch.name)
        for name, content in job.inputs.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.log = job.log or self.folder / "output.log"
        command = [argument.replace(FOLDER, str(self.folder)) for argument in (*job.arguments, *arguments)]
        self.process = spawn([sys.executable, *command], self.log, cwd, alone=True, environment=environment)

    def poll(self) -> Result | None:
        """Return its result; None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        files = {name: path.read_bytes() for name in self.job.outputs if (path := self.folder / name).is_file()}
        result = Result(exit_status(code), last_lines(self.log), files)
        self._scratch.cleanup()
        return result

    def stop(self) -> None:
        """Ask it to save and end."""
        self.process.terminate()


class LocalExecutor:
    """Children of this process, ``count`` at once, each on a GPU of its own, or with one thread on a CPU.

    Without a count there is one for each GPU; on a CPU one for each core, as far as memory suffices.
    """

    def __init__(self, count: int | None, device: str | None) -> None:
        self.gpus = 0 if device is not None else num_gpus()
        self.count = count or self.gpus or (1 if device not in (None, "cpu") else _jobs_of_cpu())
        self.environment = (
            {} if self.gpus or self.count == 1 else {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or "1"}
        )

    def start(self, job: Job, slot: int) -> LocalProcess:
        """Start a job; ``slot``, below ``count``, numbers those that run at once and chooses the GPU."""
        arguments = ["--device", f"cuda:{slot % self.gpus}"] if self.gpus > 1 else []
        return LocalProcess(job, arguments, environment=self.environment)


def _jobs_of_cpu() -> int:
    memory = available_bytes()
    return max(cores() if memory is None else min(cores(), memory // JOB_BYTES), 1)


class RayTask:
    """A job on a worker of a Ray cluster."""

    def __init__(self, ray: Any, reference: Any) -> None:
        self.ray, self.reference = ray, reference

    def poll(self) -> Result | None:
        """Return its result; None while it runs."""
        done, _ = self.ray.wait([self.reference], timeout=0)
        if not done:
            return None
        try:
            return self.ray.get(self.reference)
        except self.ray.exceptions.TaskCancelledError:
            return Result(128 + signal.SIGTERM)
        except self.ray.exceptions.RayError as error:
            return Result(LOST, f"Ray: {_last_line(error)}")

    def stop(self) -> None:
        """Ask it to save and end."""
        self.ray.cancel(self.reference, force=False)


class RayExecutor:
    """Workers of a Ray cluster, ``count`` jobs at once, each with a CPU and, if the cluster has them, a GPU."""

    def __init__(self, ray: Any, count: int, device: str | None) -> None:
        self.ray, self.count = ray, count
        gpus = 1 if device != "cpu" and ray.cluster_resources().get("GPU") else 0
        self.work = ray.remote(num_cpus=1, num_gpus=gpus)(run_on_worker)

    def start(self, job: Job, slot: int) -> RayTask:
        """Start a job; Ray chooses its GPU."""
        if job.log is not None:
            job.log.parent.mkdir(parents=True, exist_ok=True)
            job.log.touch()
            job = dataclasses.replace(job, log=job.log.resolve())
        return RayTask(self.ray, self.work.options(max_retries=job.retries).remote(job, os.getcwd()))


type Executor = LocalExecutor | RayExecutor
type Running = LocalProcess | RayTask


@contextlib.contextmanager
def ray_executor(count: int, address: str | None = None, device: str | None = None) -> Iterator[RayExecutor]:
    """Connect to a Ray cluster for ``count`` jobs at once; without an address, start one on this machine."""
    if device not in (None, "cpu", "cuda"):
        raise UmcError(f"--ray gives each process a GPU of its own; give --device cuda or cpu instead of {device}")
    if importlib.util.find_spec("ray") is None:
        raise UmcError("--ray needs Ray, which is not installed; pip install 'ray>=2.50,<2.53', or leave --ray out")
    if address is not None:
        check_address(address)
    ray: Any = importlib.import_module("ray")
    try:
        if address is None:
            ray.init("local", num_cpus=count, include_dashboard=False, log_to_driver=False, configure_logging=False)
        else:
            ray.init(address=address, log_to_driver=False)
        yield RayExecutor(ray, count, device)
    except (ConnectionError, ray.exceptions.RayError) as error:
        raise UmcError(f"Ray: {_last_line(error)}; what is finished is kept") from error
    finally:
        ray.shutdown()


def check_address(address: str) -> None:
    """Raise UmcError if nobody answers at ``host:port`` or ``ray://host:port``; Ray itself would try for minutes."""
    if address == "auto":  # Ray looks it up
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdecimal()):
        raise UmcError(
            f"--ray_address {address} is not a Ray address; it looks like 10.0.0.1:6379, ray://10.0.0.1:10001 or auto"
        )
    try:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise UmcError(f"no Ray cluster answers at {address} ({error}); start one with: ray start --head") from error


def run_on_worker(job: Job, cwd: str) -> Result:
    """Run a job in a process of its own; Ray calls this on a worker."""
    if job.log is not None and not job.log.is_file():
        return Result(LOST, f"this machine does not see {job.log}; put --logs on a disk that all machines share")
    # Ray cancels by SIGINT, which a worker ignores if its driver was started by a script in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = LocalProcess(job, cwd=Path(cwd) if Path(cwd).is_dir() else None)
    try:
        while (result := process.poll()) is None:
            time.sleep(POLL_S)  # Ray cancels between two lines of Python
    except BaseException:
        process.stop()
        process.process.wait(SAVE_TIMEOUT_S)
        raise
    return result


def _last_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


def last_lines(log: Path) -> str:
    """Return the last five lines of a log that are not empty, joined by `` | ``."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return " | ".join([line for line in text.splitlines() if line.strip()][-5:])
