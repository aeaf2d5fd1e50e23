# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Train a fault detector beside a walking policy, and measure it as a diagnosis system is measured."""
