# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The same networks, trained by skrl; import the module that you need, importing the package loads none."""
