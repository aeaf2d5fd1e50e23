# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults: which joints fail, how, when and in which env; pure torch, no simulator."""

from umc.faults.cases import FaultCases, draw_source, try_faults
from umc.faults.cfg import ONSET_RANGE, FaultsCfg
from umc.faults.kinds import KINDS, CommandKind, FaultKind, JointKind, JointLimits, SensorKind, find_kind, register_kind
from umc.faults.ledger import (
    MANUAL_FAULT,
    JointRange,
    Ledger,
    LedgerEpisode,
    LedgerFault,
    LedgerHeader,
    LedgerSwitch,
    LedgerWriter,
    read_ledger,
)
from umc.faults.manual import clear_faults, inject_fault
from umc.faults.plan import NEVER, FaultPlan
from umc.faults.replay import FaultReplay
from umc.faults.scenarios import (
    PAPER,
    SCENARIOS,
    SUBCATEGORIES,
    Scenario,
    find_scenario,
    is_scenario,
    paper_settings,
    training_faults,
)
from umc.faults.schedule import FaultSchedule
from umc.faults.state import FAULT_CLASSES, FAULT_FLAG_WIDTH, FaultState, LiveFault, PlanSource
