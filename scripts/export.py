# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Write a policy as ONNX with a JSON beside it: ``python scripts/export.py --checkpoint PATH --out DIR``."""

import sys

from umc.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["export", *sys.argv[1:]]))
