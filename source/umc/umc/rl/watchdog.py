# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""End a training whose simulation never returns from a step, so that it can resume from its last checkpoint.

PhysX (ovphysx) has hung this way, one of its threads busy for good with the triangles of A1's tracks (docs/engines.md).
Neither Ctrl-C nor SIGTERM gets through then: Python waits for the engine.
"""

from __future__ import annotations

import contextlib
import datetime
import faulthandler
import os
import sys
import threading
from typing import Self

from umc.utils.distributed import ranks_from_env

HUNG = os.EX_TEMPFAIL
"""Exit status of a training that the watchdog ended: try again."""

TIMEOUT_S = 300.0
"""Shortest time without an iteration that counts as hanging [s]."""

TIMEOUT_ITERATIONS = 20.0
"""The same in durations of the slowest iteration so far [-]: a machine may be busy with something else."""

TICK_S = 1.0
"""Time between two checks [s]."""


class Watchdog:
    """A thread that ends the process once no iteration has ended for long; it starts at the first :meth:`heartbeat`.

    Time in which the process itself was stopped (Ctrl-Z, a laptop that sleeps) does not count.
    """

    def __init__(self) -> None:
        self._waited = 0.0
        self._slowest: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="umc watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def heartbeat(self, seconds: float) -> None:
        """Report that an iteration has ended, and how long it took [s]."""
        awake = min(seconds, self._waited + TICK_S)  # a process that was stopped was not slow
        self._slowest = max(awake, self._slowest or 0.0)
        self._waited = 0.0

    def _watch(self) -> None:
        while not self._over.wait(TICK_S):
            # ticks are counted, not the clock's time: a process that was stopped has not hung
            self._waited += TICK_S
            if self._slowest is not None and self._waited > max(TIMEOUT_S, TIMEOUT_ITERATIONS * self._slowest):
                self._end(self._slowest)

    def _end(self, slowest: float) -> None:
        # a process that waits for one that hangs ends as well, and may be the first
        what = "this process, or one that it waits for," if ranks_from_env().is_distributed else "the simulation"
        try:
            with contextlib.suppress(OSError):  # nobody may read it any more
                sys.stdout.flush()
            print(
                f"error: no iteration has ended for {datetime.timedelta(seconds=round(self._waited))}, the slowest "
                f"took {slowest:.0f} s: {what} hangs at the place shown below; the same command with --resume "
                "continues from the last checkpoint",
                file=sys.stderr,
                flush=True,
            )
            faulthandler.dump_traceback(file=sys.__stderr__ or 2, all_threads=True)
        finally:
            os._exit(HUNG)  # nothing else ends a process whose main thread is inside the engine
