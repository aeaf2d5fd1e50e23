# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Pretrained policies: every one loads and is the one described; `--checkpoint pretrained` finds the right one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from dummy_training import planned
from fresh_policy import write_fresh
from umc.evaluation import arguments
from umc.evaluation.session import prepare
from umc.rl import pretrained
from umc.rl.agents import AGENTS
from umc.rl.checkpoint import checkpoint_info, read_checkpoint
from umc.rl.distillation import read_teacher
from umc.rl.pretrained import MODELS, find_pretrained, pretrained_folder, read_models, verified_file
from umc.tasks.registry import pretrained_policy
from umc.training.arguments import parse
from umc.training.plan import needs_stage1
from umc.training.recipe import read_recipe
from umc.training.sweep import parse_sweep
from umc.utils.errors import UmcError
from umc.utils.io import sha256

from tools.publish_policy import LARGEST_FILE


@pytest.mark.parametrize("name", sorted(read_models()))
def test_a_pretrained_policy_is_the_one_described(name):
    entry, path = read_models()[name], verified_file(name)
    info = checkpoint_info(read_checkpoint(path), path)
    assert (info.robot, info.model, info.stage, info.seed) == tuple(
        entry[key] for key in ("robot", "network", "stage", "seed")
    )
    assert name == f"{entry['robot']}_{entry['agent']}_stage{entry['stage']}"
    assert path.stat().st_size == entry["bytes"] <= LARGEST_FILE
    assert {"licence", "recipe", "commit", "metrics", "trained"} <= entry.keys()
    assert info.terrain == entry["trained"]["terrain"] != ""
    assert info.physics == entry["trained"]["physics"] != ""
    data = read_checkpoint(path)
    assert "optimizer_state_dict" not in data
    assert {tensor.dtype for key, tensor in data["actor_state_dict"].items() if key.startswith("core")} == {
        torch.float16
    }
    # a Stage 1 policy without critic could not be gone on from
    assert entry["stage"] == 2 or "critic_state_dict" in data


@pytest.mark.parametrize(
    "name",
    [
        "a1_mlp_stage2",
        "go2_mlp_stage1",
        "go2_mlp_stage2",
        "go2_nm_mlp_stage1",
        "solo8_mlp_stage2",
        "solo8_nm_mlp_stage1",
    ],
)
def test_a_recipe_written_after_the_training_repeats_it(name):
    entry = read_models()[name]
    phases = [phase for phase in read_recipe(entry["recipe"]).phases if phase.stage == entry["stage"]]
    trained = dict(token.split("=", 1) for token in entry["trained"]["overrides"])
    if "agent.mirror" not in trained:  # then it has no effect
        trained.pop("agent.mirror_loss", None)
    assert dict(token.split("=", 1) for token in phases[-1].overrides) == trained
    assert sum(phase.iterations for phase in phases) == entry["trained"]["iterations"]
    assert phases[-1].num_envs == entry["trained"]["num_envs"]


def test_every_file_is_described_and_every_description_has_a_file_and_an_agent():
    assert {path.stem for path in pretrained_folder().glob("*.pt")} == set(read_models())
    assert {entry["agent"] for entry in read_models().values()} <= AGENTS.keys()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Three policies of A1 and one of G1 in place of those of the package."""
    folder = tmp_path / "pretrained"
    folder.mkdir()
    models = {}
    for robot, agent, stage in (("a1", "mlp", 1), ("a1", "mlp", 2), ("a1", "nm_mlp", 1), ("g1", "mlp", 2)):
        name = f"{robot}_{agent}_stage{stage}"
        task = f"UMC-{robot.upper()}-Stage{stage}"
        fresh = write_fresh(tmp_path / name, task, agent, terrain="flat", physics="ovphysx")
        path = fresh.rename(folder / f"{name}.pt")
        models[name] = {"robot": robot, "agent": agent, "stage": stage, "sha256": sha256(path)}
    (folder / MODELS).write_text(json.dumps({"format": 1, "models": models}))
    monkeypatch.setattr(pretrained, "pretrained_folder", lambda: folder)
    return folder


@pytest.mark.parametrize(
    ("task", "robot", "agent", "name"),
    [
        (None, "A1", None, "a1_mlp_stage2"),
        (None, "a1", "nm_mlp", "a1_nm_mlp_stage1"),
        ("UMC-A1-Stage1", None, None, "a1_mlp_stage1"),
        ("UMC-A1-Stage2", None, "rsl_rl_mlp_cfg_entry_point", "a1_mlp_stage2"),
        ("UMC-A1-Stage2", None, "nm_mlp", "a1_nm_mlp_stage1"),  # a baseline has no Stage 2
        ("UMC-G1-Stage2", "g1", None, "g1_mlp_stage2"),
    ],
)
def test_pretrained_is_the_policy_of_task_robot_and_agent(package, task, robot, agent, name):
    path, line = pretrained_policy("pretrained", task, robot, agent)
    assert path == package / f"{name}.pt"
    assert line.startswith(f"pretrained: {name} (Stage ")


@pytest.mark.parametrize(
    ("text", "who", "words"),
    [
        ("pretrained", (None, None, None), "of which robot? give --robot"),
        ("pretrained", (None, "h1", None), "no pretrained policy of h1; umc list pretrained shows those of others"),
        ("pretrained", (None, "a1", "transformer"), "no pretrained policy of a1 by transformer; there are"),
        ("pretrained", ("UMC-G1-Stage1", None, "mlp"), "no pretrained policy of g1 by mlp in Stage 1; there are"),
        ("pretrained", (None, "solo9", None), "unknown robot solo9; did you mean solo8?"),
        ("pretrained", (None, "a1", "transformr"), "unknown agent transformr; did you mean transformer?"),
        ("pretrained", ("UMC-G1-Stage1", "a1", None), "is not of robot a1"),
        (
            "pretrained:a1_mlp",
            (None, None, None),
            "no pretrained policy a1_mlp; did you mean a1_mlp_stage2? umc list",
        ),
    ],
)
def test_what_is_not_there_is_one_line_that_lists_what_is(package, text, who, words):
    with pytest.raises(UmcError) as error:
        pretrained_policy(text, *who)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_run_folder_whose_name_begins_with_pretrained_is_a_run_folder(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task = ["--task", "UMC-A1-Stage2", "--agent", "mlp"]
    for name in ("pretrained_x", "pretrained-x:y"):
        path = write_fresh(Path(name), "UMC-A1-Stage1", "mlp")
        assert planned(*task, "--device", "cpu", "--checkpoint", name).start_from == path
        assert parse_sweep([*task, "--sweep", "seeds", "--checkpoint", name])[0].checkpoint == str(path)
        assert read_teacher(name, "a1", trust=False).source == path
        options, _ = arguments.parse(["--checkpoint", name, "--device", "cpu"], lambda _: None)
        assert prepare(options, []).checkpoint == path
    assert planned(*task, "--device", "cpu", "--checkpoint", "pretrained").start_from == package / "a1_mlp_stage1.pt"


def test_an_agent_that_is_only_half_trained_comes_last(package):
    """The transformer is the first agent: its Stage 1 alone does not replace a fully trained policy."""
    models = json.loads((package / MODELS).read_text())
    shutil.copy(package / "a1_mlp_stage1.pt", package / "a1_transformer_stage1.pt")
    models["models"]["a1_transformer_stage1"] = {**models["models"]["a1_mlp_stage1"], "agent": "transformer"}
    (package / MODELS).write_text(json.dumps(models))
    assert find_pretrained("pretrained", "a1")[0].stem == "a1_mlp_stage2"
    assert find_pretrained("pretrained", "a1", stage=1)[0].stem == "a1_transformer_stage1"
    assert find_pretrained("pretrained", "a1", "transformer")[0].stem == "a1_transformer_stage1"


def test_damaged_missing_and_foreign_files_are_refused(package):
    assert find_pretrained("pretrained:a1_nm_mlp_stage1")[0] == package / "a1_nm_mlp_stage1.pt"
    path = package / "a1_mlp_stage2.pt"
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\0\1\2\3")
    with pytest.raises(UmcError, match=r"is not the file that models\.json describes"):
        find_pretrained("pretrained", "a1")
    path.unlink()
    with pytest.raises(UmcError, match=r"is missing although models\.json names it"):
        find_pretrained("pretrained", "a1")
    (package / MODELS).write_text("{")
    with pytest.raises(UmcError, match="is not valid JSON"):
        read_models()
    (package / MODELS).write_text('{"format": 2, "models": {}}')
    with pytest.raises(UmcError, match="no list of policies of this version"):
        read_models()


def test_stage_2_of_a_fresh_clone_starts_from_the_pretrained_stage_1(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    argv = ["--task", "UMC-A1-Stage2", "--agent", "mlp", "--device", "cpu"]
    assert not needs_stage1(parse(argv))
    chosen = planned(*argv)
    assert chosen.start_from == package / "a1_mlp_stage1.pt"
    assert any("trained on flat ground, this run walks on perlin ground" in remark for remark in chosen.remarks)
    changes = ["agent.actor.activation=relu", "agent.actor.distribution_cfg.init_std=0.1", "agent.actor.mask_value=1.0"]
    remarks = [one for one in planned(*argv, *changes).remarks if "its weights may not fit" in one]
    assert len(remarks) == 1
    assert "this run has agent.actor.activation=relu:" in remarks[0]
    flagless = planned(*argv, 'agent.obs_groups.actor=["policy"]').remarks  # which is folded in
    assert not any("its weights may not fit" in remark for remark in flagless)
    assert planned(*argv, "--checkpoint", "pretrained").start_from == chosen.start_from
    assert planned(*argv[:3], "mlp_mask_100", *argv[4:]).start_from == chosen.start_from
    assert needs_stage1(parse([*argv, "--no_pretrained"]))
    for more in (["--resume"], ["--no_pretrained"]):
        with pytest.raises(UmcError, match=f"leave out {more[0]}"):
            parse([*argv, "--checkpoint", "pretrained", *more])
