# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Lets the tests of this folder import `live_page` and `fresh_policy`, which the tests of umc.rl use, too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
