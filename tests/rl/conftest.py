# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Lets the tests of this folder import `dummy_training`, which also runs as a script of its own."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
