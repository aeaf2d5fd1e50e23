# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How RL libraries take the networks; import the module that you need, importing the package loads none."""
