# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""docs/results.md: ours beside the paper's, whether the bars are met, and what other engines say."""

from tools.results_page.bars import Bar, bars_of
from tools.results_page.page import RobotResults, results_page

__all__ = ["Bar", "RobotResults", "bars_of", "results_page"]
