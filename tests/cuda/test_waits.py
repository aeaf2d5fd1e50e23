# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Where the host does wait for a GPU, outside trainings on Newton; one that no longer does leaves this list."""

from __future__ import annotations

import pytest
import torch
from fake_cuda import CUDA, OffDevice, fake_cuda
from umc.faults import FaultCases, FaultSchedule, FaultState, LedgerWriter
from umc.mdp.physics.physx_joints import PhysxJoints

JOINTS, ENVS = ["a", "b", "c", "d"], 4
FAULTS = {"scenario": "dead", "onset": 1, "device": CUDA}


def reset(source):
    state, ids = FaultState(source, ENVS), torch.arange(ENVS, device=CUDA)
    return lambda: state.reset(ids)


def cases(tmp_path):
    return reset(FaultCases(JOINTS, [{"seed": 1}, {"seed": 2}], ENVS, **FAULTS))


def stratified(tmp_path):
    return reset(FaultSchedule(JOINTS, stratified=True, **FAULTS))


def ledger(tmp_path):
    state = FaultState(FaultSchedule(JOINTS, **FAULTS), ENVS)
    writer, ids = LedgerWriter(tmp_path / "ledger.jsonl", state), torch.arange(ENVS, device=CUDA)
    return lambda: writer.record_plans(ids, ids)


def switches(tmp_path):
    state = FaultState(FaultSchedule(JOINTS, **FAULTS), ENVS)
    writer, changed = LedgerWriter(tmp_path / "ledger.jsonl", state), torch.ones(ENVS, dtype=torch.bool, device=CUDA)
    return lambda: writer.record_switches(changed, None)


def manual(tmp_path):
    state, ids = FaultState(FaultSchedule(JOINTS, **FAULTS), ENVS), torch.arange(ENVS, device=CUDA)
    state.make_room(3)
    return lambda: state.reset(ids)


def physx(tmp_path):
    changed = torch.ones(ENVS, dtype=torch.bool, device=CUDA)
    return lambda: PhysxJoints(None).write_effort_limits(torch.zeros(ENVS, 4, device=CUDA), changed)


WAITS = {
    "faults/cases.py FaultCases._draw_all": (cases, "once, before an evaluation"),
    "faults/schedule.py _Spread.joints": (stratified, "its tables are made on the host; a protocol's cases ask once"),
    "faults/ledger.py LedgerWriter.record_plans": (ledger, "a ledger is a file"),
    "faults/ledger.py LedgerWriter.record_switches": (switches, "a ledger is a file"),
    "faults/plan.py widen_plan": (manual, "only where faults were injected manually"),
    "mdp/physics/physx_joints.py PhysxJoints.write_effort_limits": (physx, "PhysX keeps joint properties on the host"),
}


@pytest.mark.parametrize("place", WAITS)
def test_the_host_waits(place, tmp_path):
    with fake_cuda() as gpu:
        action = WAITS[place][0](tmp_path)
        with gpu.watched(), pytest.raises(OffDevice, match=place):
            action()


def test_robots_that_start_again_in_an_evaluation_leave_the_host_free():
    with fake_cuda() as gpu:
        source = FaultCases(JOINTS, [{"seed": 1}, {"seed": 2}], ENVS, **FAULTS)
        state, ids = FaultState(source, ENVS), torch.arange(ENVS, device=CUDA)
        state.reset(ids)
        with gpu.watched():
            state.reset(ids)
