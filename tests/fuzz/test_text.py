# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Whatever stands in a text file: a valid object, or one line."""

import functools
import json
import tempfile
from dataclasses import fields
from importlib.resources import files
from pathlib import Path

import pytest
import torch
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from mutated import all_finite, as_json, bad_files, damaged, mutated, read_or_refuse
from recorded_ledger import JOINTS, MIXED, record
from tiny_recipe import TINY
from umc.evaluation.grid import apply_grid
from umc.evaluation.protocol import protocol_for
from umc.faults import FaultReplay, FaultSchedule
from umc.rl.pretrained import MODELS, read_models, verified_file
from umc.training.recipe import read_recipe
from umc.training.recipe_runner import STATE, RecipeRun
from umc.training.sweep import parse_sweep, trainings_of
from umc.training.sweep_file import read_sweep_file
from umc.utils.config import path_component, read_yaml
from umc.utils.provenance import PROGRESS_FILE, RUN_FILE, read_progress, read_record
from umc.utils.text import parse_json


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def packaged(kind, name):
    """Content and text of a file of the package."""
    text = (files("umc") / "config" / kind / f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text), text.encode()


@given(content=st.one_of(*(bad_files(*packaged("protocols", name)) for name in ("umc_paper", "real_world"))))
def test_protocol(folder, content):
    path = folder / "protocol.yaml"
    path.write_bytes(content)
    if (protocol := read_or_refuse(lambda: protocol_for("a1", name=str(path)))) is None:
        return
    assert all_finite(protocol.describe())
    path_component(protocol.name)
    assert protocol.steps <= 100_000
    # faults that make no sense are refused before the simulation
    read_or_refuse(lambda: protocol.check_faults(JOINTS))


@given(content=bad_files(TINY, yaml.safe_dump(TINY).encode()))
def test_recipe(folder, content):
    path = folder / "recipe.yaml"
    path.write_bytes(content)
    recipe = read_or_refuse(lambda: read_recipe(str(path)))
    if recipe is not None:
        assert recipe.phases
        read_or_refuse(lambda: RecipeRun(recipe, folder, "").arguments(0, None))


GRID = {  # a small one: the check of the packaged sweep's 108 settings takes half a second
    "name": "mine",
    "protocol": "umc_paper",
    "scenarios": [5, 6],
    "episodes": 4,
    "grid": {
        "onset": [75, 100],
        "joints": [["FL_hip_joint"], ["RL_calf_joint"]],
        "severity": [{"rom": 0.5, "effort": {"fraction": 0.5}}, {"velocity": {"fraction": 0.3}}],
    },
}


@given(content=bad_files(GRID))
def test_sweep_of_evaluations(folder, content):
    path = folder / "sweep.yaml"
    path.write_bytes(content)
    sweep = read_or_refuse(lambda: read_sweep_file(str(path), {}))
    if sweep is not None:
        path_component(sweep.name)
        protocol = protocol_for("a1")
        read_or_refuse(lambda: apply_grid(sweep, protocol, JOINTS).check_faults(JOINTS))


TRAININGS = {
    "name": "mine",
    "agents": ["mlp", "nm_NETWORK"],
    "network": "mlp",
    "seeds": [1, 2],
    "overrides": {"agent.algorithm.gamma": [0.98, 0.99], "env.events.faults.params.ratios": [[1, 1, 1, 0]]},
}


@given(content=bad_files(TRAININGS))
@example(content=yaml.safe_dump(TRAININGS).encode())
def test_sweep_of_trainings(folder, content):
    path = folder / "trainings.yaml"
    path.write_bytes(content)
    sweep = read_or_refuse(lambda: read_sweep_file(str(path), {}))
    if sweep is None:
        return
    argv = ["--sweep", str(path), "--task", "UMC-A1-Stage2", "--logs", str(folder)]
    options, common, _ = parse_sweep(argv)
    trainings = read_or_refuse(lambda: trainings_of(sweep, options, common))
    for training in trainings or ():
        assert folder in training.folder.parents
        assert training.label.isprintable()


@functools.cache
def ledger_lines():
    """The lines of a ledger of two envs, one episode each, with faults of every sort."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "ledger.jsonl"
        record(path, FaultSchedule(JOINTS, **MIXED))
        lines = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [line for line in lines[1:] if next(iter(line.values()))[0] < 2]
    amend = {"amend": [0, 0, 3], "kinds": {"frozen": ""}, "faults": {"1": kept[0]["faults"][0]}}
    return [{**lines[0], "num_envs": 2}, *kept[:12], amend, {"schedule": {"ratios": {"mine": 1.0}, "level": 0.5}}]


@st.composite
def bad_ledgers(draw):
    """One or two lines are changed, or left out, or stand twice; or the bytes are."""
    lines = [as_json(line) for line in ledger_lines()]
    if draw(st.booleans()):
        return draw(damaged(b"\n".join(lines) + b"\n"))
    for _ in range(draw(st.integers(1, 2))):
        number = draw(st.integers(0, len(lines) - 1))
        try:
            line = json.loads(lines[number])
        except ValueError:
            continue
        lines[number] = as_json(draw(mutated(line)))
    if draw(st.booleans()):
        lines.insert(draw(st.integers(0, len(lines))), lines[draw(st.integers(0, len(lines) - 1))])
    return b"\n".join(lines) + b"\n"


@given(content=bad_ledgers())
def test_ledger(folder, content):
    path = folder / "ledger.jsonl"
    path.write_bytes(content)
    replay = read_or_refuse(lambda: FaultReplay(path, JOINTS))
    if replay is None:
        return
    list(replay.ledger.rows())
    ids = torch.arange(2)
    for episode in (0, 5):
        plan = read_or_refuse(lambda number=episode: replay.draw(ids, torch.full_like(ids, number)))
        for field in fields(plan) if plan else ():
            assert bool(torch.isfinite(getattr(plan, field.name).double()).all())
        if plan is not None:
            assert bool((plan.end > plan.onset).logical_or(plan.onset == 2**62).all())
    read_or_refuse(lambda: replay.random_key(ids, torch.zeros_like(ids)))


PHASE = {
    "title": "Stage 1, walk",
    "status": "done",
    "run_dir": "logs/rsl_rl/x/run",
    "fingerprint": "0123456789abcdef",
    "started_at": "2026-01-01T00:00:00+00:00",
    "ended_at": "2026-01-01T01:00:00+00:00",
    "seconds": 3600.0,
    "checkpoint": "logs/rsl_rl/x/run/model_1.pt",
}


@given(content=bad_files({"format": 2, "recipe": "tiny", "phases": [PHASE, {**PHASE, "status": "waiting"}]}))
def test_state_of_a_recipe(folder, content):
    recipe = tiny(folder)
    path = folder / "recipes" / "tiny_seed3" / STATE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    run = read_or_refuse(lambda: RecipeRun(recipe, folder, ""))
    if run is not None:
        read_or_refuse(run._check_done)
        read_or_refuse(lambda: run.arguments(0, None))
        assert all_finite(run.state.model_dump())
    assert RecipeRun(recipe, folder, "", restart=True).state.phases == []


@functools.cache
def tiny(folder):
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return read_recipe(str(path))


RECORD = {
    "version": 1,
    "task": "UMC-A1-Stage1",
    "agent": "rsl_rl_mlp_cfg_entry_point",
    "seed": 1,
    "overrides": ["physics=ovphysx"],
    "agent_overrides": [],
    "num_envs": 64,
    "max_iterations": 10,
    "num_steps_per_env": 24,
    "status": "finished",
    "starts": [{"command": "x", "git": {"commit": "x", "dirty": False}}],
    "parent": {"path": "x", "sha256": "x"},
    "result": {"reward": 1.0, "episode_steps": 2.0},
}


@given(content=bad_files(RECORD))
def test_record_of_a_run(folder, content):
    (folder / RUN_FILE).write_bytes(content)
    record = read_or_refuse(lambda: read_record(folder))
    assert record is None or all(isinstance(token, str) for token in record["overrides"])


@given(content=bad_files({"iteration": 1, "iterations": 2, "env_steps_per_s": 1.0, "eta_s": 1.0, "reward": None}))
def test_progress_of_a_run(folder, content):
    (folder / PROGRESS_FILE).write_bytes(content)
    progress = read_or_refuse(lambda: read_progress(folder))
    assert progress is None or progress["env_steps_per_s"] > 0.0


ENTRY = {"robot": "a1", "agent": "mlp", "stage": 1, "sha256": "0" * 64, "trained": {"iterations": 3, "physics": "x"}}


@given(content=bad_files({"format": 1, "models": {"a1_mlp_stage1": ENTRY}}))
def test_list_of_published_policies(folder, content):
    (folder / MODELS).write_bytes(content)
    for name in read_or_refuse(lambda: read_models(folder)) or ():
        path_component(name)
        assert read_or_refuse(lambda name=name: verified_file(name, folder)) is None


@given(st.one_of(st.text(), mutated({"a": [1, {"b": 2.5}]}).map(lambda tree: as_json(tree).decode())))
def test_any_text_as_json_and_yaml(text):
    value = read_or_refuse(lambda: parse_json(text, "f"))
    assert all_finite(value)
    assert all_finite(read_or_refuse(lambda: read_yaml(text, "f")))
