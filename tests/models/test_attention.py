# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The block made for CPUs computes torch's own, forwards and backwards, and batches may be cut into parts."""

from __future__ import annotations

import pytest
import torch
from umc.models import MaskedTransformer, TransformerCfg, blocks, transformer
from umc.models.blocks import EncoderBlock

B, T, WIDTH, HEADS = 3, 5, 8, 2


def block_and_tokens(dtype=torch.float64):
    torch.manual_seed(0)
    block = EncoderBlock(WIDTH, HEADS, WIDTH).to(dtype)
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter)
    return block, torch.randn(B, T, WIDTH, dtype=dtype, requires_grad=True)


def weights(block):
    layers = block.qkv, block.out, block.norm1, block.linear1, block.linear2, block.norm2
    return [tensor for layer in layers for tensor in (layer.weight, layer.bias)]


def biases(dtype=torch.float64):
    dead = torch.zeros(B, 1, 1, T, dtype=dtype)
    dead[0, ..., :4] = dead[1, ..., 2] = -torch.inf
    graph = torch.zeros(1, 1, T, T, dtype=dtype)
    graph[..., 0, 1:4] = graph[..., 3, :2] = -torch.inf
    return {"none": None, "dead keys": dead, "graph": graph, "both": dead + graph}


@pytest.mark.parametrize("name", biases())
def test_outputs_and_gradients_are_those_of_torchs_own_attention(name, monkeypatch):
    block, x = block_and_tokens()
    results = []
    for short_sequences in (True, False):
        monkeypatch.setattr(blocks, "is_eager_cpu", lambda _, short_sequences=short_sequences: short_sequences)
        tokens = block(x, biases()[name])
        assert (type(tokens.grad_fn).__name__ == "ShortSequenceBlockBackward") == short_sequences
        results.append([tokens, *torch.autograd.grad(tokens.sin().sum(), [x, *weights(block)])])
    for ours, torchs in zip(*results, strict=True):
        torch.testing.assert_close(ours, torchs, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("activation", ["gelu", "elu"])
def test_other_activations_are_computed_by_torch(activation):
    torch.manual_seed(0)
    block, x = EncoderBlock(WIDTH, HEADS, WIDTH, activation), torch.randn(B, T, WIDTH)
    torch.testing.assert_close(block(x), block._forward(x, None))


@pytest.mark.parametrize("name", biases())
def test_attention_weights_are_those_that_are_used(name):
    block, x = block_and_tokens()
    values = (x @ block.qkv.weight[2 * WIDTH :].T + block.qkv.bias[2 * WIDTH :]).view(B, T, HEADS, -1)
    mixed = torch.einsum("bhij,bjhd->bihd", block.attention(x, biases()[name]), values).reshape(B, T, WIDTH)
    rows = block.norm1(block.out(mixed) + x)
    tokens = block.norm2(block.linear2(block.linear1(rows).relu()) + rows)
    torch.testing.assert_close(tokens, block(x, biases()[name]), atol=1e-12, rtol=1e-12)


def test_large_scores_do_not_overflow():
    block, x = block_and_tokens(torch.float32)
    tokens = block(1e4 * x)
    tokens.sum().backward()
    assert torch.isfinite(tokens).all()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("masked", [True, False])
def test_a_batch_cut_into_parts_gives_the_same_actions_and_gradients(masked, a1_layout, monkeypatch):
    monkeypatch.setattr(transformer, "ROWS_PER_THREAD", 3)
    rows = 3 * torch.get_num_threads()
    network = MaskedTransformer(a1_layout, TransformerCfg(num_layers=1, masked=masked, flagged=masked))
    torch.manual_seed(0)
    obs, mask = torch.randn(2 * rows + 1, 48), (torch.rand(2 * rows + 1, 12) < 0.3).float()
    flag = torch.where(mask[:, :1] > 0.0, 1.0, -1.0).expand(-1, 3)  # not the same in all rows
    inputs = (obs, mask, flag) if masked else (obs, None, None)
    sizes = []
    network.context.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    results = []
    for path in (network, network._compute):
        network.zero_grad()
        actions = path(*inputs)
        actions.square().sum().backward()
        results.append([actions, *(parameter.grad.clone() for parameter in network.parameters())])
    assert sizes == [rows, rows, 1, 2 * rows + 1]
    for cut, whole in zip(*results, strict=True):
        torch.testing.assert_close(cut, whole, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("attention", ["full", "body"])
def test_inputs_projected_for_the_first_block_give_the_same_actions_and_gradients(attention, a1_layout, monkeypatch):
    torch.manual_seed(0)
    network = MaskedTransformer(a1_layout, TransformerCfg(num_layers=2, attention=attention)).double()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    inputs = torch.randn(6, 48).double(), (torch.rand(6, 12) < 0.3).double(), torch.randn(6, 3).sign().double()
    results = []
    for path in (MaskedTransformer._projected, lambda *_: None):
        monkeypatch.setattr(MaskedTransformer, "_projected", path)
        actions = network(*inputs)
        results.append([actions, *torch.autograd.grad(actions.sin().sum(), list(network.parameters()))])
    for projected, whole in zip(*results, strict=True):
        torch.testing.assert_close(projected, whole, atol=1e-11, rtol=1e-9)


def test_lower_precision_leaves_the_work_to_torch():
    block, x = block_and_tokens(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert block(x).grad_fn.name() != "ShortSequenceBlockBackward"
    assert block(x).grad_fn.name() == "ShortSequenceBlockBackward"


def test_torch_compile_takes_the_network_in_one_graph(a1_layout):
    network = MaskedTransformer(a1_layout, TransformerCfg(num_layers=1, attention="body"))
    inputs = torch.randn(4, 48), torch.zeros(4, 12), torch.ones(4, 3)
    compiled = torch.compile(network, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(*inputs), network(*inputs), atol=1e-6, rtol=0.0)


def test_no_query_reads_a_dead_joint_and_asking_for_weights_changes_no_action(a1_layout, monkeypatch):
    network = MaskedTransformer(a1_layout, TransformerCfg(num_layers=3))
    obs, mask, flag = torch.randn(2, 48), torch.zeros(2, 12), torch.ones(2, 3)
    mask[0, 4] = 1.0
    actions = network(obs, mask, flag)
    maps = network.attention(obs, mask, flag)
    assert maps.shape == (3, 2, 2, 13, 13)
    torch.testing.assert_close(maps.sum(-1), torch.ones(3, 2, 2, 13))
    assert (maps[:, 0, :, :, 4] == 0).all()
    assert (maps[:, 1] > 0).all()
    monkeypatch.setattr(transformer.EncoderBlock, "attention", None)  # acting computes no weights
    assert torch.equal(network(obs, mask, flag), actions)
