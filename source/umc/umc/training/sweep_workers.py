# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Where the trainings of a sweep run: as children of this process, or on the workers of a Ray cluster."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from umc.utils.errors import UmcError
from umc.utils.logged_process import PARENT

REQUIREMENT = "ray[default]"
"""What Ray needs to be installed."""

ANSWER_TIME = 10.0
"""How long a cluster may take to answer [s]."""

LOOK_EVERY_S = 0.5
"""Time between two looks at a child [s]."""

SAVE_TIME_S = 300.0
"""How long a training that is told to stop may take to save and end [s]: an iteration of the slowest on a CPU."""

LOST = 1
"""Exit status of a training whose worker is gone."""


class Running(Protocol):
    """A training that has been started."""

    def poll(self) -> int | None:
        """Its exit status; None while it runs."""
        ...

    def stop(self) -> None:
        """Tell it to save and end."""
        ...


class Workers(Protocol):
    """Where trainings run."""

    count: int
    """How many at once."""

    def start(self, command: list[str], log: Path, slot: int) -> Running:
        """Start a training; ``slot`` counts those that run at once."""
        ...


class _Child:
    """A child of this process."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.process = _spawn(command, log, close_fds=False)  # it holds the sweep's lock, too

    def poll(self) -> int | None:
        """See :class:`Running`."""
        return _shell_code(self.process.poll())

    def stop(self) -> None:
        """See :class:`Running`."""
        self.process.terminate()


class LocalWorkers:
    """Children of this process, each with a GPU of its own where there are several.

    Args:
        count: How many at once; one for each GPU, else one, if None.
        device: Device of all of them, if it was given.
    """

    def __init__(self, count: int | None, device: str | None) -> None:
        import torch

        gpus = 0 if device is not None else torch.cuda.device_count()
        self.gpus = gpus
        self.count = count or max(gpus, 1)

    def start(self, command: list[str], log: Path, slot: int) -> Running:
        """See :class:`Workers`."""
        device = ["--device", f"cuda:{slot % self.gpus}"] if self.gpus > 1 else []
        return _Child([*command, *device], log)


class _Task:
    """A task of Ray."""

    def __init__(self, ray: Any, reference: Any) -> None:
        self.ray, self.reference = ray, reference

    def poll(self) -> int | None:
        """See :class:`Running`."""
        done, _ = self.ray.wait([self.reference], timeout=0)
        if not done:
            return None
        try:
            return self.ray.get(self.reference)
        except self.ray.exceptions.TaskCancelledError:
            return 128 + signal.SIGTERM
        except self.ray.exceptions.RayError:
            return LOST

    def stop(self) -> None:
        """See :class:`Running`."""
        self.ray.cancel(self.reference, force=False)


class RayWorkers:
    """Workers of a Ray cluster; they see ``logs`` on a disk that all machines share.

    Args:
        ray: The module, connected.
        count: How many at once.
        device: Device of all of them, if it was given.
    """

    def __init__(self, ray: Any, count: int, device: str | None) -> None:
        self.ray, self.count = ray, count
        gpus = 1 if device != "cpu" and ray.cluster_resources().get("GPU") else 0
        # a training is started again by the sweep itself, from its last checkpoint
        self.work = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=0)(run_on_worker)

    def start(self, command: list[str], log: Path, slot: int) -> Running:
        """See :class:`Workers`."""
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        return _Task(self.ray, self.work.remote(command[1:], str(log.resolve()), os.getcwd()))


@contextlib.contextmanager
def ray_workers(count: int, address: str | None, device: str | None = None) -> Iterator[RayWorkers]:
    """Connect to a cluster, or start one on this machine.

    Args:
        count: Trainings at once.
        address: Address of the cluster; None starts one.
        device: Device of all trainings, if it was given; each on a GPU sees one, its own.

    Yields:
        Its workers.

    Raises:
        UmcError: If Ray is missing or does not answer, or a GPU was chosen by its number.
    """
    if device is not None and device.startswith("cuda:"):
        raise UmcError(f"--ray gives each training a GPU of its own; give --device cuda or cpu instead of {device}")
    if importlib.util.find_spec("ray") is None:
        raise UmcError(f"--ray needs Ray, which is not installed; pip install '{REQUIREMENT}', or leave --ray out")
    if address is not None:
        check_address(address)
    ray: Any = importlib.import_module("ray")
    try:
        if address is None:
            ray.init(num_cpus=count, include_dashboard=False, log_to_driver=False, configure_logging=False)
        else:
            ray.init(address=address, log_to_driver=False)
        yield RayWorkers(ray, count, device)
    except (ConnectionError, ray.exceptions.RayError) as error:
        raise UmcError(f"Ray: {str(error).strip().splitlines()[-1]}; what is trained is kept") from error
    finally:
        ray.shutdown()


def check_address(address: str) -> None:
    """Refuses an address where nobody answers; Ray itself would try for many minutes.

    Args:
        address: ``host:port``, ``ray://host:port``, or ``auto``, which Ray looks up itself.

    Raises:
        UmcError: If nobody answers.
    """
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdigit()):
        raise UmcError(f"--ray_address {address} is none; it looks like 10.0.0.1:6379, ray://10.0.0.1:10001 or auto")
    try:
        socket.create_connection((host, int(port)), ANSWER_TIME).close()
    except (OSError, OverflowError) as error:
        raise UmcError(f"no Ray cluster answers at {address} ({error}); start one with: ray start --head") from error


def run_on_worker(arguments: list[str], log: str, folder: str) -> int:
    """What a worker of Ray does: a process of its own trains.

    Args:
        arguments: Script and its arguments, for the worker's own Python.
        log: File for its output; exists where the disk is shared.
        folder: Folder that paths are relative to.

    Returns:
        Exit status.
    """
    if not Path(log).is_file():
        raise FileNotFoundError(f"this machine does not see {log}; put --logs on a disk that all machines share")
    # Ray cancels by SIGINT, which a worker ignores whose sweep was started by a script in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = _spawn([sys.executable, *arguments], Path(log), folder)
    try:
        while (code := process.poll()) is None:
            time.sleep(LOOK_EVERY_S)  # Ray cancels between two lines of Python
    except BaseException:
        process.terminate()
        process.wait(SAVE_TIME_S)
        raise
    return _shell_code(code) or 0


def _spawn(command: list[str], log: Path, folder: str | None = None, close_fds: bool = True) -> subprocess.Popen[bytes]:
    """Start a training whose output goes to a file; a terminal's Ctrl-C does not reach it, but it ends when we do."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
            cwd=folder,
            env={**os.environ, PARENT: str(os.getpid())},
            close_fds=close_fds,
        )


def _shell_code(code: int | None) -> int | None:
    """As shells say it: a child killed by a signal reports its negative number."""
    return code if code is None or code >= 0 else 128 - code
