# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Progress of a training as a table, in lines and in a file, in place of rsl_rl's block per iteration."""

from __future__ import annotations

import contextlib
import io
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text
from rsl_rl.utils.logger import Logger
from torch.utils.tensorboard import SummaryWriter

import umc
from umc.utils.console import duration
from umc.utils.provenance import write_progress

LINE_EVERY = 10
"""Iterations between two lines, or two rows of the table."""

HEADER_EVERY = 20
"""Rows between two headers of the table."""

SMOOTHING = 0.2
"""Weight of the latest iteration in the shown rate [-]."""

FAULT_SHARE = "Faults/share"
"""Scalar with the part of the envs that have a fault."""

NOTHING = "-"

STYLES = {"iteration": "bold", "reward": "green", "faults": "red", "saved": "dim"}
"""Colors of the table's columns."""


@dataclass(frozen=True)
class IterationStats:
    """What is shown of an iteration."""

    seconds: float
    """Duration [s]."""
    reward: float | None
    """Mean return of the last 100 episodes [-]; None before the first one ended."""
    length: float | None
    """Mean length of the last 100 episodes [env steps]; None before the first one ended."""
    noise: float
    """Mean standard deviation of the action noise [-]."""
    losses: Mapping[str, float] = field(default_factory=dict)
    """Losses by the library's names."""
    faults: float | None = None
    """Part of the envs that have a fault [-]; None in a task without faults."""


class Progress:
    """A table and a bar on a terminal, else lines; and the run's progress file."""

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
        self.shown = 0
        """Iterations since this start."""
        self.cells: dict[str, str] = {}
        self.last_line = done - LINE_EVERY
        self.rows = 0
        self.bar: Bar | None = None
        console = Console(file=self.stream, highlight=False)
        if console.is_terminal and not console.is_dumb_terminal:
            columns = TextColumn("{task.completed}/{task.total}"), BarColumn(), TextColumn("{task.description}")
            self.bar = Bar(*columns, console=console, auto_refresh=False)
            self.bar.add_task("first iteration ...", total=total, completed=done)
            self.bar.start()
            self.bar.refresh()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def update(self, stats: IterationStats, line: bool = True) -> None:
        """Show one more iteration; ``line`` is False where :meth:`saved` follows at once."""
        self.done += 1
        self.shown += 1
        # the first iteration, which warms up, counts for itself alone; a mean of those after it, then of the latest
        weight = max(SMOOTHING, 1 / max(self.shown - 1, 1))
        self.seconds = weight * stats.seconds + (1 - weight) * (self.seconds or 0.0)
        rate, eta = self.steps_per_iteration / self.seconds, self.seconds * (self.total - self.done)
        self.cells = {
            "iteration": f"{self.done}/{self.total}",
            "steps/s": f"{rate:,.0f}",
            "ETA": duration(eta),
            "reward": NOTHING if stats.reward is None else f"{stats.reward:.2f}",
            "episode": NOTHING if stats.length is None else f"{stats.length:.0f}",
            **{f"{name} loss": f"{loss:.4f}" for name, loss in stats.losses.items() if "entropy" not in name},
            "noise": f"{stats.noise:.2f}",
            "faults": NOTHING if stats.faults is None else f"{stats.faults:.0%}",
        }
        self.state = {
            "iteration": self.done,
            "iterations": self.total,
            "env_steps_per_s": rate,
            "eta_s": eta,
            "reward": stats.reward,
        }
        self._write()
        if line and self.done - self.last_line >= LINE_EVERY:
            self._line()
        if self.bar is not None:
            status = f"{self.cells['steps/s']} env-steps/s, ETA {self.cells['ETA']}"
            self.bar.update(self.bar.task_ids[0], completed=self.done, description=status)
            self.bar.refresh()

    def saved(self, name: str) -> None:
        """Report, once, that a checkpoint was written."""
        again = name == self.checkpoint
        self.checkpoint = name
        self._write()
        if self.cells and not again:
            self._line(name)

    def note(self, text: str) -> None:
        """Print a line without breaking the bar."""
        if self.bar is not None:
            self.bar.console.print(text)
        else:
            print(text, file=self.stream, flush=True)

    def _write(self) -> None:
        if self.folder is not None and self.state:
            write_progress(self.folder, {**self.state, "checkpoint": self.checkpoint})

    def _line(self, checkpoint: str | None = None) -> None:
        self.last_line = self.done
        if self.bar is None:
            print(text_line(self.cells, checkpoint), file=self.stream, flush=True)
            return
        header, row = table_row(self.cells, checkpoint)
        for text in [header, row] if self.rows % HEADER_EVERY == 0 else [row]:
            self.bar.console.print(text, no_wrap=True, overflow="ellipsis")
        self.rows += 1


def text_line(cells: Mapping[str, str], checkpoint: str | None) -> str:
    """Return the line of an iteration for pipes and log files."""
    known = {name: cell for name, cell in cells.items() if cell != NOTHING}
    iteration, rate, eta = (known.pop(name) for name in ("iteration", "steps/s", "ETA"))
    words = {"noise": "action noise {}", "episode": "episode {} steps", "faults": "faults in {} of envs"}
    parts = [words.get(name, f"{name} {{}}").format(cell) for name, cell in known.items()]
    if "episode" not in known:
        parts.insert(0, "no episode ended yet")
    parts += [] if checkpoint is None else [f"saved {checkpoint}"]
    return f"iteration {iteration}: {rate} env-steps/s, ETA {eta}, {', '.join(parts)}"


def table_row(cells: Mapping[str, str], checkpoint: str | None) -> tuple[Text, Text]:
    """Return header and row of an iteration for a terminal."""
    header, row = Text(style="bold cyan"), Text()
    for name, cell in cells.items():
        width = max(len(name) + 2, 9)
        header.append(name.rjust(width))
        row.append(cell.rjust(width), STYLES.get(name, ""))
    return header, row.append("" if checkpoint is None else f"  saved {checkpoint}", STYLES["saved"])


class RunLogger(Logger):
    """rsl_rl's logger, which calls ``on_iteration`` instead of printing its block."""

    def __init__(self, on_iteration: Callable[[int, IterationStats], None], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.on_iteration = on_iteration
        self.fault_share: float | None = None
        # the repository whose diff explains a run is this one, not rsl_rl's
        self.git_status_repos = [umc.__file__]

    def init_logging_writer(self) -> None:
        """Open the writer as rsl_rl does, without its remarks about git."""
        with contextlib.redirect_stdout(io.StringIO()):
            super().init_logging_writer()

    def log(self, it: int, *args: Any, **kwargs: Any) -> None:
        """Write the scalars as rsl_rl does, then call ``on_iteration`` in place of printing."""
        faults = self._fault_share()
        with contextlib.redirect_stdout(io.StringIO()):
            super().log(it, *args, **kwargs)
        stats = IterationStats(
            seconds=kwargs["collect_time"] + kwargs["learn_time"],
            reward=self.mean_return(),
            length=self.mean_length(),
            noise=kwargs["action_std"].mean().item(),
            losses=kwargs["loss_dict"],
            faults=faults,
        )
        self.on_iteration(it, stats)

    def _fault_share(self) -> float | None:
        """Return the newest part of envs with a fault that the environment has logged; older ones stay valid."""
        shares = [entry[FAULT_SHARE] for entry in self.ep_extras if FAULT_SHARE in entry]
        if shares:
            self.fault_share = float(shares[-1])
        return self.fault_share

    def stop_logging_writer(self) -> None:
        """Close the writer; rsl_rl alone would lose TensorBoard's last seconds."""
        if isinstance(self.writer, SummaryWriter):  # those of W&B and Neptune are, too
            self.writer.close()
        super().stop_logging_writer()

    def mean_return(self) -> float | None:
        """Return the mean return of the last 100 episodes [-]; None before the first one ended."""
        return statistics.mean(self.rewbuffer) if self.rewbuffer else None

    def mean_length(self) -> float | None:
        """Return the mean length of the last 100 episodes [env steps]; None before the first one ended."""
        return statistics.mean(self.lenbuffer) if self.lenbuffer else None
