# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Commands that other commands start: who stops the one stops the other, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time


def test_ctrl_c_reaches_a_child_once_and_its_status_comes_back(tmp_path):
    child = tmp_path / "child.py"
    child.write_text(
        "import signal, sys, time\n"
        "hits = []\n"
        "signal.signal(signal.SIGINT, lambda *_: hits.append(1))\n"
        "open(sys.argv[1], 'w').close()\n"
        "while not hits: time.sleep(0.01)\n"
        "time.sleep(0.2)\n"
        "sys.exit(100 + len(hits))\n"
    )
    parent = tmp_path / "parent.py"
    parent.write_text(
        "import sys\nimport umc.utils.process as process\n"
        "process.UMC = ()\n"
        "try: process.run_umc(sys.argv[1], [sys.argv[2]])\n"
        "except process.ChildFailed as error: sys.exit(error.code)\n"
    )
    ready = tmp_path / "ready"
    process = subprocess.Popen([sys.executable, str(parent), str(child), str(ready)], start_new_session=True)
    while not ready.exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.wait(60) == 101
