# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Film a policy, or show it in a visualizer: ``python scripts/play.py --checkpoint PATH [--scenario 2]``."""

import sys

from umc.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["play", *sys.argv[1:]]))
