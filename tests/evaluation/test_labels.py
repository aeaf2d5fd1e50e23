# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Labels distinguish policies with few words; training seeds of one recipe share a group."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from umc.evaluation.arguments import overrides_first, parse
from umc.evaluation.labels import groups_of, labels_of
from umc.rl.checkpoint import CheckpointInfo
from umc.utils.errors import UmcError


def checkpoint(run, agent="transformer", seed=1, stage=2, iteration=2499, **changes):
    info = CheckpointInfo("a1", "t", stage, agent, [], seed, iteration, "0", f"rsl_rl_{agent}_cfg_entry_point", "e", [])
    return Path("logs") / run / f"model_{iteration}.pt", replace(info, **changes)


FIRST, SECOND = "2026-01-01_00-00-00", "2026-01-02_00-00-00"
MLP = checkpoint(SECOND, agent="mlp")
SEEDS = [checkpoint(f"{time}_seed{seed}", seed=seed) for seed, time in enumerate((FIRST, SECOND), 1)]


@pytest.mark.parametrize(
    ("checkpoints", "labels"),
    [
        ([checkpoint(FIRST)], ["transformer"]),
        ([checkpoint(FIRST), MLP], ["transformer", "mlp"]),
        ([checkpoint(FIRST), checkpoint(SECOND, seed=2), MLP], ["transformer seed 1", "transformer seed 2", "mlp"]),
        ([checkpoint(FIRST), checkpoint(FIRST, stage=1)], ["transformer stage 2", "transformer stage 1"]),
        ([checkpoint(f"{FIRST}_{name}") for name in ("wide", "narrow")], ["transformer wide", "transformer narrow"]),
    ],
)
def test_a_label_has_no_more_words_than_it_needs(checkpoints, labels):
    assert labels_of(checkpoints) == labels


def test_labels_are_unique_and_a_user_may_choose_them():
    same = [checkpoint("run/a"), checkpoint("run/a", iteration=99), checkpoint("x/run/a")]
    assert len(set(labels_of(same))) == 3  # even if only the path differs
    assert labels_of(SEEDS, ["x", "y"]) == ["x", "y"]
    with pytest.raises(UmcError, match="twice"):
        labels_of(SEEDS, ["x", "x"])
    with pytest.raises(UmcError, match="empty name"):
        labels_of(SEEDS, ["x", ""])


def test_a_label_may_look_like_an_override_without_a_section():
    words = ["--labels", "lr=1e-3", "lr=1e-4", "v2.1.3=wide", "presets=perlin", "env.decimation=4", "parts.feet=[]"]
    assert overrides_first(words) == [*words[4:], *words[:4]]
    assert overrides_first(["--labels", "A", "evn.scene.terrain=flat"])[0] == "evn.scene.terrain=flat"  # and refused
    assert overrides_first(["--checkpoint", "a.pt", "episodes=9"])[0] == "episodes=9"  # which is refused by its name


def test_which_joints_fail_may_be_typed():
    token = "env.events.faults.params.asset_cfg.joint_names=['.*_hip_joint']"
    assert parse([token], lambda _: None)[1] == [token]


def test_groups_are_recipes():
    first, second, other, early = groups_of([*SEEDS, MLP, checkpoint(FIRST, seed=4, iteration=9)])
    assert first == second
    assert len({first, other, early}) == 3
    assert other == "mlp"
    assert len(set(groups_of([checkpoint(FIRST), checkpoint(SECOND)]))) == 2  # the same seed is no sample over seeds


@pytest.mark.parametrize(
    ("overrides", "extra"),
    [
        ({"env_overrides": ["env.rewards.progress.weight=9.0"]}, " env.rewards.progress.weight=9.0"),
        ({"network_overrides": ["agent.actor.width=32"]}, " agent.actor.width=32"),
        ({"env_overrides": ["env.scene.num_envs=64", "env.events.faults.params.ledger=logs/2/faults.jsonl"]}, ""),
        ({"env_overrides": ["env.events.faults.params.seed=2", "env.seed=2", "env.viewer.eye=[1,1,1]"]}, ""),
        ({"env_overrides": ["env.commands.base_velocity.seed=2"]}, " env.commands.base_velocity.seed=2"),
        ({"env_overrides": None}, ""),  # of UMC 0.1
    ],
)
def test_another_recipe_has_other_overrides_but_not_of_size_seed_view_or_ledger(overrides, extra):
    plain, other = checkpoint(FIRST, env_overrides=[]), checkpoint(SECOND, seed=2, **overrides)
    assert groups_of([plain, other]) == ["transformer", f"transformer{extra}"]


def test_another_recipe_learned_with_other_settings_on_another_engine_or_ground(tmp_path):
    def trained(seed, *overrides, record=True, **changes):
        path = tmp_path / f"2026-01-01_00-00-{len(list(tmp_path.iterdir())):02}" / "model_9.pt"
        path.parent.mkdir()
        if record:
            (path.parent / "run.json").write_text(
                json.dumps({"task": "T", "agent": "a", "seed": seed, "overrides": list(overrides)})
            )
        return path, checkpoint(FIRST, agent="mlp", seed=seed, **changes)[1]

    settings = [("agent.mirror=true", f"agent.max_iterations={seed}", f"agent.seed={seed}") for seed in (1, 2)]
    settings += [("agent.mirror=false",)] * 2
    policies = [trained(seed, *settings[number]) for number, seed in enumerate((1, 2, 1, 2))]
    assert groups_of(policies) == ["mlp agent.mirror=true"] * 2 + ["mlp agent.mirror=false"] * 2
    # without a record nothing is known of how it learned, unless that is a policy of others
    assert groups_of([*policies[:2], trained(3, record=False)]) == ["mlp"] * 3
    (tmp_path / "models.json").write_text('{"a": 1}')
    theirs = tmp_path / "walk.pt", replace(policies[0][1], agent="", model="walk")
    assert groups_of([*policies, theirs]) == [*groups_of(policies), "walk"]
    # of overrides that are given twice the last one counts
    twice = trained(2, "agent.mirror=false", *settings[0])
    assert groups_of([policies[0], twice]) == ["mlp"] * 2
    engines = [trained(seed, physics=name) for seed, name in enumerate(("ovphysx", "ovphysx", "newton_mjwarp"))]
    assert groups_of(engines) == ["mlp physics=ovphysx"] * 2 + ["mlp physics=newton_mjwarp"]
    assert groups_of([*engines[:2], trained(3, physics="")]) == ["mlp"] * 3


def test_overrides_that_all_policies_share_name_no_group():
    shared = ["env.scene.terrain=flat", "env.decimation=4"]
    changes = (["agent.actor.width=32"], ["agent.actor.width=64"])
    policies = [checkpoint(FIRST, env_overrides=shared, network_overrides=one) for one in changes]
    assert groups_of(policies) == [f"transformer {one}" for (one,) in changes]
