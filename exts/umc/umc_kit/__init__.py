# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The Kit side of UMC: Kit imports this module and starts the extension class that it finds in it."""

from .extension import UmcExtension

__all__ = ["UmcExtension"]
