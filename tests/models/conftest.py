# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A1's observation and its joint graph, for the tests of this folder."""

from __future__ import annotations

import pytest
from umc.models import JointLayout

A1_NEIGHBOURS = [[1, 12], [0, 2], [1], [4, 12], [3, 5], [4], [7, 12], [6, 8], [7], [10, 12], [9, 11], [10]]
A1_NEIGHBOURS += [[0, 3, 6, 9]]
"""What umc.robots.graph reads off A1 (tests/robots/test_graph.py); 12 is the base."""


@pytest.fixture(scope="session")
def a1_layout():
    names = [f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")]
    return JointLayout.term_major(names, obs_dim=48, joint_start=12, neighbours=A1_NEIGHBOURS)
