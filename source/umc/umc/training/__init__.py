# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What ``train.py`` does: arguments, plan, training, recipes, sweeps."""
