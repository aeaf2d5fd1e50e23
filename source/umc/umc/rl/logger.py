# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Progress of a training in one line and in a file, in place of rsl_rl's block per iteration."""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TextIO

import torch
from rsl_rl.utils.logger import Logger
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

import umc
from umc.utils.provenance import write_progress

LINE_EVERY = 10
"""Iterations between two lines where the output is no terminal."""

SMOOTHING = 0.2
"""Weight of the latest iteration in the shown rate [-]."""


class Progress:
    """A bar on a terminal, else a line every :data:`LINE_EVERY` iterations, and the run's progress file."""

    def __init__(
        self,
        total: int,
        done: int,
        steps_per_iteration: int,
        stream: TextIO | None = None,
        run_folder: Path | None = None,
    ) -> None:
        """Open the bar."""
        self.total = total
        self.done = done
        self.steps_per_iteration = steps_per_iteration
        self.stream = stream or sys.stdout
        self.folder = run_folder
        self.state: dict[str, Any] = {}
        self.checkpoint: str | None = None
        self.seconds: float | None = None
        self.status = ""
        self.last_line = done - LINE_EVERY
        self.bar: tqdm | None = None
        if self.stream.isatty() and os.get_terminal_size(self.stream.fileno()).columns > 0:
            # the text has rate and ETA itself: tqdm would count iterations, not environment steps
            bar_format = "{n_fmt}/{total_fmt} |{bar}| {elapsed}{postfix}"
            self.bar = tqdm(
                total=total, initial=done, file=self.stream, bar_format=bar_format, dynamic_ncols=True, leave=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def update(self, seconds: float, reward: float | None, length: float | None, std: float, line: bool) -> None:
        """Show one more iteration.

        Args:
            seconds: Duration of the iteration [s].
            reward: Mean return of the last 100 episodes [-]; None before the first one ended.
            length: Mean length of the last 100 episodes [env steps]; None before the first one ended.
            std: Mean standard deviation of the action noise [-].
            line: Whether this iteration may print a line; False where :meth:`saved` follows at once.
        """
        self.done += 1
        self.seconds = seconds if self.seconds is None else SMOOTHING * seconds + (1 - SMOOTHING) * self.seconds
        rate = self.steps_per_iteration / self.seconds
        eta = datetime.timedelta(seconds=round(self.seconds * (self.total - self.done)))
        episodes = "no episode ended yet" if reward is None else f"reward {reward:.2f}, episode {length:.0f} steps"
        self.status = f"{rate:,.0f} env-steps/s, ETA {eta}, {episodes}, action std {std:.2f}"
        self.state = {
            "iteration": self.done,
            "iterations": self.total,
            "env_steps_per_s": rate,
            "eta_s": self.seconds * (self.total - self.done),
            "reward": reward,
        }
        self._write()
        if self.bar is not None:
            self.bar.set_postfix_str(self.status, refresh=False)
            self.bar.update()
        elif line and self.done - self.last_line >= LINE_EVERY:
            self._line()

    def saved(self, name: str) -> None:
        """Report that a checkpoint was written."""
        self.checkpoint = name
        self._write()
        if self.bar is None:
            self._line(f", saved {name}")

    def note(self, text: str) -> None:
        """Print a line without breaking the bar."""
        if self.bar is not None:
            self.bar.write(text, file=self.stream)
        else:
            print(text, file=self.stream, flush=True)

    def _write(self) -> None:
        if self.folder is not None and self.state:
            write_progress(self.folder, {**self.state, "checkpoint": self.checkpoint})

    def _line(self, tail: str = "") -> None:
        self.last_line = self.done
        print(f"iteration {self.done}/{self.total}: {self.status}{tail}", file=self.stream, flush=True)


class RunLogger(Logger):
    """rsl_rl's logger, which calls ``on_iteration(number, seconds, action_std)`` instead of printing its block."""

    def __init__(self, on_iteration: Callable[[int, float, torch.Tensor], None], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.on_iteration = on_iteration
        # the repository whose diff explains a run is this one, not rsl_rl's
        self.git_status_repos = [umc.__file__]

    def init_logging_writer(self) -> None:
        """Open the writer as rsl_rl does, without its remarks about git."""
        with contextlib.redirect_stdout(io.StringIO()):
            super().init_logging_writer()

    def log(self, it: int, *args: Any, **kwargs: Any) -> None:
        """Write the scalars as rsl_rl does, then call ``on_iteration`` in place of printing."""
        with contextlib.redirect_stdout(io.StringIO()):
            super().log(it, *args, **kwargs)
        self.on_iteration(it, kwargs["collect_time"] + kwargs["learn_time"], kwargs["action_std"])

    def stop_logging_writer(self) -> None:
        """Close the writer; rsl_rl alone would lose TensorBoard's last seconds."""
        if isinstance(self.writer, SummaryWriter):
            self.writer.close()
        else:
            super().stop_logging_writer()

    def mean_return(self) -> float | None:
        """Return the mean return of the last 100 episodes [-]; None before the first one ended."""
        return statistics.mean(self.rewbuffer) if self.rewbuffer else None

    def mean_length(self) -> float | None:
        """Return the mean length of the last 100 episodes [env steps]; None before the first one ended."""
        return statistics.mean(self.lenbuffer) if self.lenbuffer else None
