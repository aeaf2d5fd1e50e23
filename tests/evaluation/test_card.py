# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A card says what a study found, and says so if it has been changed."""

import dataclasses
import json

import pytest
import torch
from made_up_study import made_up_study
from umc.cli.benchmark import PROTOCOL
from umc.evaluation.card import READINGS, card_of, digest_of, read_card, write_card
from umc.evaluation.metrics import Outcome
from umc.evaluation.protocol import protocol_for
from umc.utils.errors import UmcError

from tools.leaderboard import CARDS, PAGE, leaderboard, read_cards

FROZEN = {
    "a1": "97d242b50a2a6899ef1f1110bc9d848cc442873044e5cf42c5d2313fa6b1adcd",
    "g1": "33d6ef1045437d52812c1ad74a348c08ec7be922878ebf49631dc96c3d14990a",
    "h1": "b2e9561a97fabef3f26762e98428ea1ef18f476bcd7f7fd8991866930fdf9112",
    "solo8": "64373a5727397fd1d4482c0975175d1883dcf2a798d34ac8761b7ee7d461c13d",
}
"""SHA-256 of the conditions of UMC-Bench 1.0; another needs another version."""


@pytest.fixture(scope="module")
def study():
    made_up = made_up_study(members=10, protocol=protocol_for("a1", name=PROTOCOL))
    about = {
        **made_up.about,
        "quick": False,
        "versions": {"umc": "0.1.0"},
        "git": None,
        "time": "now",
        "task": "UMC-A1-Stage2",
    }
    policies = [
        dataclasses.replace(one, about={**one.about, "path": f"somewhere/{one.label}.pt", "sha256": "0" * 64})
        for one in made_up.policies
    ]
    return dataclasses.replace(made_up, about=about, policies=tuple(policies))


def test_the_conditions_are_frozen():
    assert {robot: digest_of(protocol_for(robot, name=PROTOCOL).describe()) for robot in FROZEN} == FROZEN


def test_readings_differ_where_torque_is_limited(study):
    result = study.policies[0]
    card = card_of(study, result)
    limited, inert = (card.readings[name] for name in READINGS)
    run = result.run
    settings = torch.div(run.cell, 8, rounding_mode="floor")
    failed = run.episodes.outcome == int(Outcome.FAILED)
    up = run.episodes.outcome == int(Outcome.UP)
    for place, name in enumerate(map(str, range(1, 9))):
        rows = (run.cell % 8 == place) & (failed | up)
        both = failed[rows].float().mean().item()
        if name in ("3", "6"):
            for reading, these in ((limited, settings < 3), (inert, settings >= 3)):
                share = failed[rows & these].float().mean().item()
                assert reading.scenarios[name]["failed"][0] == pytest.approx(share, abs=1e-5)
        else:
            assert limited.scenarios[name] == inert.scenarios[name]
            assert limited.scenarios[name]["failed"][0] == pytest.approx(both, abs=1e-5)
    for reading in (limited, inert):
        mean = sum(rates["failed"][0] for rates in reading.scenarios.values()) / 8
        assert reading.average["failed"][0] == pytest.approx(mean, abs=1e-5)
    assert limited.average["failed"][0] != inert.average["failed"][0]


def test_a_card_names_no_folder_and_all_policies_have_the_same_faults(study):
    first, second = (card_of(study, result) for result in study.policies[:2])
    assert first.policy["file"] == "example A.pt"
    assert "somewhere" not in json.dumps(first.model_dump())
    assert first.faults_sha256 == second.faults_sha256
    run = study.policies[0].run
    # as batches of another size give them
    shuffled = run.select(torch.randperm(len(run.cell)))
    assert card_of(study, dataclasses.replace(study.policies[0], run=shuffled)).faults_sha256 == first.faults_sha256
    other = dataclasses.replace(run, joints=run.joints.roll(1, dims=1))
    assert card_of(study, dataclasses.replace(study.policies[0], run=other)).faults_sha256 != first.faults_sha256


def test_a_changed_card_is_refused(study, tmp_path):
    page = write_card(card_of(study, study.policies[0]), tmp_path)
    path = page.with_suffix(".json")
    assert read_card(path) == card_of(study, study.policies[0])
    assert "![rates by scenario](a1_example_a.svg)" in page.read_text()
    assert page.with_suffix(".svg").read_text().startswith("<?xml")
    content = json.loads(path.read_text())
    content["readings"][READINGS[0]]["average"]["failed"][0] = 0.0
    path.write_text(json.dumps(content))
    with pytest.raises(UmcError, match="has been changed"):
        read_card(path)


def test_the_leaderboard_ranks_and_refuses_what_cannot_be_compared(study, tmp_path):
    for result in study.policies:
        write_card(card_of(study, result), tmp_path)
    page = leaderboard(read_cards(tmp_path))
    # a larger skill falls less
    places = [page.index(f"[{one.label}](cards/a1_") for one in study.policies]
    assert places == sorted(places, reverse=True)
    quick = dataclasses.replace(study, about={**study.about, "quick": True})
    path = write_card(card_of(quick, study.policies[0]), tmp_path)
    with pytest.raises(UmcError, match="--quick"):
        read_cards(tmp_path)
    path.with_suffix(".json").unlink()
    protocol = dataclasses.replace(study.protocol, steps=700)
    write_card(card_of(dataclasses.replace(study, protocol=protocol), study.policies[0]), tmp_path)
    with pytest.raises(UmcError, match="other conditions"):
        read_cards(tmp_path)
    elsewhere = dataclasses.replace(study, about={**study.about, "task": "UMC-A1-Stage1"})
    write_card(card_of(elsewhere, study.policies[0]), tmp_path)
    with pytest.raises(UmcError, match="was made in UMC-A1-Stage1"):
        read_cards(tmp_path)
    run = study.policies[0].run
    moved = dataclasses.replace(study.policies[0], run=dataclasses.replace(run, joints=run.joints.roll(1, dims=1)))
    write_card(card_of(study, moved), tmp_path)
    with pytest.raises(UmcError, match="has other faults than"):
        read_cards(tmp_path)


def test_the_published_cards_are_valid_and_ranked():
    cards = read_cards()
    assert PAGE.read_text(encoding="utf-8") == leaderboard(cards), "run ./isaaclab.sh -p -m tools.leaderboard"
    for name in cards:
        assert (CARDS / f"{name}.md").is_file()
        assert (CARDS / f"{name}.svg").is_file()
