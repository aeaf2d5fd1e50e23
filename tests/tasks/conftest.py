# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Lets the tests of this folder use what tests/rl trains with."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "rl"))
