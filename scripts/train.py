# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Train a UMC policy: ``python scripts/train.py --task UMC-G1-Stage2``; ``--help`` lists the flags."""

import sys
from pathlib import Path

from umc.training.train import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], scripts=Path(__file__).resolve().parent))
