# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""docs/results.md: our figures beside the paper's, whether they meet the criteria, and figures on other engines."""
