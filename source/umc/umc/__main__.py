# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``python -m umc``: the command ``umc``."""

import sys

from umc.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
