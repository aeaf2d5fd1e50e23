# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The severities that viewer and Kit panel offer for kinds of somebody else, and for joints without a limit."""

from types import SimpleNamespace

import pytest
import torch
from fault_env import events_with
from umc.faults import KINDS, FaultSchedule, FaultState, JointKind, JointLimits
from umc.mdp import FaultInjector
from umc.utils.errors import UmcError


def injector(reach=(1.0, 1.0), effort=20.0, injected=None):
    """The injector of a robot of two joints with such limits [rad, N*m]; it tells what has been injected."""
    schedule = FaultSchedule(["a", "b"], scenario="normal", num_joints=(1, 2))
    most = torch.tensor(reach)
    nominal = JointLimits(-most, most, *(torch.full((2,), value) for value in (effort, 10.0)))
    term = SimpleNamespace(
        prepare_limits=lambda: None,
        state=FaultState(schedule, 1),
        source=schedule,
        writer=SimpleNamespace(nominal=nominal),
        inject_fault=lambda *fault: injected.append(fault),
    )
    return FaultInjector(SimpleNamespace(event_manager=events_with(term)))


def offered(kind, effort=20.0):
    """The severities that are offered for a joint of such a torque limit [N*m]."""
    return injector(effort=effort).severity_range("a", kind)


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
    class Rust(JointKind):
        name, unit = "rust", "[N*m]"
        min_severity, max_severity = smallest, largest

        def limit(self, limits, on, severity, onset):
            return limits

    kind = Rust()
    kind.default = default
    monkeypatch.setitem(KINDS, "rust", kind)
    found = offered("rust")
    assert (found.low, found.high, found.initial) == pytest.approx(span)
    for severity in (found.low, found.high, found.initial):
        kind.check(severity)


def test_a_joint_without_a_torque_limit_gets_severities_that_a_motor_has():
    assert offered("effort").high == 20.0
    for unlimited in (torch.inf, torch.finfo(torch.float32).max, 0.0):  # the second is PhysX's; 0 is a free joint
        assert 0.0 < offered("effort", unlimited).high < 100.0


def test_a_fault_that_would_have_no_effect_on_the_joint_is_refused():
    injected = []
    one = injector((torch.inf, 1.0), injected=injected)  # a wheel and a knee
    with pytest.raises(UmcError, match="rom would have no effect on a, which has no limit") as error:
        one.inject(0, "a", "rom", 0.3)
    assert "\n" not in str(error.value)
    assert not injected
    one.inject(0, "a", "rom", 1.0)  # the whole range
    one.inject(0, "a", "locked")
    one.inject(0, "b", "rom", 0.3)
    assert [fault[1:4] for fault in injected] == [(0, "rom", 1.0), (0, "locked", 0.0), (1, "rom", 0.3)]


def test_the_range_that_is_offered_holds_the_severity_of_the_task():
    severity = {"braking": 21.0, "bias": 0.8, "noise": 0.001, "effort": 0.1}
    schedule = FaultSchedule(["a", "b"], scenario="braking+bias+noise+effort", severity=severity, num_joints=(1, 2))
    one = injector()
    one._term.source = schedule
    for kind, typical in severity.items():
        found = one.severity_range("a", kind)
        assert found.initial == pytest.approx(typical)
        assert found.low <= found.initial <= found.high
