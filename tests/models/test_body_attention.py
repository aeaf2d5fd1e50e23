# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Attention along the joint graph: who reads whom, block by block, with and without dead joints."""

from __future__ import annotations

import pytest
import torch
from umc.models import BodyTransformer, JointLayout, MaskedTransformer
from umc.utils.errors import UmcError

J, START = 12, 12
HIP, THIGH, CALF = 0, 1, 2  # FL


def influence(network, obs, *inputs):
    """(J + 1, J): how far the mean action of each joint moves when a joint's position, or the base (last), moves."""
    columns = [*range(START, START + J), 0]
    rows = []
    for column in columns:
        changed = obs.clone()
        changed[:, column] += 1.0
        rows.append((network(changed, *inputs) - network(obs, *inputs)).abs().amax(0))
    return torch.stack(rows)


def build(network_class, layout, **options):
    torch.manual_seed(0)
    network = network_class(layout, network_class.cfg_class(**options))
    with torch.no_grad():
        network.head.weight.normal_(std=0.3)
        for block in network.blocks:
            block.qkv.weight.mul_(2.0)
    return network


def batch(dead=()):
    generator = torch.Generator().manual_seed(0)
    mask = torch.zeros(8, J)
    mask[:, list(dead)] = 1.0
    return torch.randn(8, 48, generator=generator), mask, torch.ones(8, 3)


@pytest.mark.parametrize("network_class", [MaskedTransformer, BodyTransformer])
def test_one_block_reads_neighbours_itself_and_the_context_only(network_class, a1_layout):
    network = build(network_class, a1_layout, attention="body", num_layers=1)
    moved = influence(network, *batch())
    near = torch.eye(J + 1, dtype=torch.bool)
    for token, others in enumerate(a1_layout.neighbours):
        near[token, list(others)] = True
    near[-1] |= network_class is MaskedTransformer  # a BodyTransformer's context is next to the hips only
    assert (moved[near[:, :J]] > 1e-4).all()
    assert (moved[~near[:, :J]] == 0.0).all()


def test_mix_reads_along_the_graph_first_and_everybody_next(a1_layout):
    one = build(MaskedTransformer, a1_layout, attention="body_mix", num_layers=1)
    graph = build(MaskedTransformer, a1_layout, attention="body", num_layers=1)
    assert torch.equal(one(*batch()), graph(*batch()))
    two = build(MaskedTransformer, a1_layout, attention="body_mix", num_layers=2)
    assert (influence(two, *batch()) > 0.0).all()


def test_in_two_blocks_the_base_passes_on_what_hips_know_and_nothing_of_calves(a1_layout):
    moved = influence(build(MaskedTransformer, a1_layout, attention="body", num_layers=2), *batch())
    assert (moved[HIP] > 0.0).all()  # hip -> context -> everybody
    assert (moved[CALF, 3:] == 0.0).all()


@pytest.mark.parametrize("attention", ["body", "body_mix"])
def test_dead_joints_close_their_keys_on_the_graph_too(attention, a1_layout):
    network = build(MaskedTransformer, a1_layout, attention=attention)
    moved = influence(network, *batch(dead=[THIGH]))
    assert (moved[THIGH] == 0.0).all()
    obs, mask, flag = batch(dead=[THIGH])
    before = network(obs, mask, flag)
    with torch.no_grad():
        network.positions[THIGH] += 3.0
    others = [joint for joint in range(J) if joint != THIGH]
    assert torch.equal(network(obs, mask, flag)[:, others], before[:, others])


@pytest.mark.parametrize("attention", ["body", "body_mix"])
@pytest.mark.parametrize("dead", [(), (HIP, THIGH, CALF), tuple(range(J))])
def test_every_query_has_a_living_key(attention, dead, a1_layout):
    network = build(MaskedTransformer, a1_layout, attention=attention)
    obs, mask, flag = batch(dead)
    actions = network(obs, mask, flag)
    assert torch.isfinite(actions).all()
    assert (actions - network(obs, mask, -flag)).abs().amax(0).min() > 1e-4  # the flag reaches every joint
    actions.square().sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in network.parameters())


@pytest.mark.parametrize(
    "neighbours",
    [[[1], [0]], [[1], [], [0]], [[0, 1], [0], []], [[3], [], []]],
    ids=["no base", "one way", "itself", "out of range"],
)
def test_neighbours_that_are_no_graph_are_refused(neighbours):
    with pytest.raises(UmcError, match="neighbours must be 3 lists"):
        JointLayout.term_major(["a", "b"], 9, 0, neighbours)
