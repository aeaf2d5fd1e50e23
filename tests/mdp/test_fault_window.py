# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The range of motion that is left lies inside the old one and holds the joint."""

import pytest
import torch
from umc.mdp.physics import rom_window


def window(position: float, fraction: float, placement: float, limits=(-1.0, 3.0)) -> list[float]:
    tensors = (torch.tensor(value) for value in (list(limits), position, fraction, placement))
    return rom_window(*tensors).tolist()


def test_random_windows_hold_the_joint_inside_the_limits():
    limits = torch.tensor([-1.0, 3.0]).expand(10_000, 2)
    position = torch.rand(10_000) * 4.0 - 1.0
    lower, upper = rom_window(limits, position, torch.full_like(position, 0.3), torch.rand(10_000)).unbind(-1)
    assert ((lower >= -1.0) & (upper <= 3.0)).all()
    assert ((lower <= position) & (position <= upper)).all()
    assert torch.allclose(upper - lower, torch.full_like(upper, 1.2), atol=1e-5)


def test_placement_moves_the_window_from_end_to_end():
    assert window(1.0, 0.25, 0.0) == pytest.approx([0.0, 1.0])
    assert window(1.0, 0.25, 0.5) == pytest.approx([0.5, 1.5])
    assert window(1.0, 0.25, 1.0) == pytest.approx([1.0, 2.0])
    assert window(2.9, 0.25, 1.0) == pytest.approx([2.0, 3.0])


@pytest.mark.parametrize(("position", "expected"), [(5.0, [2.0, 3.0]), (-5.0, [-1.0, 0.0])])
def test_a_joint_beyond_its_limit_keeps_that_limit(position, expected):
    for placement in (0.0, 0.5, 1.0):
        assert window(position, 0.25, placement) == pytest.approx(expected)


def test_the_whole_range_changes_nothing():
    assert window(0.3, 1.0, 0.7) == pytest.approx([-1.0, 3.0])
