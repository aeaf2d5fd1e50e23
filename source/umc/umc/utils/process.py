# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Other scripts of the repository, each in a process of its own: one process holds one engine and one env."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.utils.ranks import ranks_from_env, without_ranks

if TYPE_CHECKING:
    from umc.training.arguments import TrainRequest


LAUNCHER = "UMC_LAUNCHER"
"""Environment variable by which ``isaaclab.sh -p`` says how it was called."""


STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM)
"""Exit statuses of a script that was told to stop."""


class ChildFailed(Exception):
    """A script that this one depends on did not end with 0."""

    def __init__(self, script: str, code: int) -> None:
        super().__init__(f"{script} ended with {code}")
        self.code = code
        # its user stopped it, and it has said what it saved: no error to look for
        self.line = f"{script} was stopped" if code in STOPPED else f"error: {self}; see its message above"
        """What the screen says of it."""


def typed(script: str | Path, arguments: list[str]) -> str:
    """A script's command as its user would type it.

    Args:
        script: The script; a path below the working directory is shortened.
        arguments: Its arguments.

    Returns:
        The command, by the launcher that this process was started by: who uses it need not have an environment active.
    """
    path = Path(script)
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    launcher = os.environ.get(LAUNCHER)
    return shlex.join([*([launcher, "-p"] if launcher else ["python"]), str(path), *arguments])


def run_script(script: Path, arguments: list[str], alone: bool = False) -> None:
    """Run a script of this repository with this Python and wait for it.

    Ctrl-C and SIGTERM are passed on, once: the child saves and ends, then so does this process.

    Args:
        script: File to run.
        arguments: Its arguments.
        alone: Whether the child works for itself where this process is one of several.

    Raises:
        ChildFailed: If it did not end with 0.
    """
    # a group of its own: a terminal's Ctrl-C must not reach the child twice, that would keep it from saving; torchrun
    # keeps terminals away and ends whole groups, with SIGKILL at last: there the child has to stay in its parent's
    group = None if ranks_from_env().several and not alone else 0
    env = without_ranks(os.environ) if alone else None
    child = subprocess.Popen([sys.executable, str(script), *arguments], process_group=group, env=env)

    with signals_passed_to(child):
        code = child.wait()
    check_code(script, code)


@contextlib.contextmanager
def signals_passed_to(child: subprocess.Popen[Any]) -> Iterator[None]:
    """Pass Ctrl-C and SIGTERM on to a child as long as the block lasts."""

    def pass_on(signum: int, _frame: Any) -> None:
        child.send_signal(signum)

    before = {signum: signal.signal(signum, pass_on) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def check_code(script: Path, code: int) -> None:
    """Raise :class:`ChildFailed` over an exit status that is not 0."""
    if code != 0:
        # a child killed by a signal reports its negative number; shells say 128 + number
        raise ChildFailed(script.name, code if code > 0 else 128 - code)


def common_flags(request: TrainRequest, agent: str) -> list[str]:
    """The flags of a training that its children take over.

    Args:
        request: Checked command line.
        agent: Agent that the child trains.

    Returns:
        Flags and values as typed.
    """
    options = request.options
    flags = ["--agent", agent, "--logs", str(options.logs)]
    for name in ("num_envs", "seed", "max_iterations", "device", "run_name"):
        value = getattr(options, name)
        if value not in (None, ""):
            flags += [f"--{name}", str(value)]
    return flags + [f"--{name}" for name in ("deterministic", "distributed") if getattr(options, name)]
