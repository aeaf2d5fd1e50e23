# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How faults get into the engines."""

from .writer import JointFaultWriter

__all__ = ["JointFaultWriter"]
