# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of what faults do, from made-up rollouts."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from umc.faults.kinds import KINDS, find_kind

from tools import fault_plots
from tools.fault_plots import AFTER, BEFORE, EXAMPLES, LAYERS, Rollout, draw, main

DOCS = Path(__file__).resolve().parents[2] / "docs"
LARGEST = 600_000
"""Most bytes of all pictures together."""


@pytest.fixture
def rollout():
    """Every quantity of every env has a value of its own, and limits fall at onset."""
    time = np.linspace(-0.6, 1.2, BEFORE + AFTER + 1)
    kinds = [*EXAMPLES, "healthy"]
    arrays = {}
    for number, name in enumerate(("position", "speed", "torque", "read", "sent", "arrived")):
        arrays[name] = np.sin(9.0 * time)[:, None] + 0.01 * np.arange(len(kinds)) + number
    for name, sign in (("lower", -1.0), ("upper", 1.0), ("velocity", 1.0), ("effort", 1.0)):
        arrays[name] = np.where(time < 0.0, 9.0, 2.0)[:, None] * sign * np.ones(len(kinds))
    return Rollout(time, kinds, arrays)


def courses(axis):
    """What the lines of an axis show, by label."""
    return {line.get_label(): line.get_ydata() for line in axis.get_lines() if len(line.get_ydata()) > 2}


@pytest.mark.parametrize("layer", LAYERS)
def test_each_kind_has_its_column_and_its_own_courses(rollout, layer):
    figure = draw(rollout, layer)
    kinds = [kind for kind in EXAMPLES if isinstance(find_kind(kind), LAYERS[layer][0])]
    axes = np.array(figure.axes).reshape(4, len(kinds))
    assert [axis.get_title().strip() for axis in axes[0]] == kinds
    for column, kind in zip(axes.T, kinds, strict=True):
        for axis, name in zip(column[:3], ("position", "speed", "torque"), strict=True):
            shown = courses(axis)
            assert np.array_equal(shown["with the fault"], rollout.of(name, kind))
            assert np.array_equal(shown["healthy twin"], rollout.of(name))
        last = courses(column[3])
        if layer == "command":
            assert np.array_equal(last["target sent"], rollout.of("sent", kind))
        else:
            assert np.array_equal(last["with the fault"], rollout.of("read", kind))
        limits = courses(column[0]).get("limit")
        assert (limits is not None) == (layer == "joint")
        if limits is not None:  # drawn from the onset on, where the fault has moved it
            assert np.array_equal(np.isnan(limits), rollout.time < 0.0)


def test_every_kind_is_shown():
    assert set(EXAMPLES) == {name for name, kind in KINDS.items() if type(kind).__module__.startswith("umc.")}


@pytest.mark.slow
def test_pictures_are_small_and_can_be_read(rollout, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fault_plots, "roll_out", lambda checkpoint, physics: rollout)
    checkpoint = tmp_path / "policy.pt"
    checkpoint.touch()
    assert main(["--out", str(tmp_path / "new"), "--checkpoint", str(checkpoint)]) == 0
    pictures = sorted((tmp_path / "new").iterdir())
    assert [picture.name for picture in pictures] == [f"fault_{layer}.png" for layer in sorted(LAYERS)]
    assert sum(picture.stat().st_size for picture in pictures) < LARGEST
    assert all(min(Image.open(picture).size) >= 750 for picture in pictures)
    assert len(capsys.readouterr().out.splitlines()) == len(LAYERS)


def test_a_missing_policy_is_one_line(tmp_path, capsys):
    assert main(["--checkpoint", str(tmp_path / "none.pt")]) == 2
    assert capsys.readouterr().err.startswith("error: there is no checkpoint")


def test_the_page_shows_the_pictures():
    shown = re.findall(r"images/(fault_\w+\.png)", (DOCS / "faults.md").read_text())
    assert sorted(set(shown)) == sorted(f"fault_{layer}.png" for layer in LAYERS)
    assert sum((DOCS / "images" / picture).stat().st_size for picture in set(shown)) < LARGEST
