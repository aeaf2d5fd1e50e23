# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Run a script as a user does."""

import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def run_script(name, *arguments, ground="flat"):
    """Run a script on a ground; a failure shows the end of its output."""
    command = [sys.executable, str(SCRIPTS / name), *map(str, arguments), f"env.scene.terrain={ground}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
