# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The fake GPU refuses what a GPU would wait for or refuse, and nothing else."""

from __future__ import annotations

import inspect
import textwrap

import pytest
import torch
from fake_cuda import CUDA, OffDevice, fake_cuda
from umc.faults import FaultSchedule, FaultState
from umc.faults import state as state_module

ENVS, JOINTS = 4, 3

WAITS = {
    "item": lambda x, mask, ids: x.sum().item(),
    "float": lambda x, mask, ids: float(x[0, 0]),
    "branch": lambda x, mask, ids: 1 if mask.any() else 0,
    "tolist": lambda x, mask, ids: x.tolist(),
    "cpu": lambda x, mask, ids: x.cpu(),
    "cpu of a number": lambda x, mask, ids: x.sum().cpu(),
    "equal": lambda x, mask, ids: torch.equal(x, x),
    "allclose": lambda x, mask, ids: torch.allclose(x, x),
    "nonzero": lambda x, mask, ids: mask.nonzero(),
    "unique": lambda x, mask, ids: ids.unique(),
    "rows of a mask": lambda x, mask, ids: x[mask],
    "rows of a mask, written": lambda x, mask, ids: x.__setitem__(mask, x[:1]),
    "a list of columns": lambda x, mask, ids: x[:, [0, 2]],
    "an index on the CPU": lambda x, mask, ids: x[torch.zeros(1, dtype=torch.long)],
    "a number at an index": lambda x, mask, ids: x.__setitem__(ids, 0.0),
    "a list to the device": lambda x, mask, ids: torch.tensor([1.0, 2.0], device=CUDA),
    "a number to the device": lambda x, mask, ids: torch.tensor(1.0, device=CUDA),
    "inverse": lambda x, mask, ids: torch.linalg.inv(x[:3]),
}
ELSEWHERE = {
    "arange": lambda x, mask, ids: torch.arange(4),
    "zeros": lambda x, mask, ids: torch.zeros(ENVS, JOINTS),
    "a list": lambda x, mask, ids: torch.tensor([1.0, 2.0]),
}
FREE = {
    "a number at a mask": lambda x, mask, ids: x.__setitem__(mask, 0.0),
    "a number in a column": lambda x, mask, ids: x[:, 0].fill_(1.0),
    "a number in a slice": lambda x, mask, ids: x.__setitem__((slice(None), 0), 1.0),
    "index_fill_": lambda x, mask, ids: x.index_fill_(0, ids, 0.0),
    "rows of an index": lambda x, mask, ids: x[ids],
    "rows of an index, written": lambda x, mask, ids: x.__setitem__(ids, x[:2]),
    "where": lambda x, mask, ids: torch.where(mask[:, None], x, 0.0),
    "full": lambda x, mask, ids: torch.full((2,), 1.0, device=CUDA),
    "sort": lambda x, mask, ids: x.argsort(dim=1),
    "a number on the CPU": lambda x, mask, ids: x * torch.tensor(2.0),
}


@pytest.fixture(params=[torch.no_grad, torch.inference_mode])
def attempt(request):
    """Run an action on tensors of the fake GPU."""

    def run(action):
        with fake_cuda() as gpu, request.param():
            x, mask = torch.zeros(ENVS, JOINTS, device=CUDA), torch.zeros(ENVS, dtype=torch.bool, device=CUDA)
            ids = torch.zeros(2, dtype=torch.long, device=CUDA)
            with gpu.watched():
                action(x, mask, ids)

    return run


@pytest.mark.parametrize("action", WAITS)
def test_what_makes_the_host_wait_is_refused(action, attempt):
    with pytest.raises(OffDevice, match=r"test_fake_cuda\.py"):
        attempt(WAITS[action])


@pytest.mark.parametrize("action", ELSEWHERE)
def test_a_tensor_that_is_made_on_the_cpu_is_refused(action, attempt):
    with pytest.raises(OffDevice, match="makes a tensor on the CPU"):
        attempt(ELSEWHERE[action])


@pytest.mark.parametrize("action", FREE)
def test_what_leaves_the_host_free_is_not_refused(action, attempt):
    attempt(FREE[action])


def test_tensors_of_two_devices_are_refused_even_where_nothing_is_watched():
    with fake_cuda(), pytest.raises(RuntimeError, match="two different devices"):
        torch.zeros(3, device=CUDA) + torch.zeros(3)


MUTATIONS = {
    "a stray item": ("plan = self.plan\n", "plan = self.plan; step.max().item()\n"),
    "arange without a device": ("plan = self.plan\n", "plan = self.plan; torch.arange(4)\n"),
    "a stray cpu": ("plan = self.plan\n", "plan = self.plan; step.cpu()\n"),
    "a branch on data": ("if known_empty(changed)", "if not changed.any()"),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutation_of_a_step_of_ours_is_refused(mutation, monkeypatch):
    """FaultState.advance runs on the fake GPU, and does not once it is changed."""
    old, new = MUTATIONS[mutation]
    source = textwrap.dedent(inspect.getsource(FaultState.advance))
    assert old in source
    names: dict = {}
    exec(compile(source.replace(old, new), state_module.__file__, "exec"), vars(state_module) | {}, names)

    def advance():
        with fake_cuda() as gpu:
            schedule = FaultSchedule(["a", "b", "c"], ratios={"dead": 1.0}, num_joints=(1, 2), device=CUDA)
            state = FaultState(schedule, ENVS)
            with gpu.watched():
                state.advance(torch.ones(ENVS, dtype=torch.long, device=CUDA), torch.zeros(ENVS, 3, device=CUDA))

    advance()
    monkeypatch.setattr(FaultState, "advance", names["advance"])
    with pytest.raises(OffDevice, match=r"faults/state\.py advance"):
        advance()
