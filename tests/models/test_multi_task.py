# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The network of MT-FTC computes what the public code computes; data/mt_ftc.json holds what that gave."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from umc.models import JointLayout, MultiTaskCfg, MultiTaskMlp
from umc.utils.errors import UmcError

DATA = Path(__file__).parent / "data"
sys.path.insert(0, str(DATA))
from make_body_transformer_reference import draw_weights  # noqa: E402

REFERENCE = json.loads((DATA / "mt_ftc.json").read_text(encoding="utf-8"))
OBS = torch.from_numpy(np.random.RandomState(1).standard_normal((8, 30)).astype(np.float32))
CLASSES = torch.eye(3)[[0, 0, 0, 0, 1, 1, 2, 2]]  # the public code splits a batch 50 : 25 : 25
LAYOUT = JointLayout.term_major([f"joint_{number}" for number in range(8)], obs_dim=30, joint_start=6)


def network(output, **options):
    """Our network with the weights of the public one."""
    ours = MultiTaskMlp(LAYOUT, MultiTaskCfg(output=output, **options))
    name = "actor" if output == "action" else "critic"
    places = {f"pre_{name}.": "shared.", **{f"task{head + 1}_{name}.": f"heads.{head}." for head in range(3)}}
    drawn = draw_weights(REFERENCE["shapes"], seed=0)
    ours.load_state_dict(
        {
            place + weight.removeprefix(public): torch.from_numpy(value)
            for public, place in places.items()
            for weight, value in drawn.items()
            if weight.startswith(public)
        }
    )
    return ours


@pytest.mark.parametrize(("output", "key"), [("action", "actions"), ("value", "values")])
def test_outputs_equal_the_public_implementations(output, key):
    expected = torch.tensor(REFERENCE[key])
    assert expected.std(0).min() > 0.2  # the reference tells observations apart
    ours = network(output)
    torch.testing.assert_close(ours(OBS, None, CLASSES), expected, atol=1e-5, rtol=0.0)
    assert ((ours(OBS, None, CLASSES.roll(1, 1)) - expected).abs().amax(1) > 1e-2).all()


def test_sizes_are_the_public_ones():
    sizes = [sum(one.numel() for one in network(output).parameters()) for output in ("action", "value")]
    std = REFERENCE["shapes"]["std"][0]
    assert (*sizes, sum(sizes) + std) == (35_768, 35_075, 70_851)


@pytest.mark.parametrize("chosen", range(3))
def test_only_the_head_of_the_fault_class_acts_and_learns(chosen):
    ours = network("action")
    classes = torch.eye(3)[[chosen] * 8]
    acted = ours(OBS, None, classes)
    torch.testing.assert_close(acted, ours.heads[chosen](ours.shared(OBS)))
    acted.sum().backward()
    learns = [any(bool(one.grad.any()) for one in head.parameters()) for head in ours.heads]
    assert learns == [head == chosen for head in range(3)]
    assert all(bool(one.grad.any()) for one in ours.shared.parameters())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"flagged": False}, "reads the fault class and no mask"),
        ({"masked": True}, "reads the fault class and no mask"),
        ({"hidden_dims": ()}, "hidden_dims and head_dims must be lists of positive widths"),
        ({"head_dims": (64, 0)}, "hidden_dims and head_dims must be lists of positive widths"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, words):
    with pytest.raises(UmcError, match=words):
        MultiTaskMlp(LAYOUT, MultiTaskCfg(**options))


def test_a_missing_fault_class_is_refused():
    with pytest.raises(UmcError, match=r"needs a fault_flag \(B, 3\)"):
        network("action")(OBS)
