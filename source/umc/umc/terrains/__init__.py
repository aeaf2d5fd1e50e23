# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Grounds that load without a network on every engine."""

from .ground import FLAT_GROUND_CFG

__all__ = ["FLAT_GROUND_CFG"]
