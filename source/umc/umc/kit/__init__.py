# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What the Omniverse Kit extension ``exts/umc`` shows and does, without a line of Kit: see docs/kit.md.

Importing it loads neither Isaac Lab nor torch, so that the extension can be enabled in any Kit.
"""

from umc.kit.panel import HEADINGS, LEGEND, FaultPanel
