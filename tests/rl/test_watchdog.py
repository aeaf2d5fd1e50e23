# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A training whose engine never comes back is ended, said where, and nothing else is."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from umc.rl.watchdog import HUNG

LIMIT_S = 3.0
"""Long enough for a busy machine to get round to what takes tenths of a second here."""

BEGIN = f"""
import ctypes, sys, time
from umc.rl import watchdog
watchdog.TIMEOUT_S, watchdog.TICK_S, watchdog.TIMEOUT_ITERATIONS = {LIMIT_S}, 0.05, 20.0
def engine(seconds):
    ctypes.CDLL(None).usleep(int(seconds * 1e6))  # as an engine does: outside Python, deaf to Ctrl-C
with watchdog.Watchdog() as watch:
"""


def run(body, **options):
    code = BEGIN + "\n".join(f"    {line}" for line in body.splitlines())
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_a_hanging_engine_ends_the_training_and_is_named():
    child = run("print('started')\nwatch.heartbeat(0.01)\nengine(300)")
    out, err = child.communicate(timeout=120)
    assert child.returncode == HUNG
    assert out == "started\n"  # what was printed before is not lost
    assert "the simulation hangs" in err
    assert "--resume" in err
    assert "in engine" in err  # where it hangs


def test_it_is_ended_although_nobody_reads_its_output():
    body = "sys.stdin.readline()\nsys.stdout = open(1, 'w')\nprint('unread')\nwatch.heartbeat(0.01)\nengine(300)"
    child = run(body, stdin=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.close()
    child.stdout = None
    assert "the simulation hangs" in child.communicate("\n", timeout=120)[1]
    assert child.returncode == HUNG


def test_iterations_that_go_on_are_left_alone_and_so_is_the_start():
    body = f"engine({LIMIT_S + 1})\nfor _ in range(4):\n    watch.heartbeat(0.01)\n    engine(0.3)\nprint('through')"
    child = run(body)
    assert child.communicate(timeout=120)[0] == "through\n"
    assert child.returncode == 0


def test_slow_iterations_have_more_time():
    child = run(f"engine(1)\nwatch.heartbeat(1.0)\nengine({LIMIT_S + 1})\nprint('through')")  # it has 20 s
    assert child.communicate(timeout=120)[0] == "through\n"


def test_a_process_that_was_stopped_has_not_hung():
    body = "watch.heartbeat(0.01)\nprint('started', flush=True)\nsys.stdin.readline()\nengine(0.5)"
    child = run(body, stdin=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == "started\n"
    child.send_signal(signal.SIGSTOP)
    time.sleep(2 * LIMIT_S)
    child.send_signal(signal.SIGCONT)
    child.communicate("\n", timeout=120)
    assert child.returncode == 0


def test_an_iteration_in_which_the_process_was_stopped_was_not_slow():
    child = run("watch.heartbeat(3600.0)\nengine(300)")
    child.communicate(timeout=120)
    assert child.returncode == HUNG
