# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the paper."""

from umc.faults import SCENARIOS, SUBCATEGORY_FAULTS, Scenario, Subcategory

# paper, table "Eight Damage Scenarios for Legged Robots": sensor status, joint damage
PAPER = {
    1: ("damaged", None),
    2: ("damaged", "rom"),
    3: ("damaged", "effort"),
    4: ("damaged", "velocity"),
    5: ("functional", "rom"),
    6: ("functional", "effort"),
    7: ("functional", "velocity"),
    8: ("functional", None),
}


def test_scenarios_are_the_papers():
    for number, (sensor, damage) in PAPER.items():
        scenario = SCENARIOS[number]
        assert scenario.sensor == (sensor == "damaged")
        assert [kind for kind in ("rom", "effort", "velocity") if getattr(scenario, kind)] == (
            [damage] if damage else []
        )
        assert scenario.detected == (number in (2, 3, 4))
    assert set(SCENARIOS) == set(PAPER)


def test_subcategories_are_the_papers():
    members = {8: Subcategory.NORMAL, 1: Subcategory.SENSOR_ONLY}
    members |= dict.fromkeys((2, 3, 4), Subcategory.DETECTABLE) | dict.fromkeys((5, 6, 7), Subcategory.UNDETECTABLE)
    assert {number: scenario.subcategory for number, scenario in SCENARIOS.items()} == members
    for subcategory, faults in SUBCATEGORY_FAULTS.items():
        assert faults.subcategory == subcategory
    everything = Scenario(sensor=True, rom=True, effort=True, velocity=True)
    assert SUBCATEGORY_FAULTS[Subcategory.DETECTABLE] == everything
    assert SUBCATEGORY_FAULTS[Subcategory.UNDETECTABLE] == Scenario(effort=True, velocity=True)
