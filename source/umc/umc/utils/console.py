# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What reaches the console: no message that no user can act on, all other warnings and errors; progress bars."""

from __future__ import annotations

import contextlib
import datetime
import io
import logging
import os
import re
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tqdm import tqdm

NO_GPU = b"Could not find or load the NVIDIA CUDA driver"
"""Warp's remark on every machine without a GPU, written by native code past ``sys.stderr``."""

IGNORED_WARNINGS = (
    (FutureWarning, "Newton shape color replacement is enabled"),
    (UserWarning, "In Newton, body com pose always has unit quaternion"),
    (UserWarning, "Opacity data contains"),
    (RuntimeWarning, "ovphysx is in CPU-only mode, but the installed Warp was built with CUDA"),
)
"""Warnings of Isaac Lab 3.0.0 and ovphysx 0.6.4, printed at every start, that no user can act on."""

IGNORED_PHYSX_WARNINGS = (
    "is not resident in UsdUtilsStageCache",  # how Isaac Lab passes its stage
    "GPU broadphase requires a CUDA context manager",  # on the CPU there is none
    "with more than 4 velocity iterations being added to a TGS scene",  # chosen: docs/engines.md
)
"""Parts of warnings that PhysX on a CPU gives at every start, and that no user can act on."""

TERMINAL_INTERVAL, LOG_INTERVAL = 0.2, 10.0
"""Least time between two updates of a progress bar [s]: in a terminal, and where each is a line of a log."""


def ignore_known_warnings() -> None:
    """Silence :data:`IGNORED_WARNINGS`; every other warning stays."""
    for category, message in IGNORED_WARNINGS:
        warnings.filterwarnings("ignore", message=message, category=category)


def filter_physx_messages(env_cfg: Any, device: str) -> None:
    """Send the messages of PhysX on a CPU through a logger that drops :data:`IGNORED_PHYSX_WARNINGS`."""
    from isaaclab_ov.physics import OvPhysxCfg

    if not isinstance(env_cfg.sim.physics, OvPhysxCfg) or device != "cpu":
        return
    import ovphysx

    ovphysx.bootstrap()
    ovphysx.enable_python_logging(physx_logger().name, min_severity=ovphysx.LogLevel.WARNING)
    ovphysx.enable_default_log_output(False)  # else each comes twice


def physx_logger() -> logging.Logger:
    """Set up the logger that PhysX's messages go to: all but :data:`IGNORED_PHYSX_WARNINGS` reach standard error."""
    logger = logging.getLogger("umc.physx")
    # a handler of its own: the package's logger has one that drops everything
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("[PhysX] %(levelname)s: %(message)s"))
    handler.addFilter(lambda record: not any(part in record.getMessage() for part in IGNORED_PHYSX_WARNINGS))
    logger.handlers, logger.propagate, logger.disabled = [handler], False, False
    logger.setLevel(logging.WARNING)  # else the root's counts, which Hydra's composition leaves at ERROR
    return logger


def progress_bar(total: int, title: str | None, unit: str = "step") -> tqdm:
    """Return a progress bar with rate and time left, which prints rarely without a terminal; ``title`` None: none."""
    # a mean over the last seconds: after a stop (Ctrl-Z, a laptop that sleeps) it is right again in a minute or three
    interval, smoothing = (TERMINAL_INTERVAL, 0.05) if sys.stderr.isatty() else (LOG_INTERVAL, 0.3)
    return tqdm(
        total=total,
        desc=title,
        unit=unit,
        mininterval=interval,
        smoothing=smoothing,
        dynamic_ncols=True,
        disable=title is None,
    )


_MARKDOWN = re.compile(r"[\\`*|]|&(?=#?\w+;)|(?<=\])\(|(?<!\w)_|_(?!\w)")
"""Characters that Markdown would not print as they are; an underscore inside a word is printed."""

_TAG = re.compile(r"<(?=[a-zA-Z/!?])")


def escape_markdown(text: str) -> str:
    """Escape what Markdown would read as a mark, a tag, a link or the border of a cell."""
    return _TAG.sub("&lt;", _MARKDOWN.sub(r"\\\g<0>", text))


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[Any]], numbers: bool = False) -> list[str]:
    """Return the lines of a table in Markdown; with ``numbers``, all columns but the first are aligned to the right."""
    rule = ["---", *["---:" if numbers else "---"] * (len(head) - 1)]
    return ["| " + " | ".join(map(str, line)) + " |" for line in (head, rule, *rows)]


def duration(seconds: float) -> str:
    """Return a time [s] as hours, minutes and seconds."""
    return str(datetime.timedelta(seconds=round(seconds)))


SOON_S, LONG_S = 0.7, 2.0
"""Seconds after which a phase of a command is shown, and which it took at least where that is shown at its end."""

WAITING_LINE_S, WAITING_TICK_S = 15.0, 1.0
"""Seconds between two lines about a wait in a pipe, and between two updates on a terminal."""

FIRST_START = "compiling Warp kernels on the first start"
"""Why the start of a simulation may take minutes."""

CLEAR_LINE = "\r\x1b[2K"


@contextlib.contextmanager
def waiting(what: str, reason: str = "", after: float = 0.0) -> Iterator[Callable[[str], None]]:
    """Show what is being waited for: the seconds on a terminal, in a pipe a line every :data:`WAITING_LINE_S`.

    Nothing is shown in the first ``after`` seconds. Yields a function that prints how long a phase has taken since the
    one before; call it with the phase's name.
    """
    stream, started, over = sys.stdout, time.monotonic(), threading.Event()  # stdout may be redirected in the block
    terminal = stream is not None and stream.isatty()
    why = f" ({reason})" if reason else ""

    def put(line: str) -> None:
        text = f"{CLEAR_LINE}{line}" if terminal else f"{line}\n"
        with contextlib.suppress(OSError):  # a closed pipe, a full disk: the next print of the command itself ends it
            print(text, end="", file=stream, flush=True)

    def show() -> None:
        if after:
            if over.wait(after):
                return
            put(f"{what} ...")
        while not over.wait(WAITING_TICK_S if terminal else WAITING_LINE_S):
            put(f"{what}: {time.monotonic() - started:.0f} s{why}")

    def finish_phase(name: str) -> None:
        nonlocal phase_started
        now = time.monotonic()
        print(f"{CLEAR_LINE if terminal else ''}  {name}: {now - phase_started:.1f} s", file=stream, flush=True)
        phase_started = now

    phase_started = started
    if not after:
        put(f"{what} ...")
    thread = threading.Thread(target=show, name="umc waiting", daemon=True)
    thread.start()
    try:
        yield finish_phase
    finally:
        over.set()
        thread.join()
        if terminal:
            print(CLEAR_LINE, end="", file=stream, flush=True)


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    """Show a phase of a command that may take long, as :func:`waiting` does, and at its end how long it took.

    Nothing is shown of a phase shorter than :data:`SOON_S`, and no end of one shorter than :data:`LONG_S`.
    """
    stream, started = sys.stdout, time.monotonic()
    with waiting(what, after=SOON_S):
        yield
    if (seconds := time.monotonic() - started) >= LONG_S:
        print(f"{what}: {seconds:.1f} s", file=stream, flush=True)


@contextlib.contextmanager
def quiet(log: io.StringIO | None = None) -> Iterator[None]:
    """Keep Isaac Lab's prints, for which it has no option, in ``log`` or drop them; standard error stays."""
    with contextlib.redirect_stdout(io.StringIO() if log is None else log):
        yield


@contextlib.contextmanager
def without_gpu_remark() -> Iterator[None]:
    """Drop Warp's remark that there is no GPU from standard error; everything else passes through afterwards."""
    sys.stderr.flush()
    console = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(console, 2)
            held.seek(0)
            lines = [line for line in held.read().splitlines(keepends=True) if NO_GPU not in line]
            os.write(console, b"".join(lines))
            os.close(console)
