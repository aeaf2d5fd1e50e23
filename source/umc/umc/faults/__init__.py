# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What breaks, when, and in which env: pure torch, no simulator."""

from .by_hand import break_joint, heal_joint
from .cases import FaultCases
from .kinds import KINDS, CommandKind, FaultKind, JointKind, SensorKind, find_kind, register_kind
from .ledger import (
    MADE_BY_HAND,
    JointRange,
    Ledger,
    LedgerEpisode,
    LedgerFault,
    LedgerHeader,
    LedgerSwitch,
    read_ledger,
)
from .ledger_writer import LedgerWriter
from .limits import JointLimits
from .paper import PAPER, paper_settings, training_faults
from .plan import NEVER, FaultPlan
from .replay import FaultReplay
from .scenarios import SCENARIOS, SUBCATEGORIES, Scenario, find_scenario
from .schedule import ONSET_RANGE, FaultSchedule
from .state import FAULT_FLAG_WIDTH, FaultState, LiveFault, PlanSource

__all__ = [
    "FAULT_FLAG_WIDTH",
    "KINDS",
    "MADE_BY_HAND",
    "NEVER",
    "ONSET_RANGE",
    "PAPER",
    "SCENARIOS",
    "SUBCATEGORIES",
    "CommandKind",
    "FaultCases",
    "FaultKind",
    "FaultPlan",
    "FaultReplay",
    "FaultSchedule",
    "FaultState",
    "JointKind",
    "JointLimits",
    "JointRange",
    "Ledger",
    "LedgerEpisode",
    "LedgerFault",
    "LedgerHeader",
    "LedgerSwitch",
    "LedgerWriter",
    "LiveFault",
    "PlanSource",
    "Scenario",
    "SensorKind",
    "break_joint",
    "find_kind",
    "find_scenario",
    "heal_joint",
    "paper_settings",
    "read_ledger",
    "register_kind",
    "training_faults",
]
