# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Watch a policy live, or film it: ``python scripts/play.py --checkpoint PATH [--viz viser]``."""

import sys

from umc.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["play", *sys.argv[1:]]))
