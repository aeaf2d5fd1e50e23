# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A card says what a study found, and says so if it has been changed."""

import dataclasses
import json
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import umc as umc_package
from fresh_policy import write_fresh
from isaaclab.utils import to_dict
from made_up_study import made_up_study
from umc.cli.benchmark import GROUND, PROTOCOL, main
from umc.cli.evaluate import add_arguments
from umc.evaluation.arguments import parse
from umc.evaluation.card import (
    READINGS,
    SECTIONS,
    Conditions,
    _described,
    card_of,
    conditions_of,
    digest_of,
    page_of,
    read_card,
    stem_of,
    write_card,
)
from umc.evaluation.evaluate import _default_folder, choose_protocol
from umc.evaluation.evaluator import Evaluator
from umc.evaluation.metrics import Outcome
from umc.evaluation.protocol import protocol_for
from umc.evaluation.session import prepare
from umc.utils.errors import UmcError

from tools.leaderboard import CARDS, FAULTS, PAGE, RERUN, leaderboard, ranked, read_cards, refusal

FROZEN = {
    "a1": "cca583f00a8cf55ee74bc2c5261d75895b69258118f677eaa2de4f5cd9b7506a",
    "g1": "127678aa26b7515e9c47bf5bf4fc585d18dd439202376b5c63161a53c8d32208",
    "go2": "59002f6e5647840728b8f3c1b03f19ac1a2c75c6888cd17a38ae8361c35b34dc",
    "h1": "e81112e9a0ffa9b1cf735e2b6c0b5ad2438bafed8c4e15567bac43b9e0774321",
    "solo8": "dcabf152d22ae2f1501b5153174e83567bb292985b5b215ae1e08ecdac22ca4b",
}
"""SHA-256 of the conditions of UMC-Bench 1.0; another needs another version."""


ABOUT = {"sha256": "0" * 64, "env_overrides": []}
READS = {"policy": ["joint_pos", "clock"], "fault_flag": ["flag"]}
CONDITIONS = Conditions("1" * 64, {"a1.usda": "2" * 64}, [], [READS] * 3)


def card(study, result, **changes):
    return card_of(study, result, dataclasses.replace(CONDITIONS, **changes))


def with_run(result, **changes):
    return dataclasses.replace(result, run=dataclasses.replace(result.run, **changes))


def rewritten(path, change):
    """Change the content of a card and recompute its digest."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps({**content, "digest": digest_of(content)}))


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
        dataclasses.replace(one, about={**one.about, **ABOUT, "path": f"somewhere/{one.label}.pt"})
        for one in made_up.policies
    ]
    return dataclasses.replace(made_up, about=about, policies=tuple(policies))


def test_the_conditions_are_frozen():
    assert {robot: digest_of(protocol_for(robot, name=PROTOCOL).describe()) for robot in FROZEN} == FROZEN


def test_readings_differ_where_torque_is_limited(study):
    result = study.policies[0]
    made = card(study, result)
    limited, inert = (made.readings[name] for name in READINGS)
    run = result.run
    settings = torch.div(run.cell, 8, rounding_mode="floor")
    failed = run.episodes.outcome != int(Outcome.UP)
    for place, name in enumerate(map(str, range(1, 9))):
        rows = run.cell % 8 == place
        assert rows.sum() == 60
        if name in ("3", "6"):
            for reading, these in ((limited, settings < 3), (inert, settings >= 3)):
                assert (rows & these).sum() == 30
                share = failed[rows & these].float().mean().item()
                assert reading.scenarios[name]["failed"][0] == pytest.approx(share, abs=1e-5)
        else:
            assert limited.scenarios[name] == inert.scenarios[name]
            assert limited.scenarios[name]["failed"][0] == pytest.approx(failed[rows].float().mean().item(), abs=1e-5)
    for reading in (limited, inert):
        mean = sum(rates["failed"][0] for rates in reading.scenarios.values()) / 8
        assert reading.average["failed"][0] == pytest.approx(mean, abs=1e-5)
    assert limited.average["failed"][0] != inert.average["failed"][0]


def test_robots_that_fell_before_the_onset_have_failed(study):
    result = study.policies[0]
    episodes = result.run.episodes
    rows = (result.run.cell % 8 == 7).nonzero()[:30, 0]
    outcome = episodes.outcome.clone()
    outcome[:] = int(Outcome.UP)
    outcome[rows[:20]], outcome[rows[20:]] = int(Outcome.FELL_BEFORE_ONSET), int(Outcome.NON_FINITE)
    far = torch.full_like(episodes.distance, 9.0)
    made = card(study, with_run(result, episodes=dataclasses.replace(episodes, outcome=outcome, distance=far)))
    assert (made.fell_before_onset, made.non_finite) == (20, 10)
    healthy = made.readings[READINGS[0]].scenarios["8"]
    assert [healthy[key][0] for key in ("failed", "reached@3")] == [0.5, 0.5]
    page = page_of(made)
    assert "20 robots fell before the onset and the physics of 10 became non-finite; they count as failed." in page
    assert "20 of 480" in leaderboard({"a1_one": made})


def test_a_card_names_no_folder_and_all_policies_have_the_same_faults(study):
    result = study.policies[0]
    described = {**result.about, "reads": {"file": "/elsewhere/secret/walk.onnx", "history": 1}}
    first = card(study, dataclasses.replace(result, about=described))
    assert first.policy.file == "example A.pt"
    text = json.dumps(first.model_dump())
    assert "somewhere" not in text
    assert "secret" not in text
    assert "walk.onnx" in text
    assert first.faults_sha256 == card(study, study.policies[1]).faults_sha256
    run = result.run
    # as batches of another size give them
    shuffled = run.select(torch.randperm(len(run.cell)))
    assert card(study, dataclasses.replace(result, run=shuffled)).faults_sha256 == first.faults_sha256
    assert card(study, with_run(result, joints=run.joints.roll(1, dims=1))).faults_sha256 != first.faults_sha256


def test_a_changed_card_is_refused(study, tmp_path):
    made = card(study, study.policies[0])
    path, page, picture = write_card(made, tmp_path)
    assert read_card(path) == made
    assert page.read_text() == page_of(made)
    assert "![rates by scenario](a1_example_a.svg)" in page.read_text()
    assert picture.read_text().startswith("<?xml")
    content = json.loads(path.read_text())
    content["readings"][READINGS[0]]["average"]["failed"][0] = 0.0
    path.write_text(json.dumps(content))
    with pytest.raises(UmcError, match="has been changed"):
        read_card(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["readings"].pop(READINGS[1]),
        lambda content: content["readings"].update(more=content["readings"][READINGS[0]]),
        lambda content: content["readings"][READINGS[0]]["scenarios"].pop("8"),
        lambda content: content["readings"][READINGS[0]]["scenarios"]["8"].pop("failed"),
        lambda content: content["readings"][READINGS[1]]["average"].pop("reached@3"),
        lambda content: content["policy"].pop("sha256"),
        lambda content: content.update(code={}),
    ],
)
def test_an_incomplete_card_is_refused_whatever_its_digest(study, tmp_path, change):
    path, *_ = write_card(card(study, study.policies[0]), tmp_path)
    rewritten(path, change)
    with pytest.raises(UmcError, match="is no card"):
        read_cards(tmp_path)


def test_the_leaderboard_refuses_what_cannot_be_compared(study, tmp_path, monkeypatch):
    monkeypatch.setattr("tools.leaderboard.FAULTS", {})  # the made-up robots have other faults than those of the cards
    first, second, third = study.policies
    write_card(card(study, first), tmp_path)
    write_card(card(study, second), tmp_path)
    read_cards(tmp_path)
    about, run = study.about, third.run
    trained = dataclasses.replace(third, about={**third.about, "env_overrides": ["env.sim.dt=0.01"]})
    for made, words in (
        (card(dataclasses.replace(study, about={**about, "quick": True}), third), "--quick"),
        (
            card(dataclasses.replace(study, protocol=dataclasses.replace(study.protocol, steps=700)), third),
            "other condi",
        ),
        (card(dataclasses.replace(study, about={**about, "task": "UMC-A1-Stage1"}), third), "made in UMC-A1-Stage1"),
        (card(study, with_run(third, joints=run.joints.roll(1, dims=1))), "has other faults than"),
        (card(study, third, env_sha256="3" * 64), "has another env cfg"),
        (card(study, third, files_sha256={"a1.usda": "3" * 64}), "has another env cfg"),
        (card(study, trained), "trained with env.sim.dt=0.01"),
        (card(study, third, overrides=["env.scene.robot.spawn.scale=2"]), "trained with env.scene.robot.spawn.scale=2"),
    ):
        write_card(made, tmp_path)
        with pytest.raises(UmcError, match=words):
            read_cards(tmp_path)
    # its other overrides are on its card, and its rewards are of no matter
    trained.about["env_overrides"][:] = ["env.rewards.alive.weight=2.0", "env.actions.joint_pos.scale=0.3"]
    write_card(card(study, trained, overrides=["env.actions.joint_pos.scale=0.3"]), tmp_path)
    assert "env.actions.joint_pos.scale=0.3" in (tmp_path / "a1_example_c.md").read_text()
    read_cards(tmp_path)
    # another engine has an env cfg of its own
    newton = dataclasses.replace(study, about={**about, "physics": "newton_mjwarp"})
    write_card(card(newton, third, env_sha256="3" * 64), tmp_path)
    read_cards(tmp_path)


def with_main(made, value, low, high):
    made = made.model_copy(deep=True)
    made.readings[READINGS[0]].average["reached@3"] = [value, low, high]
    return made


def test_policies_whose_intervals_overlap_share_a_rank(study):
    one = card(study, study.policies[0])
    intervals = {"a": (0.5, 0.4, 0.6), "b": (0.9, 0.8, 0.95), "c": (0.85, 0.7, 0.9), "d": (0.3, 0.2, 0.39)}
    rows = ranked({name: with_main(one, *rate) for name, rate in intervals.items()})
    assert [(row.file, row.rank) for row in rows] == [("b", 1), ("c", 1), ("a", 3), ("d", 4)]


def test_every_engine_has_a_table_and_what_reads_more_has_no_rank(study):
    one = card(study, study.policies[0])
    newton = one.model_copy(update={"physics": "newton_mjwarp"})
    critic = one.model_copy(update={"name": "told", "reads": {**READS, "critic": ["base_lin_vel"]}})
    function = one.model_copy(update={"name": "code|x", "reads": None})
    page = leaderboard({"a1_one": one, "a1_newton": newton, "a1_told": critic, "a1_code": function})
    assert "## A1 on none" in page
    assert "## A1 on newton_mjwarp" in page
    assert "policy: joint_pos, clock; fault_flag" in page
    assert "- [told](cards/a1_told.md): reads critic" in page
    assert "- [code\\|x](cards/a1_code.md): a function, which gets the whole environment" in page
    assert page.count("| self-reported |") == 2
    assert [refusal(some) is None for some in (one, newton, critic, function)] == [True, True, False, False]


def test_benchmark_has_a_folder_of_its_own_and_names_all_files(study, tmp_path, monkeypatch, capsys):
    def evaluated(options, overrides, launcher, folder, check):
        assert (options.protocol, options.episodes, overrides) == (PROTOCOL, 10, [GROUND])
        assert folder == "benchmark"
        check(SimpleNamespace(session="session", labels=["label"]))
        return study, tmp_path

    monkeypatch.setattr("umc.evaluation.evaluate.evaluate", evaluated)
    monkeypatch.setattr("umc.evaluation.card.conditions_of", lambda *_: CONDITIONS)
    assert main(["--checkpoint", "pretrained:a1_mlp_stage2"]) == 0
    shown = capsys.readouterr().out
    for path in (tmp_path / "cards").iterdir():
        assert str(path) in shown
    assert len(list((tmp_path / "cards").iterdir())) == 9


class Walk(torch.nn.Module):
    """A network that does nothing."""

    def forward(self, columns: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(columns), 12)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """What is going to be simulated of some policies, as ``umc benchmark`` prepares it."""

    def evaluator(*argv, num_envs=480):
        words = [*argv, GROUND, "--protocol", PROTOCOL, "--device", "cpu", "physics=ovphysx"]
        options, overrides = parse(words, add_arguments)
        session = prepare(options, overrides, stage=2)
        protocol = choose_protocol(session, None, {})
        return Evaluator(session, protocol, num_envs, 10, tmp_path_factory.mktemp("out"))

    return evaluator


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walk")
    torch.jit.script(Walk()).save(folder / "walk.pt")
    (folder / "walk.yaml").write_text("file: walk.pt\nobservations: [joint_pos, {term: critic/base_lin_vel}]\n")
    return folder / "walk.yaml"


def conditions(evaluator):
    return conditions_of(evaluator.session, evaluator.labels)


def test_the_env_cfg_depends_on_neither_policy_nor_machine(prepared, walk):
    umc = prepared("--checkpoint", "pretrained:g1_mlp_stage2")
    folders = {str(_default_folder(umc.session, umc.protocol.name, name)) for name in ("evaluation", "benchmark")}
    own = "g1_mlp_stage2_UMC-Bench_1.0"
    assert folders == {f"logs/pretrained/g1_mlp_stage2/{name}/{own}" for name in ("evaluation", "benchmark")}
    sections = {name: to_dict(umc.session.env_cfg)[name] for name in SECTIONS}
    text = json.dumps(_described(sections, {}), default=str)
    assert '"usd_path": "g1.usda"' in text
    for place in (str(Path(umc_package.__file__).parent), tempfile.gettempdir(), str(Path.home())):
        assert place not in text
    found = conditions(umc)
    assert set(found.files_sha256) == {"g1.usda", "ground.usda"}
    assert set(found.reads[0]) == {"policy", "joint_mask", "fault_flag"}
    assert "base_ang_vel" in found.reads[0]["policy"]
    other = conditions(prepared("--task", "UMC-G1-Stage2", "--policy", str(walk), "--trust", num_envs=240))
    assert (other.env_sha256, other.files_sha256) == (found.env_sha256, found.files_sha256)
    assert other.reads == [{"policy": ["joint_pos"], "critic": ["base_lin_vel"]}]
    for change in ("env.scene.robot.init_state.pos=[0.0,0.0,0.9]", "env.sim.gravity=[0.0,0.0,-9.0]"):
        changed = prepared("--checkpoint", "pretrained:g1_mlp_stage2", change)
        assert conditions(changed).env_sha256 != found.env_sha256
    published = next(made for made in read_cards().values() if (made.robot, made.physics) == ("g1", "ovphysx"))
    assert (published.env_sha256, published.files_sha256) == (found.env_sha256, found.files_sha256)


def test_what_an_evaluation_repeats_of_a_training_is_on_the_card_or_refused(prepared, tmp_path):
    own = ["env.actions.joint_pos.scale=0.3", "env.rewards.alive.weight=2.0", "env.observations.critic.command=null"]
    path = write_fresh(tmp_path / "own", task="UMC-G1-Stage2", env_overrides=own)
    assert conditions(prepared("--checkpoint", str(path))).overrides == own[:1]
    for token in ("env.decimation=2", "env.sim.dt=0.004", "env.scene.robot.init_state.pos=[0.0,0.0,0.9]"):
        path = write_fresh(tmp_path / token[:9], task="UMC-G1-Stage2", env_overrides=[token])
        with pytest.raises(UmcError, match="the conditions are frozen"):
            conditions(prepared("--checkpoint", str(path)))


def test_the_published_cards_are_valid_and_ranked():
    cards = read_cards()
    assert PAGE.read_text(encoding="utf-8") == leaderboard(cards), "run ./isaaclab.sh -p -m tools.leaderboard"
    assert set(RERUN) <= set(cards)
    assert {made.robot: made.faults_sha256 for made in cards.values()} == FAULTS
    for name, made in cards.items():
        assert name == stem_of(made.robot, made.name)
        assert (CARDS / f"{name}.md").read_text(encoding="utf-8") == page_of(made)
        assert (CARDS / f"{name}.svg").is_file()
