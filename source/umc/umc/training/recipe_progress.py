# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How far a whole recipe is, from the lines that its running phase prints."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

from umc.training.recipe import Phase

PROGRESS = re.compile(r"iteration (\d+)/(\d+): ([\d,]+) env-steps/s")
"""What :class:`umc.rl.logger.Progress` prints where its output is no terminal."""

SIZES = re.compile(r"(\d+) envs x (\d+) steps, ")
"""What scripts/train.py says of a run's sizes before it starts."""


class Overall:
    """Progress and time left of a recipe.

    Args:
        phases: All phases of the recipe.
    """

    def __init__(self, phases: Sequence[Phase]) -> None:
        self._phases = phases
        self._number = 0
        self._envs: int | None = None
        self._steps = 0

    def begin(self, number: int) -> None:
        """A phase begins.

        Args:
            number: Its place in the recipe, counted from 0.
        """
        self._number = number

    def show(self, line: str, title: str) -> None:
        """Prints a line of the running phase; one that tells its progress with that of the whole recipe.

        Args:
            line: The line, without its end.
            title: Place and name of the phase.
        """
        if (sizes := SIZES.search(line)) is not None:
            self._envs, self._steps = int(sizes[1]), int(sizes[2])
        match = PROGRESS.match(line)
        if match is not None:
            line = f"{title}: {line}; {self.words(int(match[1]), float(match[3].replace(',', '')))}"
        print(line, flush=True)

    def words(self, iteration: int, rate: float) -> str:
        """Progress of the whole recipe.

        Args:
            iteration: Iterations of the running phase's run.
            rate: Its speed [env steps/s].

        Returns:
            Share of all env steps that is done, and the time left at the speed of the running phase.
        """
        # a phase that leaves the envs to its task is taken to have as many as the running one
        work = [phase.iterations * (phase.num_envs or self._envs or 1) for phase in self._phases]
        phase = self._phases[self._number]
        share = min(max(iteration - phase.behind, 0), phase.iterations) / phase.iterations
        done = sum(work[: self._number]) + share * work[self._number]
        words = f"whole recipe {done / sum(work):.0%}"
        if not self._steps or rate <= 0:
            return words
        return f"{words}, ETA {duration((sum(work) - done) * self._steps / rate)}"


def duration(seconds: float) -> str:
    """A time span in hours, minutes and seconds."""
    return str(datetime.timedelta(seconds=round(seconds)))
