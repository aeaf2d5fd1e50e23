# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Let the tests of this folder share what test_train_cli has."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
