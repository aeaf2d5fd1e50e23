# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""UMC: legged robots that keep walking when joints and sensors fail (an Isaac Lab extension)."""

__version__ = "0.1.0"
