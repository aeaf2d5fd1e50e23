# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Train a UMC policy: ``python scripts/train.py --task UMC-G1-Stage2``; ``--help`` lists the flags."""

import sys

from umc.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
