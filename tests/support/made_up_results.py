# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Made-up studies and pretrained policies, for the results page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from fresh_policy import write_fresh
from made_up_study import made_up_study
from umc.evaluation.study import STUDY, save_study
from umc.rl import pretrained
from umc.rl.pretrained import MODELS
from umc.utils.io import sha256

from tools.results_page import __main__ as results

SHA = {"mlp": "a" * 64, "nm_mlp": "b" * 64, "transformer": "c" * 64, "nm_gru": "d" * 64, "mt_ftc": "e" * 64}
"""SHA-256 of made-up checkpoints by label."""


def made_up(physics="ovphysx", policies=(("mlp", 2.6), ("nm_mlp", 0.4)), members=10, seed=0):
    """A study whose policies are two agents; the demo's made-up skills decide who is better."""
    study = made_up_study(members, policies, seed=seed)

    def about(one):
        stage = 1 if one.label.startswith("nm_") else 2
        said = {"agent": f"rsl_rl_{one.label}_cfg_entry_point", "stage": stage, "seed": 1, "iteration": 999}
        return replace(one, about={**said, "sha256": SHA[one.label], "physics": "ovphysx", "terrain": "flat"})

    facts = {**study.about, "physics": physics, "robots_per_cell": members}
    return replace(study, about=facts, policies=tuple(map(about, study.policies)))


def changed(result, **episodes):
    """A policy's result with other outcomes of its episodes."""
    return replace(result, run=replace(result.run, episodes=replace(result.run.episodes, **episodes)))


def entry(**changes):
    gait = {"forward_speed": 0.47, "command": [0.5, 0.0, 0.0], "trunk_height": 0.2, "falls": 1, "robots": 64}
    return {
        "recipe": "a1_mlp_cpu",
        "commit": "abcdef0123456",
        "trained": {"num_envs": 256, "device": "cpu"},
        "metrics": {"healthy": {**gait, "standing": 0, "mean_feet_in_contact": 2.1}},
        **changes,
    }


def publish_made_up(tmp_path, monkeypatch):
    """Pretrained policies: both stages of A1's MLP, its baseline, a transformer without its Stage 2, and one of G1."""
    folder = tmp_path / "pretrained"
    folder.mkdir()
    models = {}
    agents = (("a1", "mlp", 1), ("a1", "mlp", 2), ("a1", "nm_mlp", 1), ("a1", "transformer", 1), ("g1", "mlp", 2))
    for robot, agent, stage in agents:
        name = f"{robot}_{agent}_stage{stage}"
        fresh = write_fresh(tmp_path / name, f"UMC-{robot.upper()}-Stage{stage}", agent, physics="ovphysx")
        path = fresh.rename(folder / f"{name}.pt")
        models[name] = {"robot": robot, "agent": agent, "stage": stage, "sha256": sha256(path), **entry()}
    (folder / MODELS).write_text(json.dumps({"format": 1, "models": models}))
    monkeypatch.setattr(pretrained, "pretrained_folder", lambda: folder)
    monkeypatch.chdir(tmp_path)
    return folder


def simulate_made_up(monkeypatch, facts=lambda label: {}, run=dict):
    """Let the results page's evaluations write made-up studies; return the list of their arguments.

    ``facts`` are those of a policy, by its label; ``run`` returns those of the study, and ``members`` if not 10.
    """
    calls = []

    def evaluate(_command, arguments):
        calls.append(arguments)
        paths = arguments[arguments.index("--checkpoint") + 1 : arguments.index("--robot")]
        labels = arguments[arguments.index("--labels") + 1 :][: len(paths)]
        about = {**run()}
        study = made_up(policies=tuple((label, 1.0) for label in labels), members=about.pop("members", 10))
        policies = [
            replace(one, about={**one.about, "sha256": sha256(Path(path)), "path": path, **facts(one.label)})
            for one, path in zip(study.policies, paths, strict=True)
        ]
        out = Path(arguments[arguments.index("--out") + 1])
        save_study(out / STUDY, replace(study, about={**study.about, **about}, policies=tuple(policies)))

    monkeypatch.setattr(results, "run_umc", evaluate)
    return calls
