# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The least torque of faulty joints in a posture at rest."""

import numpy as np

from tools.torque_margin import STANCES, Statics, draws

STRAIGHT = np.zeros(12)


def test_on_one_foot_an_upright_trunk_needs_torque_in_the_hip_and_a_leaning_one_does_not():
    """The weight of the trunk has a lever of 0.12 m about the hip, of which the other leg balances a part."""
    upright, leaning = (Statics("g1", np.deg2rad(angle)) for angle in (2.0, 45.0))
    hip = [number for number, name in enumerate(upright.joints) if name.startswith("left_hip")]
    assert 10.0 < upright.least_torque(hip, STANCES["left foot"], STRAIGHT) < 40.0
    assert leaning.least_torque(hip, STANCES["left foot"], STRAIGHT) < 1.0
    assert upright.least_torque(hip, STANCES["both feet"], STRAIGHT) < 1.0


def test_h1_cannot_stand_on_one_foot_at_rest():
    assert Statics("h1", np.deg2rad(45.0)).least_torque([0], STANCES["left foot"], np.zeros(10)) == np.inf


def test_every_number_of_joints_is_drawn_as_often():
    sets = draws(12, 2, 4, 30, np.random.default_rng(0))
    assert [sum(len(one) == size for one in sets) for size in (2, 3, 4)] == [10, 10, 10]
    assert all(len(set(one)) == len(one) and max(one) < 12 for one in sets)
