# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc benchmark-speed``: run ``benchmarks/speed.py`` of the checkout that this package is in."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import umc
from umc.utils.errors import UmcError

SCRIPT = Path(umc.__file__).parents[3] / "benchmarks" / "speed.py"


def main(argv: list[str]) -> int:
    """Run ``umc benchmark-speed``; return its exit status."""
    if not SCRIPT.is_file():
        raise UmcError("umc benchmark-speed needs the benchmarks of a clone; git clone the repository and run it there")
    sys.path.insert(0, str(SCRIPT.parent))  # as python benchmarks/speed.py does
    return runpy.run_path(str(SCRIPT))["main"](argv)
