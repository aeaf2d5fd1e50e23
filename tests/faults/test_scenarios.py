# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios are the paper's, and users can name others."""

import pytest
from umc.faults import KINDS, SCENARIOS, SUBCATEGORIES, find_scenario, paper_settings
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

# paper, "Malfunction Settings for Training and Inference": training row, then inference row of num_envs, joints,
# ROM, motor, velocity, seeds, timing, episode length
SETTINGS = {
    "a1": (
        (7400, [2, 4], 0.3, 5, 3, 42, None, 1000),
        (4000, [4, 5], 0.1, 8, 3, [1, 800, 50], [75, 100, 125], 750),
    ),
    "h1": (
        (10000, [2, 4], 0.3, 10, 5, 42, None, 1000),
        (8192, [2, 3], 0.3, 8, 3, [1, 50, 75], [75, 100, 125], 750),
    ),
    "g1": (
        (8192, [2, 4], 0.3, {".*_hip_.*": 8, ".*_knee_.*": 13, ".*_ankle_.*": 4}, 3, 42, None, 1000),
        (10000, [2, 4], 0.3, 5, 3, [1, 50, 75], [75, 100, 125], 750),
    ),
    "solo8": (
        (4096, [1, 3], 0.3, 0.75, 5, 42, None, 1000),
        (4096, [2, 4], 0.3, 5, 3, 50, 100, 1000),
    ),
}
ROWS = ("num_envs", "num_joints", "rom", "effort", "velocity", "seed", "onset", "episode_length")


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


@pytest.mark.parametrize("robot", SETTINGS)
def test_settings_are_the_papers(robot):
    for table, expected in zip(("training", "inference"), SETTINGS[robot], strict=True):
        rows = paper_settings(robot, table)
        assert tuple(rows[name] for name in ROWS) == expected


def test_the_track_and_the_ablation_of_a1_are_the_papers():
    track = ("track_width", "track_block_length", "border_size", "perlin_seed")
    assert [paper_settings("a1", "training")[row] for row in track] == [1.6, 2.0, 8, 1]
    assert [paper_settings("a1", "inference")[row] for row in track] == [6.0, 6.0, 4, [100, 25, 75]]
    ablation, inference = paper_settings("a1", "ablation"), paper_settings("a1", "inference")
    first = {"seed": 1, "onset": 75, "perlin_seed": 100}
    assert ablation == {name: first.get(name, inference[name]) for name in ablation}


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
        (9, None, "unknown scenario 9; the paper's scenarios are 1 to 8"),
        ("lokced", None, "unknown scenario 'lokced'; choose"),
        ("mine", {"mine": ["dead", "dead"]}, "twice"),
        ("mine", {"mine": "dead"}, "must list its kinds"),
        ("mine", {"mine": {"kind": ["dead"]}}, "must have 'kinds'"),
        ("mine", {"mine": ["broken"]}, f"choose from {sorted(KINDS)[0]}"),
    ],
)
def test_unknown_scenarios_are_refused(name, own, message):
    with pytest.raises(UmcError, match=r"^[^\n]*$") as error:
        find_scenario(name, own)
    assert message in str(error.value)
