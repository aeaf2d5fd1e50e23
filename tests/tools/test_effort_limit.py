# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What the results page says of an engine's own effort limit, and UMC's fault beside it."""

import pytest


def measured(physics):
    from tools.effort_limit import measure

    return measure(physics)


@pytest.mark.engine
@pytest.mark.parametrize("physics", ["ovphysx", "newton_mjwarp"])
def test_an_engines_limit_leaves_applied_torques_alone_and_umcs_fault_does_not(run_engine, physics):
    (_, healthy, _), (_, limited, applied), (_, fallen, weak) = run_engine(measured, physics=physics)
    assert limited == pytest.approx(healthy, abs=0.01)
    assert applied > 3.0
    assert fallen < 0.1 < healthy
    assert weak < 0.051
