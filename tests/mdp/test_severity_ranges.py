# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The severities that viewer and Kit panel offer for kinds of somebody else."""

from types import SimpleNamespace

import pytest
import torch
from umc.faults import KINDS, FaultSchedule, FaultState, JointKind, JointLimits
from umc.mdp import FaultInjector


@pytest.mark.parametrize(
    ("default", "smallest", "largest", "span"),
    [
        (None, 0.0, 1.0, (0.01, 1.0, 0.5)),  # as docs/howto_fault.md has it
        (None, 0.0, 1.0e9, (0.02, 2.0, 1.0)),
        (None, -1.0e9, 1.0e9, (-1.0, 1.0, 0.0)),
        (0.0, 5.0, 5.5, (5.005, 5.5, 5.25)),
        (3.0, 0.0, 10.0, (2.0, 4.0, 3.0)),
    ],
)
def test_every_severity_that_is_offered_for_a_kind_of_ones_own_is_valid(monkeypatch, default, smallest, largest, span):
    attributes = {
        "name": "rust",
        "unit": "[N*m]",
        "default": default,
        "min_severity": smallest,
        "max_severity": largest,
    }
    kind = type("Rust", (JointKind,), {**attributes, "limit": lambda self, limits, *_: limits})()
    monkeypatch.setitem(KINDS, "rust", kind)
    schedule = FaultSchedule(["a", "b"], scenario="normal", num_joints=(1, 2))
    nominal = JointLimits(*(torch.full((2,), value) for value in (-1.0, 1.0, 20.0, 10.0)))
    term = SimpleNamespace(
        prepare_limits=lambda: None,
        state=FaultState(schedule, 1),
        source=schedule,
        writer=SimpleNamespace(nominal=nominal),
    )
    events = SimpleNamespace(
        active_terms={"interval": ["faults"]}, get_term_cfg=lambda name: SimpleNamespace(func=term)
    )
    found = FaultInjector(SimpleNamespace(event_manager=events)).severity_range("a", "rust")
    assert (found.low, found.high, found.initial) == pytest.approx(span)
    for severity in (found.low, found.high, found.initial):
        kind.check(severity)
