# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A child whose output goes to a file and to the screen, that never outlives its parent for long."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from umc.utils.errors import UmcError
from umc.utils.process import check_code, signals_passed_to

PARENT = "UMC_PARENT"
"""Environment variable that tells a child whose end is its own."""

LOCK = ".lock"
"""File in a recipe's folder that whoever works on it holds."""

LOOK_EVERY_S = 0.2
"""Time between two looks at a child's output [s]."""

WAIT_S = 300.0
"""How long a second start waits for the first one's child to save and end [s]: an iteration of the slowest recipes."""

PR_SET_PDEATHSIG = 1
"""Linux: number of the call that sends a signal to a process when its parent dies."""


def run_logged(script: Path, arguments: list[str], log: Path, on_line: Callable[[str], None]) -> None:
    """Runs a script of this repository, keeps its output and hands it on line by line.

    The output goes through a file, not a pipe: when this process is killed, the child can still print while it saves.

    Args:
        script: File to run.
        arguments: Its arguments.
        log: File that its output is appended to.
        on_line: Called with every line, without its end.

    Raises:
        ChildFailed: If it did not end with 0.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, PARENT: str(os.getpid()), "PYTHONUNBUFFERED": "1"}
    with log.open("a", encoding="utf-8") as output, log.open(encoding="utf-8", errors="replace") as text:
        text.seek(0, os.SEEK_END)
        child = subprocess.Popen(
            [sys.executable, str(script), *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,  # a terminal's Ctrl-C reaches it once, by this process
            env=environment,
            close_fds=False,  # it holds the lock, too
        )
        with signals_passed_to(child):
            rest = ""
            while (code := child.poll()) is None:
                rest = _hand_on(text, rest, on_line)
                time.sleep(LOOK_EVERY_S)
            rest = _hand_on(text, rest, on_line)
            if rest:
                on_line(rest)
    check_code(script, code)


def _hand_on(text: TextIO, rest: str, on_line: Callable[[str], None]) -> str:
    """Hands whole lines on; what is left has no end yet."""
    *lines, rest = (rest + text.read()).split("\n")
    for line in lines:
        on_line(line)
    return rest


def end_with_parent() -> None:
    """Lets this process get SIGTERM, on which a training saves and ends, when the one that started it dies.

    Does nothing where no parent asked for it, or the system is not Linux.
    """
    parent = os.environ.pop(PARENT, None)
    if parent is None or sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it died before the call
        raise SystemExit(128 + signal.SIGTERM)


@contextlib.contextmanager
def one_at_a_time(folder: Path, what: str) -> Iterator[None]:
    """Keeps two processes from working in one folder; the lock goes with the last process that holds it.

    Args:
        folder: The folder.
        what: What is worked on, for the messages.

    Raises:
        UmcError: If another process holds it for longer than :data:`WAIT_S`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as lock:
        os.set_inheritable(lock.fileno(), True)
        until = time.monotonic() + WAIT_S
        told = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > until:
                    raise UmcError(
                        f"another process works on {what} (it holds {folder / LOCK}); wait for it, or end it"
                    ) from error
                if not told:
                    told = True
                    print(f"another process still works on {what}; waiting up to {WAIT_S:.0f} s for it", flush=True)
                time.sleep(LOOK_EVERY_S)
        yield
