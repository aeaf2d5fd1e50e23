# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What dead joints report reaches nobody, and mask and flag have the effects that the paper describes."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from umc.models import BodyTransformer, JointColumns, JointLayout, MaskedMlp, MaskedTransformer
from umc.utils.errors import UmcError

J, D, START = 12, 48, 12  # A1
LAYOUT = JointLayout.term_major([f"joint_{i}" for i in range(J)], obs_dim=D, joint_start=START)
NETWORKS = [MaskedMlp, MaskedTransformer]
DEAD = [1, 7, 11]


def batch(size=16, seed=0):
    generator = torch.Generator().manual_seed(seed)
    obs = torch.randn(size, D, generator=generator)
    mask = torch.zeros(size, J, dtype=torch.bool)
    mask[:, DEAD] = True
    return obs, mask, torch.ones(size, 3)


def masked_columns(mask):
    columns = torch.zeros(mask.shape[0], D, dtype=torch.bool)
    for feature in range(3):
        columns[:, START + feature * J : START + (feature + 1) * J] = mask
    return columns


def build(network_class, layout=LAYOUT, **options):
    """A network whose small initial head is widened, so that effects are far above rounding."""
    torch.manual_seed(0)
    network = network_class(layout, network_class.cfg_class(**options))
    if hasattr(network, "head"):
        nn.init.normal_(network.head.weight, std=0.3)
    return network


@pytest.mark.parametrize("network_class", NETWORKS)
@pytest.mark.parametrize("garbage", [1e6, float("nan"), -float("inf")])
def test_actions_do_not_depend_on_what_dead_joints_report(network_class, garbage):
    network = build(network_class)
    obs, mask, flag = batch()
    actions = network(obs, mask, flag)
    assert torch.equal(network(obs.masked_fill(masked_columns(mask), garbage), mask.float(), flag), actions)
    assert torch.isfinite(actions).all()


@pytest.mark.parametrize("network_class", NETWORKS)
def test_base_living_joints_and_flag_are_read(network_class):
    network = build(network_class)
    obs, mask, flag = batch()
    actions = network(obs, mask, flag)
    for column in (0, 11, START, START + J, START + 2 * J):  # base, and joint 0's three
        changed = obs.clone()
        changed[:, column] += 1.0
        assert (network(changed, mask, flag) - actions).abs().max() > 1e-3
    assert (network(obs, mask, -flag) - actions).abs().max() > 1e-3


def test_dead_keys_leave_attention_while_dead_joints_still_act():
    network = build(MaskedTransformer)
    obs, mask, flag = batch()
    alive = [joint for joint in range(J) if joint not in DEAD]
    before, unmasked_before = network(obs, mask, flag), network(obs, torch.zeros_like(mask), flag)
    with torch.no_grad():
        network.positions[DEAD] += 3.0  # whatever a dead token holds
    after, unmasked_after = network(obs, mask, flag), network(obs, torch.zeros_like(mask), flag)
    assert torch.equal(before[:, alive], after[:, alive])
    assert (before[:, DEAD] - after[:, DEAD]).abs().min(0).values.max() > 1e-2
    assert (unmasked_before[:, alive] - unmasked_after[:, alive]).abs().max() > 1e-2


@pytest.mark.parametrize("network_class", NETWORKS)
@pytest.mark.parametrize("masked_joints", [0, 5, J])
def test_any_number_of_dead_joints_gives_finite_gradients_everywhere(network_class, masked_joints):
    network = build(network_class)
    obs, mask, flag = batch()
    mask = torch.zeros_like(mask)
    mask[:, :masked_joints] = True
    obs = obs.masked_fill(masked_columns(mask), float("nan"))
    actions = network(obs, mask, flag)
    assert torch.isfinite(actions).all()
    actions.square().sum().backward()
    for name, parameter in network.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0 or (masked_joints == J and name == "tokenizer.weight"), name


@pytest.mark.parametrize("network_class", NETWORKS)
def test_columns_follow_the_layout_and_not_a_fixed_order(network_class):
    network = build(network_class)
    joint_major = JointLayout(LAYOUT.joint_names, D, tuple((3 * j, 3 * j + 1, 3 * j + 2) for j in range(J)))
    twin = build(network_class, joint_major)
    obs, mask, flag = batch()
    base, joints = JointColumns(LAYOUT).split(obs)
    reordered = torch.cat([joints.flatten(1), base], dim=1)
    if network_class is MaskedMlp:  # its first layer knows columns, so its inputs are reordered with them
        order = [column for columns in LAYOUT.joint_columns for column in columns] + list(LAYOUT.base_columns)
        with torch.no_grad():
            twin.load_state_dict(network.state_dict())
            twin.layers[0].weight[:, :D] = network.layers[0].weight[:, order]
    torch.testing.assert_close(twin(reordered, mask, flag), network(obs, mask, flag))


@pytest.mark.parametrize("network_class", NETWORKS)
def test_batches_that_do_not_fit_are_refused(network_class):
    network = build(network_class)
    obs, mask, flag = batch()
    for bad in [(obs[:, :-1], mask, flag), (obs, mask[:, :-1], flag), (obs, mask[:3], flag), (obs, mask, flag[:, :1])]:
        with pytest.raises(UmcError, match="for 12 joints and 48 observation columns"):
            network(*bad)
    with pytest.raises(UmcError, match="needs a joint_mask"):
        network(obs, None, flag)
    with pytest.raises(UmcError, match="needs a fault_flag"):
        network(obs, mask)


@pytest.mark.parametrize(
    ("network_class", "options", "words"),
    [
        (MaskedMlp, {"output": "torque"}, "unknown output"),
        (MaskedMlp, {"activation": "step"}, "unknown activation"),
        (MaskedMlp, {"hidden_dims": []}, "hidden_dims"),
        (MaskedTransformer, {"activation": "step"}, "unknown activation"),
        (MaskedTransformer, {"embed_dim": 120, "num_heads": 7}, "multiple of num_heads"),
        (MaskedTransformer, {"attention": "sparse"}, "unknown attention"),
        (MaskedTransformer, {"attention": "body"}, "needs the joint graph"),
        (MaskedTransformer, {"num_layers": 0}, "at least 1"),
        (BodyTransformer, {}, "needs the joint graph"),
        (BodyTransformer, {"attention": "full"}, "choose attention body or body_mix"),
    ],
)
def test_options_that_do_not_fit_are_refused(network_class, options, words):
    with pytest.raises(UmcError, match=words):
        build(network_class, **options)


def test_a_context_token_without_inputs_is_refused():
    with pytest.raises(UmcError, match="context token is empty"):
        build(MaskedTransformer, JointLayout.term_major(["a"], 3, 0), flagged=False)
