# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What `python -m tools.publish_policy` writes is small, complete, computes the same, and says where it comes from."""

from __future__ import annotations

import copy
import json
import re
import shutil

import dummy_training
import pytest
import torch
import yaml
from fresh_policy import WIDTHS, write_fresh
from umc.rl.checkpoint import checkpoint_info, read_checkpoint, write_checkpoint
from umc.rl.policy import load_policy, registered_agent
from umc.rl.pretrained import read_models, verified_file
from umc.utils.cli import run_main
from umc.utils.io import sha256

from tools import publish_policy
from tools.publish_policy import LARGEST_FILE, TOLERANCE, largest_difference

RECORD = {
    "task": "UMC-A1-Stage2",
    "agent": "rsl_rl_mlp_cfg_entry_point",
    "seed": 4,
    "physics": "ovphysx",
    "device": "cpu",
    "num_envs": 256,
    "num_steps_per_env": 24,
    "overrides": ["physics=ovphysx", "env.scene.terrain=flat", "agent.algorithm.gamma=0.9", "agent.clip_actions=90.0"],
    "parent": {"path": "somewhere", "sha256": "c0ffee"},
    "starts": [{"git": {"commit": "a" * 40, "dirty": False}}, {"git": {"commit": "b" * 40, "dirty": True}}],
}


def run(argv):
    return run_main(publish_policy.main, argv)


def publish(path, out, *more):
    return run([str(path), "--out", str(out), "--recipe", "none", *more])


def trained(folder, record=RECORD, model="mlp", **info):
    """A checkpoint as training leaves it: with critic, optimizer and run.json."""
    path = write_fresh(folder, model=model, seed=4, **info)
    data = read_checkpoint(path)
    data["critic_state_dict"] = copy.deepcopy(data["actor_state_dict"])
    data["optimizer_state_dict"] = {"state": {0: {"exp_avg": torch.zeros(1000)}}, "param_groups": []}
    data["infos"]["resume"] = {"timesteps": 5}
    write_checkpoint(path, data)
    (folder / "run.json").write_text(json.dumps(record))
    return path


def change(path, function):
    data = read_checkpoint(path)
    function(data)
    write_checkpoint(path, data)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "published"


def test_what_is_published_is_light_complete_and_computes_the_same(tmp_path, out):
    path = trained(tmp_path / "run", terrain="", model="transformer")
    assert publish(path.parent, out) == 0
    models = read_models(out)
    published = verified_file("a1_transformer_stage2", out)
    assert published.stat().st_size <= LARGEST_FILE < path.stat().st_size
    data = read_checkpoint(published)
    assert data.keys() == {"actor_state_dict", "critic_state_dict", "iter", "infos"}
    assert data["infos"].keys() == {"umc"}
    info = checkpoint_info(data, published)
    assert (info.physics, info.terrain, info.env_overrides) == ("ovphysx", "flat", ["env.scene.terrain=flat"])
    assert info.network_overrides == ["agent.clip_actions=90.0"]
    first, second = (load_policy(one, WIDTHS["a1"]) for one in (path, published))
    assert 0.0 < largest_difference(first, second, WIDTHS["a1"]) <= TOLERANCE
    entry = models["a1_transformer_stage2"]
    assert entry["sha256"] == sha256(published)
    assert entry["source_sha256"] == sha256(path)
    assert (entry["commit"], entry["seed"], entry["recipe"]) == ("b" * 40 + " with changes", 4, None)
    assert entry["trained"]["overrides"] == RECORD["overrides"]
    assert (entry["trained"]["iterations"], entry["trained"]["parent_sha256"]) == (1, "c0ffee")


def test_a_ground_that_nobody_wrote_down_is_the_tasks_own(tmp_path, out):
    path = trained(tmp_path / "run", {**RECORD, "overrides": ["physics=ovphysx"]})
    assert publish(path, out) == 0
    published = verified_file("a1_mlp_stage2", out)
    assert checkpoint_info(read_checkpoint(published), published).terrain == "perlin"
    assert read_models(out)["a1_mlp_stage2"]["trained"]["terrain"] == "perlin"


def test_a_published_policy_takes_its_entry_to_another_folder(tmp_path, out):
    assert publish(trained(tmp_path / "run"), out, "--note", "unfinished") == 0
    name = "a1_mlp_stage2"
    assert publish(out / f"{name}.pt", tmp_path / "package") == 0
    first, second = (read_models(folder)[name] for folder in (out, tmp_path / "package"))
    assert second == first
    assert second["trained"]["num_envs"] == 256


def test_statistics_of_observations_keep_their_precision():
    networks = {
        "obs_normalizer._std": torch.tensor([1e-7]),
        "obs_normalizer.count": torch.tensor(70_000),
        "core.weight": torch.tensor([1.0]),
    }
    data = {"actor_state_dict": networks, "iter": 3}
    stripped = publish_policy.stripped(data, dummy_training.info(), actor_only=True)["actor_state_dict"]
    assert stripped["obs_normalizer._std"].item() == pytest.approx(1e-7)
    assert stripped["obs_normalizer.count"].item() == 70_000
    assert stripped["core.weight"].dtype == torch.float16
    full = publish_policy.stripped(data, dummy_training.info(), actor_only=True, full_precision=True)
    assert full["actor_state_dict"]["core.weight"].dtype == torch.float32


def test_nothing_is_written_where_something_is_wrong(tmp_path, out, capsys, monkeypatch):
    path = trained(tmp_path / "run")
    capsys.readouterr()  # what Isaac Lab's libraries say once per process, when it is first imported

    def refused(words, *more, recipe=("--recipe", "none")):
        status = run([str(path), "--out", str(out), *recipe, *map(str, more)])
        err = capsys.readouterr().err
        assert (status, len(err.splitlines())) == (2, 1), err
        assert words in err
        assert not list(out.glob("*")) if out.is_dir() else True

    refused("--recipe is missing", recipe=())
    refused("no recipe a1_mlp_cup in config/recipes; did you mean a1_mlp_cpu?", recipe=("--recipe", "a1_mlp_cup"))
    for name, value, words in (
        ("LARGEST_FILE", 100_000, "more than 100,000; leave the critic out with --actor_only"),
        ("TOLERANCE", 0.0, "actions of the file would differ"),
        ("largest_difference", lambda *_: float("nan"), "actions of the file would differ"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(publish_policy, name, value)
            refused(words)
    other = {"kind": "faults", "protocol": {"name": "x"}, "about": {}, "departures_from_paper": []}
    (tmp_path / "other.json").write_text(json.dumps({**other, "policies": 3}))
    refused("policies is 3", "--metrics", tmp_path / "other.json")
    policies = [{"about": {"sha256": "0"}, "average": {}, "scenarios": {}}]
    (tmp_path / "other.json").write_text(json.dumps({**other, "policies": policies}))
    refused("does not hold this policy", "--metrics", tmp_path / "other.json")
    (tmp_path / "other.json").write_text('{"kind": "mine"}')
    refused("is no report of scripts/evaluate.py", "--metrics", tmp_path / "other.json")
    change(path, lambda data: data["actor_state_dict"]["core.layers.0.weight"].fill_(1e6))
    refused("weights that half precision cannot hold")
    change(path, lambda data: data.pop("critic_state_dict"))
    refused("publish the actor alone with --actor_only")
    # without its run folder the file is loaded with the registered agent, which clips no action
    change(path, lambda data: data["actor_state_dict"]["core.layers.0.weight"].fill_(0.0))
    agent = registered_agent("UMC-A1-Stage2", "rsl_rl_mlp_cfg_entry_point") | {"clip_actions": 0.001}
    (path.parent / "params").mkdir()
    (path.parent / "params" / "agent.yaml").write_text(yaml.dump(agent))
    refused("train with the agent as it is registered", "--actor_only")
    shutil.rmtree(path.parent / "params")
    (path.parent / "run.json").unlink()
    refused("says how it was trained; publish it from its run folder", "--actor_only")


def test_a_policy_is_replaced_only_on_purpose_and_its_figures_can_follow(tmp_path, out, capsys):
    path = trained(tmp_path / "run")
    assert publish(path, out) == 0
    first = (out / "a1_mlp_stage2.pt").read_bytes()
    change(path, lambda data: data["actor_state_dict"]["core.layers.0.bias"].add_(0.5))
    assert publish(path, out) == 2
    assert re.search("a1_mlp_stage2 is in .*--replace", capsys.readouterr().err)
    assert (out / "a1_mlp_stage2.pt").read_bytes() == first
    assert publish(path, out, "--replace", "--note", "second") == 0
    published = verified_file("a1_mlp_stage2", out)
    assert published.read_bytes() != first
    before = read_models(out)["a1_mlp_stage2"]

    # a report about the published file itself is added to its entry; all else stays
    figure = {"value": 0.123456, "low": 0.1, "high": 0.2}
    figures = {"reached@3": figure, "failed": None, "survival": figure}
    report = {
        "kind": "faults",
        "protocol": {"name": "umc_paper"},
        "about": {"task": "UMC-A1-Stage2", "physics": "ovphysx", "seed": 1, "robots_per_cell": 10},
        "departures_from_paper": ["simulator"],
        "policies": [
            {"about": {"sha256": "0" * 64}, "average": {}, "scenarios": {}},
            {"about": {"sha256": sha256(published)}, "average": figures, "scenarios": {"1": figures}},
        ],
    }
    (tmp_path / "report.json").write_text(json.dumps(report))
    gait = {"kind": "healthy", "checkpoint": {"path": "p", "sha256": sha256(published)}, "num_envs": 64}
    walked = {"forward_speed": 0.4678912, "command": [0.5, 0.0, 0.0]}
    gait |= {"task": "UMC-A1-Stage1", "physics": "ovphysx", "seed": 1, "gait": walked}
    (tmp_path / "gait.json").write_text(json.dumps({**gait, "gait": {**walked, "command": 0.5}}))
    assert run([str(published), "--out", str(out), "--metrics", str(tmp_path / "gait.json")]) == 2  # of format 1
    (tmp_path / "gait.json").write_text(json.dumps(gait))
    reports = [str(tmp_path / f"{name}.json") for name in ("report", "gait")]
    assert run([str(published), "--out", str(out), "--metrics", *reports]) == 0
    after = read_models(out)["a1_mlp_stage2"]
    assert verified_file("a1_mlp_stage2", out) == published
    metrics = after.pop("metrics")
    assert before.pop("metrics") == {}
    assert after == before
    assert (after["note"], after["commit"]) == ("second", "b" * 40 + " with changes")
    rate = {"value": 0.1235, "low": 0.1, "high": 0.2}
    assert metrics["faults"]["average"] == {"reached@3": rate, "failed": None}
    assert metrics["faults"]["scenarios"]["1"]["reached@3"] == rate
    assert (metrics["faults"]["robots"], metrics["healthy"]["robots"]) == (10, 64)
    assert metrics["healthy"]["forward_speed"] == 0.4679


@pytest.mark.parametrize(
    "read",
    [
        lambda groups: groups["policy"][:, :12],
        lambda groups: groups["joint_mask"],
        lambda groups: (1.0 + groups["fault_flag"][:, :1]).expand(-1, 12),
    ],
    ids=["sensors", "mask", "flag"],
)
def test_policies_are_compared_by_all_that_they_read(read):
    def constant(groups):
        return torch.zeros(len(groups["policy"]), 12)

    assert largest_difference(constant, read, WIDTHS["a1"]) >= 1.0
    assert torch.tensor(largest_difference(constant, lambda groups: read(groups) * torch.nan, WIDTHS["a1"])).isnan()
