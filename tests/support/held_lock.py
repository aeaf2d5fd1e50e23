# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A second process that holds the lock of a folder until the block ends."""

import contextlib
import subprocess
import sys


@contextlib.contextmanager
def held_lock(folder, name=".lock"):
    """Yield the process."""
    holder = (
        "import pathlib, time; from umc.utils.process import lock_folder\n"
        f"with lock_folder(pathlib.Path({str(folder)!r}), 'x', {name!r}): print('has it', flush=True); time.sleep(300)"
    )
    with subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "has it\n"
        try:
            yield other
        finally:
            other.kill()
