# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Tables for the screen and the report files of an evaluation."""

from umc.evaluation.report.page import summary
from umc.evaluation.report.screen import gait_report, gait_table, load_table, score_table
from umc.evaluation.report.write import report_study, study_files, write_all, write_study_report
