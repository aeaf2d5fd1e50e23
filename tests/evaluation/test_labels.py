# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Names of policies tell them apart and no more; seeds of one recipe share a group."""

from pathlib import Path

import pytest
from umc.evaluation.labels import groups_of, labels_of
from umc.rl.checkpoint import CheckpointInfo
from umc.utils.errors import UmcError


def checkpoint(run, agent="transformer", seed=1, stage=2, iteration=2499, library="rsl_rl", overrides=()):
    entry = f"{library}_{agent}_cfg_entry_point"
    info = CheckpointInfo("a1", "t", stage, agent, [], seed, iteration, "0", entry, "e", list(overrides))
    return Path("logs") / run / f"model_{iteration}.pt", info


def test_a_label_says_no_more_than_it_must():
    one, two = checkpoint("2026-01-01_00-00-00"), checkpoint("2026-01-02_00-00-00", agent="mlp")
    assert labels_of([one]) == ["transformer"]
    assert labels_of([one, two]) == ["transformer", "mlp"]
    seeds = [checkpoint(f"2026-01-0{seed}_00-00-00", seed=seed) for seed in (1, 2)]
    assert labels_of([*seeds, two]) == ["transformer seed 1", "transformer seed 2", "mlp"]
    assert labels_of([one, checkpoint("2026-01-01_00-00-00", stage=1)]) == [
        "transformer stage 2",
        "transformer stage 1",
    ]
    named = [checkpoint(f"2026-01-01_00-00-00_{name}") for name in ("wide", "narrow")]
    assert labels_of(named) == ["transformer wide", "transformer narrow"]


def test_labels_are_unique_even_where_only_the_path_differs():
    same = [checkpoint("run/a"), checkpoint("run/a", iteration=99), checkpoint("x/run/a")]
    assert len(set(labels_of(same))) == 3


def test_ones_own_labels():
    pair = [checkpoint("a"), checkpoint("b")]
    assert labels_of(pair, ["x", "y"]) == ["x", "y"]
    with pytest.raises(UmcError, match="1 names for 2 checkpoints"):
        labels_of(pair, ["x"])
    with pytest.raises(UmcError, match="twice"):
        labels_of(pair, ["x", "x"])


def test_groups_are_recipes():
    seeds = [checkpoint(f"2026-01-0{seed}_00-00-00_seed{seed}", seed=seed) for seed in (1, 2, 3)]
    other = [checkpoint("2026-02-01_00-00-00", agent="mlp"), checkpoint("2026-02-01_00-00-00", seed=4, iteration=9)]
    groups = groups_of([*seeds, *other])
    assert groups[0] == groups[1] == groups[2]
    assert len(set(groups)) == 3
    assert groups[3] == "mlp"


def test_runs_with_the_same_seed_are_no_sample_over_seeds():
    same = [checkpoint("2026-01-01_00-00-00"), checkpoint("2026-01-02_00-00-00")]
    assert len(set(groups_of(same))) == 2
