# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A sweep on two workers of a Ray that runs on this machine: both train at once, save when told to stop, and go on."""

from __future__ import annotations

import json
import signal
import threading
import time

import pytest
from umc.training.sweep import run_sweep

SWEEP = ["--sweep", "seeds", "sweep.seeds=[1,2]", "--task", "UMC-A1-Stage1", "--agent", "mlp", "--ray", "2"]
DEADLINE_S = 400.0
"""Longest start of Ray: 8 s on a free machine, minutes on two cores with a load of 20."""


def statuses(folder):
    return [json.loads(path.read_text())["status"] for path in folder.glob("logs/*/*/*/run.json")]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("fake_umc")
def test_two_workers_train_stop_and_go_on(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", str(int(DEADLINE_S)))

    def stop_when_both_train():
        deadline = time.monotonic() + DEADLINE_S
        while statuses(tmp_path) != ["running"] * 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        signal.raise_signal(signal.SIGTERM)

    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a script's background; workers inherit it
    thread = threading.Thread(target=stop_when_both_train)
    thread.start()
    assert run_sweep([*SWEEP, "agent.wait=1"]) == 143  # a training waits until it is told to stop
    thread.join()
    signal.signal(signal.SIGINT, interrupt)
    assert statuses(tmp_path) == ["interrupted"] * 2

    assert run_sweep([*SWEEP, "agent.wait=1"]) == 0
    assert statuses(tmp_path) == ["finished"] * 2
    out = capfd.readouterr().out
    assert out.count("resuming mlp, Stage 1, seed ") == 2
    assert "2 at once" in out
