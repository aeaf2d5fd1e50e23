# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Protocol files, what a user may change of them, and the mistakes that are refused in one line."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from umc.evaluation.protocol import about_rate, protocol_for
from umc.evaluation.study import assign_envs, assignment_of, json_values, protocol_of
from umc.faults import FaultCases, JointLimits, paper_settings
from umc.robots.a1 import A1_JOINTS
from umc.robots.g1 import G1_JOINTS
from umc.robots.go2 import GO2_JOINTS
from umc.robots.h1 import H1_JOINTS
from umc.robots.solo8 import SOLO8_JOINTS
from umc.utils.config import read_config_file, read_overrides
from umc.utils.errors import UmcError

JOINTS = {"a1": A1_JOINTS, "go2": GO2_JOINTS, "g1": G1_JOINTS, "h1": H1_JOINTS, "solo8": SOLO8_JOINTS}


def test_a_task_of_another_rate_is_told_how_long_the_protocol_lasts_there():
    for robot in (*JOINTS, "solo12"):
        assert about_rate(robot, None, {}, 4 * 0.005) == []
    (line,) = about_rate("solo12", None, {}, 0.01)
    typed = "protocol.steps=1500 'protocol.settings.onset=[150,200,250]'"
    assert line == f"750 env steps of protocol any_robot are 7.5 s at 100 Hz; {typed} lasts as long as at 50 Hz"
    changes = read_overrides(typed.replace("'", "").split(), "protocol")
    longer = protocol_for("solo12", overrides=changes)
    assert (longer.steps, [one.onset for one in longer.settings]) == (1500, [150, 200, 250])
    assert about_rate("solo12", None, changes, 0.01) == []
    assert "onset" not in about_rate("solo12", None, {"settings.onset": [9, 9, 9]}, 0.01)[0]
    assert about_rate("solo12", "mine.yaml", {}, 0.01) == []  # made for its robot


@pytest.mark.parametrize(("name", "value"), [("noise", True), ("push", 0.5)])
def test_noise_and_pushes_are_part_of_the_protocol_only_where_they_are_on(name, value):
    """Digests of cards are older than the fields."""
    assert name not in protocol_for("a1").describe()
    disturbed = protocol_for("a1", overrides={name: value})
    assert disturbed.describe()[name] == value
    assert protocol_of(json_values(disturbed.describe())) == disturbed


def test_the_protocol_and_the_paper_settings_of_the_faults_agree():
    """tests/test_paper_tables.py compares protocols with the paper itself."""
    rows, protocol = paper_settings("a1", "inference"), protocol_for("a1")
    assert protocol.num_envs == rows["num_envs"]
    assert protocol.num_joints == tuple(rows["num_joints"])
    assert protocol.severity == {kind: rows[kind] for kind in ("rom", "effort", "velocity")}
    assert protocol.steps == rows["episode_length"]


def test_cells_are_assigned_in_turn_and_members_continue_in_the_next_batch():
    protocol = protocol_for("a1", scenarios=(2, "locked+dead"))
    assignment = assign_envs(protocol, 14)
    cell, member = assignment.cell, assignment.member
    assert cell.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1]
    assert member.tolist() == [0] * 6 + [1] * 6 + [2] * 2
    cells = [(2, 1, 75), ("locked+dead", 1, 75), (2, 800, 100)]
    assert [(scenario, setting.seed, setting.onset) for setting, scenario in protocol.cells][:3] == cells
    assert [(case["scenario"], case["seed"], case["onset"]) for case in protocol.cases()][:3] == cells
    assert assignment_of(protocol, torch.arange(30, 36)).member.tolist() == [5] * 6
    with pytest.raises(UmcError, match="--num_envs 5 is less than the 6 cells"):
        assign_envs(protocol, 5)


def test_a_user_can_choose_a_seed_values_and_a_quick_run():
    overrides = {"steps": 300, "num_joints": [1, 1], "severity.rom": 0.5, "track": {}}
    protocol = protocol_for("a1", seed=7, radii=[1, 2], overrides=overrides)
    found = [(one.seed, one.onset, one.perlin_seed) for one in protocol.settings]
    assert found == [(7, 75, 100), (7, 100, 25), (7, 125, 75)]
    assert (protocol.steps, protocol.num_joints, protocol.radii, protocol.track) == (300, (1, 1), (1.0, 2.0), {})
    flat = replace(
        protocol, settings=(*protocol.settings, replace(protocol.settings[0], perlin_seed=3))
    ).without_track()
    assert [one.name for one in flat.settings] == [f"seed 7, onset {onset}" for onset in (75, 100, 125)]
    assert protocol.severity == {"rom": 0.5, "effort": 8.0, "velocity": 3.0}
    assert protocol_for("a1").severity["rom"] == 0.1  # the file is not changed
    with pytest.raises(UmcError, match="steps holds no further names"):
        protocol_for("a1", overrides={"steps.x": 1})
    quick = protocol_for("g1").quick()
    assert len(quick.settings) == 1
    assert quick.settings[0].onset < quick.steps < 100


def write(path: Path, content) -> str:
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_a_user_can_write_a_file(tmp_path):
    content = read_config_file("protocol", "umc_paper")
    content["robots"] = {"go2": {**content["robots"]["g1"], "scenarios": ["power_loss"]}}
    name = write(tmp_path / "mine.yaml", {**content, "name": "mine"})
    protocol = protocol_for("go2", name=name)
    assert (protocol.name, protocol.scenarios) == ("mine", ("power_loss",))
    with pytest.raises(UmcError, match=re.escape(f"{name} has nothing for robot 'a1', only for go2;")):
        protocol_for("a1", name=name)


@pytest.mark.parametrize("robot", ["a1", "go2", "g1", "h1", "solo8", "another"])
def test_faults_of_the_real_world_strike_one_joint_one_leg_or_all(robot):
    protocol = protocol_for(robot, name="real_world")
    names = JOINTS.get(robot, JOINTS["a1"])
    protocol.check_faults(names)
    num_envs = 4 * len(protocol.cells)
    ones = torch.ones(len(names))
    faults = FaultCases(names, protocol.cases(), num_envs, nominal=JointLimits(-ones, ones, ones, ones))
    plan = faults.draw(torch.arange(num_envs), torch.zeros(num_envs, dtype=torch.int64))
    struck = {}
    for env, joints in enumerate(plan.joints.reshape(num_envs, -1, len(names))[:, 0]):
        scenario = protocol.cells[env % len(protocol.cells)][1]
        struck.setdefault(scenario, set()).add(tuple(joints.nonzero().flatten().tolist()))
    for scenario, found in struck.items():
        if str(scenario).startswith("leg_"):
            legs = {re.split("_", names[one])[0] for joints in found for one in joints}
            assert len(legs) == len({name.split("_")[0] for name in names})
            assert all(len({names[one].split("_")[0] for one in joints}) == 1 for joints in found)
            assert {len(joints) for joints in found} == {len(names) // len(legs)}
        elif scenario in ("derating", "growing_delay"):
            assert found == {tuple(range(len(names)))}
        elif scenario != 8:
            assert {len(joints) for joints in found} == {1}
    assert ("leg_dead" in struck) == (robot in JOINTS)


def test_a_protocol_can_name_scenarios_of_its_own(tmp_path):
    content = read_config_file("protocol", "umc_paper")
    entry = {
        **content["robots"]["g1"],
        "conditions": {"knees": {"scenario": "dead+locked", "joint_names": [".*_knee.*"]}},
    }
    name = write(tmp_path / "mine.yaml", {"name": "mine", "scenarios": ["knees", 8], "robots": {"g1": entry}})
    protocol = protocol_for("g1", name=name)
    assert protocol.scenario("knees").kinds == ("dead", "locked")
    assert [case["scenario"] for case in protocol.cases()[:2]] == ["dead+locked", 8]
    assert protocol_of(json_values(protocol.describe())) == protocol  # as a study keeps it
    with pytest.raises(UmcError, match=r"max is 4, but there are 2 joints"):
        protocol.check_faults(JOINTS["g1"])
    with pytest.raises(UmcError, match="unknown scenario 'ankles'"):
        protocol_for("g1", ["ankles"], name=name)
    for wrong, words in (
        ({"onset": 3}, "conditions.knees: unknown key onset"),
        ({"scenario": ["dead"]}, "conditions.knees.scenario"),
        ({"num_joints": [1]}, "conditions.knees.num_joints"),
    ):
        with pytest.raises(UmcError, match=re.escape(words)):
            protocol_for("g1", name=name, overrides={"conditions.knees": wrong})


def test_a_robot_that_the_paper_does_not_have_has_an_entry_of_its_own_or_that_of_any_robot():
    go2, other = protocol_for("go2"), protocol_for("solo12")
    assert (go2.name, other.name) == ("any_robot", "any_robot")
    assert (go2.num_joints, go2.severity["effort"]) == ((4, 5), 10.0)
    assert (other.num_joints, other.severity["effort"]) == ((2, 4), {"fraction": 0.25})


@pytest.mark.parametrize("robot", ["a1", "g1", "h1", "solo8"])
def test_the_paper_can_be_read_with_torque_limits_without_effect(robot):
    paper, inert = protocol_for(robot), protocol_for(robot, name="umc_paper_inert_effort")
    assert inert == replace(paper, name=inert.name, severity={**paper.severity, "effort": {"fraction": 1.0}})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"overrides": 3}, "overrides is 3; input should be a valid dictionary"),
        ({"overrides": {}, "robots": {}}, "unknown key robots"),
        ({"extends": "umc_paper_inert_effort", "overrides": {}}, "which extends another; name the last of them"),
        ({"extends": "paper", "overrides": {}}, "no protocol 'paper'"),
        ({"overrides": {"steps.low": 3}}, "cannot override steps.low: steps holds no further names"),
        ({"overrides": {"stpes": 3}}, "unknown key stpes; did you mean steps?"),
    ],
)
def test_a_wrong_extension_is_refused(tmp_path, content, words):
    name = write(tmp_path / "mine.yaml", {"name": "mine", "extends": "umc_paper", **content})
    with pytest.raises(UmcError, match=re.escape(words)):
        protocol_for("a1", name=name)


def test_a_file_extends_one_beside_it(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "base.yaml", read_config_file("protocol", "umc_paper"))
    extension = {"name": "mine", "extends": "base.yaml", "overrides": {"steps": 800}}
    assert protocol_for("a1", name=write(folder / "mine.yaml", extension)).steps == 800


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("num_envs=0", "num_envs is 0; input should be greater than 0"),
        ("num_joints=[1,2,3]", "num_joints is [1, 2, 3]; list should have at most 2 items"),
        ("severity=3", "severity is 3; input should be a valid dictionary"),
        ("settings={seed: [1]}", "settings.onset is missing; add it"),
        ("settings.seed=[1,2,9223372036854775808]", "seed 9223372036854775808 of the protocol must be 0 or more, and"),
        ("settings={seed: [1, 1], onset: [75, 75]}", "the protocol's settings hold one twice"),
        ("scenarios=[[1]]", "scenarios.0: [1] is not a scenario; give a number or a name"),
        ("command=[0.5,0,left]", "command.2 is 'left'; input should be a valid number"),
        ("radii=[a]", "radii.0 is 'a'; input should be a valid number"),
        ("steps=100001", "steps is 100001; input should be less than or equal to 100000"),
        ("track.height=1", "track: unknown key height;"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_file_key_and_fix(token, words):
    with pytest.raises(UmcError, match=re.escape(words)) as error:
        protocol_for("a1", overrides=read_overrides([f"protocol.{token}"], "protocol"))
    assert str(error.value).startswith("protocol umc_paper, robot a1: ")
    assert "\n" not in str(error.value)


def test_a_file_without_scenarios_is_refused(tmp_path):
    name = write(tmp_path / "bad.yaml", {"name": "x", "robots": {}})
    with pytest.raises(UmcError, match=re.escape(f"protocol {name}: scenarios is missing; add it")):
        protocol_for("a1", name=name)
