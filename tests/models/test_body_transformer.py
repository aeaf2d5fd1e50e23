# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""BodyTransformer computes what the public implementation computes; data/ holds what that gave on A1."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from umc.models import BodyTransformer, BodyTransformerCfg

DATA = Path(__file__).parent / "data"
sys.path.insert(0, str(DATA))
from make_body_transformer_reference import draw_weights  # noqa: E402

REFERENCE = json.loads((DATA / "body_transformer.json").read_text(encoding="utf-8"))
OBS = torch.tensor(REFERENCE["obs"])
CASES = REFERENCE["cases"]
TOLERANCE = 1e-5  # issue 4


def public_name(joint):
    return joint.removesuffix("_joint")


def ours(case, layout, **changes):
    """Our network with the weights of a case of the public one."""
    options = {
        "output": case["output"],
        "attention": "body_mix" if case["mixed"] else "body",
        "output_activation": "tanh" if case["tanh"] else None,
        **case["sizes"],
        **changes,
    }
    network = BodyTransformer(layout, BodyTransformerCfg(**options))
    public = {name: torch.from_numpy(value) for name, value in draw_weights(case["shapes"], case["seed"]).items()}
    joints = [public_name(name) for name in layout.joint_names]
    tokens = [*joints, "root"]  # the public code puts the root first
    with_head = joints if case["output"] == "action" else tokens
    state = {
        "tokenizer.weight": torch.stack([public.pop(f"tokenizer.tokenizers.{name}.0.weight").T for name in joints]),
        "tokenizer.bias": torch.stack([public.pop(f"tokenizer.tokenizers.{name}.0.bias") for name in joints]),
        "context.weight": public.pop("tokenizer.tokenizers.root.0.weight"),
        "context.bias": public.pop("tokenizer.tokenizers.root.0.bias"),
        "positions": public.pop("net.embed_absolute_position.weight").roll(-1, 0),
        "head.weight": torch.cat([public.pop(f"detokenizer.detokenizers.{name}.weight") for name in with_head]),
        "head.bias": torch.cat([public.pop(f"detokenizer.detokenizers.{name}.bias") for name in with_head]),
    }
    parts = {"self_attn.in_proj_": "qkv.", "self_attn.out_proj.": "out."}
    for name in list(public):
        new = name.replace("net.encoder.layers.", "blocks.")
        for part, replacement in parts.items():
            new = new.replace(part, replacement)
        state[new] = public.pop(name)
    network.load_state_dict(state)
    return network


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_outputs_equal_the_public_implementations(case, a1_layout):
    expected = torch.tensor(case["outputs"])
    assert expected.std(0).min() > 0.02  # the reference tells observations apart
    torch.testing.assert_close(ours(case, a1_layout)(OBS), expected, atol=TOLERANCE, rtol=0.0)
    other_mask_scheme = ours(case, a1_layout, attention="body" if case["mixed"] else "body_mix")
    assert (other_mask_scheme(OBS) - expected).abs().max() > 1e-2


def test_defaults_are_the_public_a1_configuration(a1_layout):
    case = CASES[0]
    torch.manual_seed(0)
    default = BodyTransformer(a1_layout)
    default.load_state_dict(ours(case, a1_layout).state_dict())
    torch.testing.assert_close(default(OBS), torch.tensor(case["outputs"]), atol=TOLERANCE, rtol=0.0)


def test_it_reads_no_faults(a1_layout):
    network = BodyTransformer(a1_layout)
    assert torch.equal(network(OBS, torch.ones(5, 12), torch.ones(5, 3)), network(OBS))
