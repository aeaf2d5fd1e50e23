# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What is taken off the console is only what is listed."""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import threading
import time

from umc.utils import console
from umc.utils.console import physx_logger, quiet, timed, waiting


def test_only_known_news_of_physx_are_dropped(capsys, caplog):
    caplog.set_level(logging.ERROR)  # as Hydra leaves the root logger
    logger = physx_logger()
    logger.warning("%s", "GPU broadphase requires a CUDA context manager; falling back to ePABP.")
    logger.warning("%s", "PxScene::simulate: the articulation has exploded")
    assert capsys.readouterr().err == "[PhysX] WARNING: PxScene::simulate: the articulation has exploded\n"
    logger.error("%s", "out of memory")
    assert capsys.readouterr().err == "[PhysX] ERROR: out of memory\n"
    assert not caplog.records  # the root's handlers would print it once more


def test_a_wait_is_shown_although_the_block_is_quiet(capsys, monkeypatch):
    monkeypatch.setattr(console, "WAITING_LINE_S", 0.01)
    with waiting("starting", "compiling"), quiet():
        print("a message of the simulation")
        time.sleep(0.2)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "starting ..."
    assert set(lines) == {"starting: 0 s (compiling)"}


def test_a_phase_of_a_wait_has_its_own_line(capsys):
    with waiting("starting") as finish_phase, quiet():
        finish_phase("engine")
        finish_phase("policy")
    lines = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["starting ...", "  engine", "  policy"]


def test_a_wait_on_a_full_disk_prints_no_traceback_of_its_thread(monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            if "reason" in text:
                failed.set()
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(text)

    failed, errors = threading.Event(), []
    monkeypatch.setattr(threading, "excepthook", errors.append)
    monkeypatch.setattr(console, "WAITING_LINE_S", 0.01)
    with contextlib.redirect_stdout(Full()), waiting("starting", "reason"):
        assert failed.wait(60)
    assert errors == []


def test_a_bar_in_a_log_forgets_within_minutes_that_it_was_stopped(monkeypatch):
    now = 0.0
    monkeypatch.setattr("tqdm.std.time", lambda: now)
    bar = console.progress_bar(10**6, "evaluating")  # pytest's standard error is no terminal
    for number in range(600):
        now += 3600.0 if number == 300 else 1.0
        bar.update()
    rate = bar.format_dict["rate"]
    bar.close()
    assert 0.9 < rate <= 1.0


def test_only_a_long_phase_is_shown_and_not_its_end_after_an_error(capsys, monkeypatch):
    with timed("short"), quiet():
        pass
    monkeypatch.setattr(console, "SOON_S", 0.01)
    for name, seconds in (("not so long", 100.0), ("long", 0.05)):
        monkeypatch.setattr(console, "LONG_S", seconds)
        with timed(name), quiet():
            time.sleep(0.2)
    with contextlib.suppress(ValueError), timed("wrong"):
        time.sleep(0.2)
        raise ValueError
    not_so_long, long, end, wrong = capsys.readouterr().out.splitlines()
    assert (not_so_long, long, wrong) == ("not so long ...", "long ...", "wrong ...")
    assert end.startswith("long: 0.")
