# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Evaluate a policy under the paper's eight scenarios: ``python scripts/evaluate.py --checkpoint PATH``."""

import sys

from umc.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
