# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A child whose output goes to a file and to the screen, that never outlives its parent for long."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from umc.utils import process
from umc.utils.process import PARENT, check_code, signals_passed_to

LOOK_EVERY_S = 0.2
"""Time between two looks at a child's output [s]."""


def run_logged(command: str, arguments: list[str], log: Path, on_line: Callable[[str], None]) -> None:
    """Runs a command of ``umc``, keeps its output and hands it on line by line.

    The output goes through a file, not a pipe: when this process is killed, the child can still print while it saves.

    Args:
        command: Its name.
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
            [sys.executable, *process.UMC, command, *arguments],
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
    check_code(command, code)


def _hand_on(text: TextIO, rest: str, on_line: Callable[[str], None]) -> str:
    """Hands whole lines on; what is left has no end yet."""
    *lines, rest = (rest + text.read()).split("\n")
    for line in lines:
        on_line(line)
    return rest
