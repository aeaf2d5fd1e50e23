# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Protocols are the paper's tables, files can be anybody's, and bad ones are refused."""

import re
from pathlib import Path

import pytest
import yaml
from umc.evaluation.protocol import protocol_for, read_protocol_file
from umc.faults import paper_settings
from umc.utils.config import merged, read_overrides
from umc.utils.errors import UmcError

# paper, "Inference Parameters": envs, joints, ROM, motor, velocity, (seed, timing, terrain seed) of each setting group,
# episode length; radii from the tables of results
PAPER = {
    "a1": (4000, (4, 5), 0.1, 8, 3, [(1, 75, 100), (800, 100, 25), (50, 125, 75)], 750, (1, 2, 3, 4, 5)),
    "h1": (8192, (2, 3), 0.3, 8, 3, [(1, 75, None), (50, 100, None), (75, 125, None)], 750, (1, 2, 3, 4, 5)),
    "g1": (10000, (2, 4), 0.3, 5, 3, [(1, 75, None), (50, 100, None), (75, 125, None)], 750, (1, 2, 3, 4, 5)),
    "solo8": (4096, (2, 4), 0.3, 5, 3, [(50, 100, None)], 1000, (0.5, 1, 1.5, 2, 2.5)),
}


@pytest.mark.parametrize("robot", PAPER)
def test_the_protocol_holds_the_papers_inference_table(robot):
    envs, joints, rom, effort, velocity, settings, steps, radii = PAPER[robot]
    protocol = protocol_for(robot)
    assert (protocol.num_envs, protocol.num_joints, protocol.steps, protocol.radii) == (envs, joints, steps, radii)
    assert protocol.severity == {"rom": rom, "effort": effort, "velocity": velocity}
    assert [(one.seed, one.onset, one.perlin_seed) for one in protocol.settings] == settings
    assert protocol.scenarios == (1, 2, 3, 4, 5, 6, 7, 8)


def test_the_track_of_a1_is_the_papers():
    assert protocol_for("a1").track == {"width": 6.0, "block_length": 6.0, "border": 4.0}


def test_the_ablation_is_the_first_setting_group():
    ablation, whole = protocol_for("a1", name="umc_paper_ablation"), protocol_for("a1")
    assert ablation.settings == whole.settings[:1]
    assert (ablation.num_envs, ablation.severity, ablation.num_joints) == (4000, whole.severity, whole.num_joints)


def test_cells_are_dealt_out_in_turn_and_members_go_on_in_the_next_batch():
    protocol = protocol_for("a1", scenarios=(2, 8))
    cell, member = protocol.deal(14)
    assert cell.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1]
    assert member.tolist() == [0] * 6 + [1] * 6 + [2] * 2
    assert [(setting.onset, scenario) for setting, scenario in protocol.cells][:3] == [(75, 2), (75, 8), (100, 2)]
    assert protocol.deal(6, first_member=5)[1].tolist() == [5] * 6
    with pytest.raises(UmcError, match="--num_envs 5 is less than the 6 cells"):
        protocol.deal(5)


def test_cases_say_what_cells_are():
    cases = protocol_for("a1", scenarios=(3, "locked+dead")).cases()
    assert [(case["scenario"], case["seed"], case["onset"]) for case in cases[:3]] == [
        (3, 1, 75),
        ("locked+dead", 1, 75),
        (3, 800, 100),
    ]


def test_one_seed_and_overrides():
    protocol = protocol_for("a1", seed=7, overrides={"steps": 300, "num_joints": [1, 1]})
    found = [(one.seed, one.onset, one.perlin_seed) for one in protocol.settings]
    assert found == [(7, 75, 100), (7, 100, 25), (7, 125, 75)]
    assert (protocol.steps, protocol.num_joints) == (300, (1, 1))


def test_a_quick_run_is_short():
    protocol = protocol_for("g1", quick=True)
    assert len(protocol.settings) == 1
    assert protocol.settings[0].onset < protocol.steps < 100


def write(path: Path, content) -> str:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def test_a_file_of_ones_own(tmp_path):
    content = read_protocol_file("umc_paper")
    content["robots"] = {"go2": {**content["robots"]["g1"], "scenarios": ["power_loss"]}}
    name = write(tmp_path / "mine.yaml", {**content, "name": "mine"})
    assert protocol_for("go2", name=name).scenarios == ("power_loss",)
    with pytest.raises(UmcError, match="has nothing for robot 'a1'; it has go2"):
        protocol_for("a1", name=name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"radii": []}, "radii"),
        ({"radii": [2, 1]}, "increasing"),
        ({"scenarios": []}, "no scenario"),
        ({"scenarios": [9]}, "unknown scenario 9"),
        ({"scenarios": [1, 1]}, "twice"),
        ({"settings": {"seed": [1], "onset": [750]}}, "onset 750 must lie between step 1 and the episode's end at 750"),
        ({"settings": {"seed": [1, 2], "onset": [75]}}, "same length"),
        ({"settings": {"seed": [1]}}, "seed and onset"),
        ({"settings": {"seed": [1, 1], "onset": [75, 75]}}, "hold one twice"),
        ({"settings": {"seed": [-1], "onset": [75]}}, "seed -1"),
        ({"stpes": 3}, "unknown stpes"),
    ],
)
def test_a_protocol_that_makes_no_sense_is_refused(change, words):
    with pytest.raises(UmcError, match=words) as error:
        protocol_for("a1", overrides=change)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("num_envs=0", "num_envs must be a whole number from 1 on, not 0"),
        ("steps=abc", "steps must be a whole number of env steps from 1 on, not 'abc'"),
        ("steps=", "steps must be a whole number of env steps from 1 on, not None"),
        ("num_joints=3", "num_joints must be fewest and most, a list of two whole numbers from 1 on, not 3"),
        ("num_joints=[1,2,3]", "num_joints must be fewest and most"),
        ("num_joints=[3,2]", "num_joints must be fewest and most"),
        ("num_joints=[1.5,3]", "num_joints must be fewest and most"),
        ("severity=3", "severity must be a mapping by kind of fault"),
        ("settings=[1]", "settings must be a mapping with lists seed and onset, not [1]"),
        ("settings.seed=5", "settings.seed must be a list of whole numbers, not 5"),
        ("settings.onset=75", "settings.onset must be a list of whole numbers, not 75"),
        ("settings.seed=[a,b,c]", "settings.seed must be a list of whole numbers"),
        ("settings.seed=[1,2,9223372036854775808]", "seed 9223372036854775808 of the protocol must be 0 or more, and"),
        ("scenarios=3", "scenarios must be a list of numbers and names, not 3"),
        ("scenarios=[[1]]", "scenarios must be a list of numbers and names"),
        ("command=0.5", "command must be a list of three numbers"),
        ("command=[0.5]", "command must be a list of three numbers"),
        ("command=[0.5,0,.nan]", "command must be a list of three numbers"),
        ("radii=1", "radii must be a list of numbers [m], not 1"),
        ("radii=[a]", "radii must be a list of numbers [m]"),
        ("track.width=abc", "track must be empty, or hold width, block_length, border"),
        ("track.height=1", "track must be empty, or hold width, block_length, border"),
    ],
)
def test_an_override_of_the_wrong_kind_ends_in_a_line_that_says_what_it_has_to_be(token, words):
    changes = read_overrides([f"protocol.{token}"], "protocol")
    entry = read_protocol_file("umc_paper")["robots"]["a1"]
    with pytest.raises(UmcError, match=re.escape(words)) as error:
        protocol_for("a1", overrides=merged(entry, changes))
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_protocol_is_refused(tmp_path):
    with pytest.raises(UmcError, match=r"no protocol 'paper'.*umc_paper"):
        protocol_for("a1", name="paper")
    with pytest.raises(UmcError, match="no YAML"):
        protocol_for("a1", name=write(tmp_path / "bad.yaml", "a: [1"))
    with pytest.raises(UmcError, match="scenarios, robots is missing"):
        protocol_for("a1", name=write(tmp_path / "empty.yaml", {"name": "x"}))
    with pytest.raises(UmcError, match="robots must hold a mapping for each robot"):
        protocol_for("a1", name=write(tmp_path / "flat.yaml", {"name": "x", "scenarios": [1], "robots": ["a1"]}))


@pytest.mark.parametrize("robot", PAPER)
def test_the_protocol_and_the_faults_tables_agree(robot):
    rows, protocol = paper_settings(robot, "inference"), protocol_for(robot)
    assert protocol.num_envs == rows["num_envs"]
    assert protocol.num_joints == tuple(rows["num_joints"])
    assert protocol.severity == {kind: rows[kind] for kind in ("rom", "effort", "velocity")}
    assert protocol.steps == rows["episode_length"]
