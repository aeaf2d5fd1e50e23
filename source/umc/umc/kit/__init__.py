# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What the Omniverse Kit extension ``exts/umc`` shows and does, without a line of Kit: see docs/kit.md.

Importing it loads neither Isaac Lab nor torch, so that the extension can be enabled in any Kit.
"""

from umc.kit.colors import LEGEND, packed
from umc.kit.panel import HEADINGS, FaultPanel, PanelRow, find_env, task_name
from umc.rendering.colors import COMMAND_COLOR, FAULT_COLOR, SENSOR_COLOR, Color

__all__ = [
    "COMMAND_COLOR",
    "FAULT_COLOR",
    "HEADINGS",
    "LEGEND",
    "SENSOR_COLOR",
    "Color",
    "FaultPanel",
    "PanelRow",
    "find_env",
    "packed",
    "task_name",
]
