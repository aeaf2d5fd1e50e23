# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios are the paper's, and users can name others."""

import pytest
from umc.faults import KINDS, SCENARIOS, SUBCATEGORIES, find_scenario
from umc.faults.scenarios import Scenario
from umc.utils.errors import UmcError

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
    assert set(SCENARIOS) == set(PAPER)
    for number, (sensor, damage) in PAPER.items():
        scenario = SCENARIOS[number]
        assert ("dead" in scenario.kinds) == (sensor == "damaged")
        assert [kind for kind in scenario.kinds if kind != "dead"] == ([damage] if damage else [])
        assert scenario.detected == (number in (2, 3, 4))


def test_subcategories_are_the_papers():
    assert list(SUBCATEGORIES) == ["normal", "sensor_only", "detectable", "undetectable"]
    assert [set(scenario.kinds) for scenario in SUBCATEGORIES.values()] == [
        set(),
        {"dead"},
        {"dead", "rom", "effort", "velocity"},
        {"effort", "velocity"},
    ]
    assert [scenario.detected for scenario in SUBCATEGORIES.values()] == [False, False, True, False]


def test_scenarios_are_found_by_kinds_number_or_own_name():
    scenario = find_scenario("locked+dead")
    assert scenario.kinds == ("locked", "dead")
    assert scenario.detected
    assert not find_scenario("power_loss").detected
    own = {"quiet": {"kinds": ["dead", "locked"], "detected": False}, "loud": {"kinds": ["bias"], "detected": True}}
    assert [find_scenario(name, own).detected for name in own] == [False, True]
    assert Scenario.of("x", []) == Scenario("x")
    assert find_scenario("scenario_3") == SCENARIOS[3] == find_scenario(3)


@pytest.mark.parametrize(
    ("name", "own", "message"),
    [
        (9, None, "unknown scenario 9; the paper's scenarios are 1 to 8; choose one of them"),
        ("lokced", None, "unknown scenario 'lokced'; choose"),
        ("mine", {"mine": ["dead", "dead"]}, "twice"),
        (2.5, {2.5: ["dead"]}, "unknown scenario '2.5'; choose"),  # names are words, also in YAML
        ("mine", {"mine": "dead"}, "must list its kinds"),
        ("mine", {"mine": {"kind": ["dead"]}}, "must list its kinds"),
        ("mine", {"mine": {"kinds": ["dead"], "detected": "false"}}, "detected false must be true or false"),
        ("mine", {"mine": ["broken"]}, f"choose from {sorted(KINDS)[0]}"),
    ],
)
def test_unknown_scenarios_are_refused(name, own, message):
    with pytest.raises(UmcError, match=r"^[^\n]*$") as error:
        find_scenario(name, own)
    assert message in str(error.value)
