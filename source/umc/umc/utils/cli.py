# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What all commands share: one-line errors, exit statuses, and the one place that turns exceptions into them."""

from __future__ import annotations

import argparse
import difflib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from umc.utils.distributed import LARGEST_SEED, RankLostError, SharedError, ranks_from_env
from umc.utils.errors import UmcError
from umc.utils.outputs import disk_error
from umc.utils.process import ChildFailed

FAILED = 1
"""Exit status of a run that lost one of its processes, or of a sweep of which a part failed."""

MOST_NAMES = 12
"""Most names that a message lists."""

MOST_WORKERS = 1024
"""Most processes that a command starts at once; each takes a core and gigabytes."""

USAGE_ERROR = 2
"""Exit status of a user's mistake."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, or SIGHUP of a terminal that closes, which ends a command as Ctrl-C does."""

    signum = signal.SIGTERM


class Parser(argparse.ArgumentParser):
    """Argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Raise what the command prints as one line."""
        raise UmcError(message)

    def parse_with_overrides(
        self, argv: Sequence[str], sections: tuple[str, ...] = ("env.",)
    ) -> tuple[argparse.Namespace, list[str]]:
        """Return the flags and the overrides of some sections, of an env cfg without; any other word is an error."""
        options, overrides = self.parse_known_args(argv)
        if unknown := [token for token in overrides if not token.startswith(sections) or "=" not in token]:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, overrides


def run_main(work: Callable[[list[str]], int], argv: Sequence[str], stopped: str = "stopped") -> int:
    """Run a command; every error of a user, of a child or of another process becomes one line and an exit status.

    The status is the command's own or its child's, 1 if another process of the run is gone, 2 after a user's mistake,
    130 after Ctrl-C and 143 after SIGTERM or SIGHUP. ``stopped`` is the line after these, unless a command has its own.
    Where nobody reads the output any more, as after ``umc list | head -1``, it ends with 141 and without a word.
    """
    try:
        status = _status(work, argv, stopped)
    except BrokenPipeError:
        if not (_is_unread(1) or _is_unread(2)):
            raise
        status = 128 + signal.SIGPIPE
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            if stream is not None:
                stream.flush()
        except OSError:  # Python would try once more when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    return status


def _status(work: Callable[[list[str]], int], argv: Sequence[str], stopped: str) -> int:
    handled: list[signal.Signals] = []
    try:
        handled = _signals_to_handle()
        for signum in handled:
            signal.signal(signum, _terminate)
        status = _worked(work, argv)
        print(end="", flush=True)  # a full disk or a closed pipe is an error of this command
        return status
    except RankLostError as error:
        return _say(f"error: {_process()}{error}; checkpoints are kept, --resume starts from the last", FAILED)
    except SharedError as error:
        return USAGE_ERROR if _process() else _say(f"error: {error}", USAGE_ERROR)
    except (UmcError, OSError) as error:
        if (mistake := error if isinstance(error, UmcError) else disk_error(error)) is None:
            raise
        return _say(f"error: {_process()}{mistake}", USAGE_ERROR)
    except ChildFailed as error:
        return _say(error.line, error.code)
    except KeyboardInterrupt as stop:
        if type(stop) in (KeyboardInterrupt, Terminated):  # others have printed what is kept
            print(stopped, file=sys.stderr, flush=True)
        return 128 + getattr(stop, "signum", signal.SIGINT)
    finally:
        for signum in handled:
            signal.signal(signum, signal.SIG_DFL)


def _signals_to_handle() -> list[signal.Signals]:
    """Return the signals that have their default action here and end a command as Ctrl-C does."""
    # one of several processes may wait for the others in native code, where only the default action ends it
    if threading.current_thread() is not threading.main_thread() or ranks_from_env().is_distributed:
        return []
    both = (signal.SIGTERM, signal.SIGHUP)  # nohup ignores the latter
    return [signum for signum in both if signal.getsignal(signum) is signal.SIG_DFL]


def _worked(work: Callable[[list[str]], int], argv: Sequence[str]) -> int:
    """Run a command; a Ctrl-C while pybind11 imports a module, such as onnxruntime, is no ImportError."""
    try:
        return work(list(argv))
    except ImportError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise


def _is_unread(stream: int) -> bool:
    """Return whether a file descriptor is a pipe that nobody reads."""
    poll = select.poll()
    poll.register(stream, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _terminate(*_: Any) -> NoReturn:
    raise Terminated


def _say(line: str, status: int) -> int:
    print(line, file=sys.stderr)
    return status


def _process() -> str:
    """Return a prefix that names the rank; empty for rank 0."""
    rank = os.environ.get("RANK", "0")
    return "" if rank == "0" else f"process {rank}: "


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at the closest of ``known``, or an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" did you mean {close[0]}?" if close else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the message for a name that ``umc list`` lacks: the closest of ``known``, and the first of them."""
    names = list(known)
    more = f", ... (umc list {kind}s names all)" if len(names) > MOST_NAMES else ""
    return f"unknown {kind} {name};{did_you_mean(name, names)} choose one of {', '.join(names[:MOST_NAMES])}{more}"


def as_flags(**values: Any) -> list[str]:
    """Return flags as a command line has them; without those that are None, False or empty."""
    given = [(f"--{name}", value) for name, value in values.items() if value not in (None, "") and value is not False]
    return [word for flag, value in given for word in ([flag] if value is True else [flag, str(value)])]


def path(text: str) -> Path:
    """Read a path of a command line; an empty one, as of an unset variable, would mean the current folder."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("it is empty; give a path or leave the flag out")
    return Path(text)


def check_combinations(
    options: argparse.Namespace, contradictions: Iterable[tuple[set[str], str]], more: Iterable[str] = ()
) -> None:
    """Refuse flags that do not go together with a :class:`UmcError`.

    Args:
        options: Flags; one counts as given where it is neither None, False nor empty.
        contradictions: Names that may not be given together, and what the user is told.
        more: Further names that count as given.
    """
    given = {name for name, value in vars(options).items() if value is not None and value is not False and value != ""}
    for flags, message in contradictions:
        if flags <= given | {*more}:
            raise UmcError(message)


def within(value: Any, flag: str, low: int, high: int) -> None:
    """Refuse numbers outside of a range with a :class:`UmcError`; None is none."""
    if value is not None and not low <= value <= high:
        raise UmcError(f"{flag} is {value}; it has to lie between {low} and {high}")


def check_seed(seed: int | None, more: str = "") -> None:
    """Refuse seeds that no generator takes with a :class:`UmcError`; ``more`` says what else there may be."""
    if seed is not None and not 0 <= seed <= LARGEST_SEED:
        raise UmcError(f"--seed is {seed}; it has to be 0 or more{more}, and less than 2^32")


def at_least_one(value: Any, flag: str) -> None:
    """Refuse counts below 1 with a :class:`UmcError`."""
    if value is not None and value < 1:
        raise UmcError(f"{flag} is {value}; it has to be at least 1")
