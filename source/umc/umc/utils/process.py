# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Child processes: one process holds one engine and one env, so other commands run in processes of their own."""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import fcntl
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from umc.utils.distributed import ranks_from_env, without_ranks
from umc.utils.errors import UmcError

UMC = ("-m", "umc")
"""What Python runs as the command ``umc``; tests put a file of theirs in its place."""

SCRIPTS = ("train", "evaluate", "play", "export")
"""Commands that have a file in ``scripts``, too."""

LAUNCHER = "UMC_LAUNCHER"
"""Environment variable in which ``isaaclab.sh -p`` puts its own name."""

PARENT = "UMC_PARENT"
"""Environment variable with the process id of the parent, with which a child ends."""

STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM)
"""Exit statuses of a script that was interrupted or terminated."""

LOCK = ".lock"
LOCK_TIMEOUT_S = 300.0
"""Lock file of a folder, and how long to wait for a killed process's child [s]: it saves after its iteration."""

OWNER_BYTES = 1000
"""Longest content of a lock file that is read: process id, host, and since when."""

POLL_S = 0.2
"""Time between two looks at a child or a lock [s]."""

PR_SET_PDEATHSIG = 1
"""Linux: number of the prctl call that sends a signal to a process when its parent dies."""


class ChildFailed(Exception):
    """A command that this one depends on did not end with 0."""

    def __init__(self, command: str, code: int) -> None:
        super().__init__(f"umc {command} ended with {code}")
        self.code = code
        # a stopped child has already printed what it saved
        self.line = f"umc {command} was stopped" if code in STOPPED else f"error: {self}; see its message above"
        """Message for the user."""


def python_arguments(command: str) -> list[str]:
    """Return what Python runs for a command of ``umc``: a file of ``scripts`` if this process was started by one."""
    started = Path(sys.argv[0])
    if started.parent.name != "scripts" or started.suffix != ".py" or command not in SCRIPTS:
        return ["-m", "umc", command]
    script = started.with_name(f"{command}.py")
    return [str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)]


def command_line(command: str, arguments: Sequence[str]) -> str:
    """Return the line that a user types for a command of ``umc``, by the launcher that started this process."""
    launcher, words = os.environ.get(LAUNCHER), python_arguments(command)
    if launcher is None and words[0] == "-m":
        return shlex.join(["umc", command, *arguments])
    return shlex.join([*([launcher, "-p"] if launcher else ["python"]), *words, *arguments])


def spawn(
    command: Sequence[str],
    log: Path | None = None,
    cwd: Path | None = None,
    alone: bool = False,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[Any]:
    """Start a child that inherits the locks of :func:`lock_folder`; ``alone``: it is no rank of torchrun.

    ``environment`` is added to this process's variables.
    Its output is appended to ``log``, a file and not a pipe, so that an orphan can still print.
    """
    # a group of its own: Ctrl-C in a terminal must reach it once, through this process; torchrun signals whole groups
    group = None if ranks_from_env().is_distributed and not alone else 0
    given = {**os.environ, **(environment or {})}
    env = {**(without_ranks(given) if alone else given), PARENT: str(os.getpid())}
    with contextlib.ExitStack() as files:
        streams: dict[str, Any] = {}
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            output = files.enter_context(log.open("ab"))
            streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
            env["PYTHONUNBUFFERED"] = "1"
        return subprocess.Popen(command, process_group=group, env=env, cwd=cwd, close_fds=False, **streams)


def run_umc(
    command: str,
    arguments: Sequence[str],
    log: Path | None = None,
    on_poll: Callable[[], None] | None = None,
) -> None:
    """Run a command of ``umc`` in a child and wait for it; Ctrl-C and SIGTERM are passed on once, so that it can save.

    With ``log``, its output is kept there, too, and ``on_poll`` is called several times a second and at its end.
    """
    words = [sys.executable, *UMC, command, *arguments]
    with contextlib.ExitStack() as files:
        text = None
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            text = files.enter_context(log.open("a+", encoding="utf-8", errors="replace"))
        child = spawn(words, log)
        code = None
        with handle_signals(child.send_signal):
            while code is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = child.wait(POLL_S)
                if text is not None:
                    print(text.read(), end="", flush=True)
                if on_poll is not None:
                    on_poll()
    if code != 0:
        raise ChildFailed(command, exit_status(code))


@contextlib.contextmanager
def handle_signals(handler: Callable[[int], None]) -> Iterator[None]:
    """Call a function with the number of each Ctrl-C and SIGTERM, for which SIGHUP counts, during the block."""
    known = {signal.SIGINT: signal.SIGINT, signal.SIGTERM: signal.SIGTERM, signal.SIGHUP: signal.SIGTERM}
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup
        del known[signal.SIGHUP]
    before = {
        signum: signal.signal(signum, lambda number, _frame: handler(known[signal.Signals(number)])) for signum in known
    }
    try:
        yield
    finally:
        for signum, previous in before.items():
            signal.signal(signum, previous)


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Set environment variables for the duration of the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def exit_status(code: int) -> int:
    """Return an exit status as shells report it: 128 + number for a child killed by a signal."""
    return code if code >= 0 else 128 - code


def end_with_parent() -> None:
    """Request SIGTERM, on which a training saves, for when the process that spawned this one dies (Linux only)."""
    parent = os.environ.pop(PARENT, None)
    if parent is None or sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it died before the call
        raise SystemExit(128 + signal.SIGTERM)


@contextlib.contextmanager
def lock_folder(folder: Path, what: str, name: str = LOCK, inherit: bool = False) -> Iterator[None]:
    """Lock a folder, in which another process may do ``what`` at the same time; raise UmcError that names it.

    With ``inherit`` children have the lock, too: that of a killed process keeps it until it has saved, and is waited
    for. The operating system takes the lock from a dead process, so that none is left behind.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / name).open("a+", encoding="utf-8")
    except OSError as error:
        raise UmcError(f"cannot write to {folder} ({error.strerror}); choose another folder") from error
    # not filelock: that unlocks explicitly, which would take the lock from the children, too
    with file as lock:
        os.set_inheritable(lock.fileno(), inherit)
        until = time.monotonic() + LOCK_TIMEOUT_S
        if not _locked(lock) and not _owner_lives(lock):
            print(f"a child of a killed process still {what}; waiting up to {LOCK_TIMEOUT_S:.0f} s for it", flush=True)
            while not _locked(lock) and time.monotonic() < until:
                time.sleep(POLL_S)
        if not _locked(lock):
            raise UmcError(f"{_owner(lock)} {what}; wait for it, or end it")
        lock.truncate(0)
        since = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        print(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}), file=lock, flush=True)
        yield


def _locked(lock: IO[str]) -> bool:
    """Take a lock if it is free; return whether this process has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # NFS without its lock service
        raise UmcError(f"cannot lock {lock.name} ({error.strerror}); choose a folder on another disk") from error
    return True


def _read_owner(lock: IO[str]) -> dict[str, Any]:
    lock.seek(0)
    try:
        owner = json.loads(lock.read(OWNER_BYTES))
    except ValueError:  # it is about to be written
        return {}
    return owner if isinstance(owner, dict) else {}


def _owner(lock: IO[str]) -> str:
    """Return the process that took a lock, in words."""
    owner = _read_owner(lock)
    if not owner:
        return "another process"
    return f"process {owner.get('pid')} on {owner.get('host')} (since {owner.get('since')})"


def _owner_lives(lock: IO[str]) -> bool:
    """Return whether the process that took a lock may be there; its children outlive it for a while."""
    owner = _read_owner(lock)
    pid = owner.get("pid")
    if owner.get("host") != socket.gethostname() or not isinstance(pid, int) or pid < 1:
        return True
    with contextlib.suppress(PermissionError):  # it is another user's
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True
