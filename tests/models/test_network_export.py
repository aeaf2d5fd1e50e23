# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""TorchScript and ONNX compute what torch computes, for any batch and any mask."""

from __future__ import annotations

import onnxruntime
import pytest
import torch
from umc.models import BodyTransformer, BodyTransformerCfg, MaskedMlp, MaskedTransformer, TransformerCfg

J, D = 12, 48
INPUTS = ["policy", "joint_mask", "fault_flag"]
NETWORKS = {
    "mlp": MaskedMlp,
    "full": MaskedTransformer,
    "body": lambda layout: MaskedTransformer(layout, TransformerCfg(attention="body", num_layers=2)),
    "body_mix": lambda layout: MaskedTransformer(layout, TransformerCfg(attention="body_mix", num_layers=2)),
    "body_transformer": lambda layout: BodyTransformer(layout, BodyTransformerCfg(num_layers=2)),
}


def batches():
    torch.manual_seed(1)
    for size in (1, 7):
        for mask in (torch.zeros(size, J), torch.ones(size, J), (torch.rand(size, J) < 0.3).float()):
            flag = (mask.amax(1, keepdim=True) * 2.0 - 1.0).expand(size, 3).contiguous()
            yield torch.randn(size, D), mask, flag


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_agrees_after_a_round_trip(name, a1_layout, tmp_path):
    network = NETWORKS[name](a1_layout).eval()
    torch.jit.script(network).save(str(tmp_path / "network.pt"))
    loaded = torch.jit.load(str(tmp_path / "network.pt"))
    for inputs in batches():
        torch.testing.assert_close(loaded(*inputs), network(*inputs), atol=1e-6, rtol=0.0)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_onnx_agrees_for_any_batch(name, a1_layout, tmp_path):
    network = NETWORKS[name](a1_layout).eval()
    path = tmp_path / "network.onnx"
    dynamic = {0: torch.export.Dim.DYNAMIC}
    torch.onnx.export(
        network,
        (torch.zeros(2, D), torch.zeros(2, J), torch.ones(2, 3)),
        path,
        opset_version=18,
        input_names=INPUTS,
        output_names=["actions"],
        dynamic_shapes=(dynamic, dynamic, dynamic),
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [node.name for node in session.get_inputs()] == INPUTS
    for inputs in batches():
        actions = session.run(None, {name: tensor.numpy() for name, tensor in zip(INPUTS, inputs, strict=True)})[0]
        torch.testing.assert_close(torch.from_numpy(actions), network(*inputs), atol=1e-6, rtol=0.0)
