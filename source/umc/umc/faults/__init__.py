# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What breaks, when, and in which env: pure torch, no simulator."""

from .scenarios import SCENARIOS, SUBCATEGORY_FAULTS, Scenario, Subcategory
from .schedule import NEVER, ONSET_RANGE, TRAINING_MIX, FaultPlan, FaultSchedule, resolve_severity
from .state import FAULT_FLAG_WIDTH, FaultState

__all__ = [
    "FAULT_FLAG_WIDTH",
    "NEVER",
    "ONSET_RANGE",
    "SCENARIOS",
    "SUBCATEGORY_FAULTS",
    "TRAINING_MIX",
    "FaultPlan",
    "FaultSchedule",
    "FaultState",
    "Scenario",
    "Subcategory",
    "resolve_severity",
]
