# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""--resume goes on with what the run began with; where it is refused, in one line, the run stays as it was."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import dummy_training as dummy
import pytest
from test_train_cli import A1, RECORD, planned, put_checkpoint
from umc.rl.checkpoint import read_checkpoint, write_checkpoint
from umc.tasks.registry import load_tasks
from umc.training import train as launch
from umc.training.arguments import parse
from umc.utils.errors import UmcError
from umc.utils.process import LAUNCHER

STAGE2 = {"task": "UMC-A1-Stage2", "stage": 2}
STATUS = {"status": "finished", "starts": [], "ended_at": "then"}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    load_tasks()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put_run(place, name="model_76.pt", record=None, **info):
    """A run that is through: its folder, and what is in it."""
    folder = place / "logs" / "rsl_rl" / "umc_a1_mlp_stage2" / "run"
    put_checkpoint(folder, name, {**RECORD, **STATUS, **(record or {})}, **{**STAGE2, **info})
    (folder / "params").mkdir()
    (folder / "params" / "agent.yaml").write_text("as it was\n")
    return folder


def content(folder):
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != launch.STARTUP_LOG]
    return {path.name: path.read_bytes() for path in files}


def no_simulator(monkeypatch, cfg=None):
    """Lets `launch.main` build the dummy training in place of env and runner, and keeps the rest of what it does."""

    def build(plan, _cleanup):
        runner = dummy.build(plan.folder, cfg=cfg)
        runner.env.unwrapped = None
        return runner

    monkeypatch.setattr("isaaclab.app.launch_simulation", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(launch, "_build", build)
    faults = SimpleNamespace(reset_faults=lambda _: None)
    monkeypatch.setattr("umc.mdp.fault_terms.fault_term", lambda _: faults)


def test_resume_goes_on_with_what_the_run_began_with(place):
    folder = put_run(place, "model_30.pt")
    put_checkpoint(folder, "model_4.pt", RECORD, **STAGE2)
    chosen = planned(*A1, "--resume")
    assert chosen.start_from == (folder / "model_30.pt").relative_to(place)
    assert chosen.folder == folder.relative_to(place)
    assert (chosen.env_cfg.scene.num_envs, chosen.agent_cfg.max_iterations, chosen.env_cfg.seed) == (12, 77, 5)
    assert (chosen.physics, chosen.agent_cfg.algorithm.gamma) == ("ovphysx", 0.9)
    assert chosen.record.fields["parent"] == "p"
    changed = planned(*A1, "--resume", "--max_iterations", "99", "--seed", "6", "agent.algorithm.gamma=0.8")
    assert (changed.agent_cfg.max_iterations, changed.env_cfg.seed) == (99, 6)
    assert changed.agent_cfg.algorithm.gamma == 0.8
    assert changed.record.fields["overrides"] == ["physics=ovphysx", "agent.algorithm.gamma=0.8"]


def test_what_a_run_remembers_is_newer_than_the_overrides_it_began_with(place):
    overrides = ["env.scene.num_envs=64", "agent.max_iterations=500"]
    put_run(place, "model_30.pt", {"overrides": overrides, "device": "cuda:0"})
    chosen = planned(*A1, "--resume")
    assert (chosen.env_cfg.scene.num_envs, chosen.agent_cfg.max_iterations) == (12, 77)
    assert "it ran on cuda:0 so far (--device)" in chosen.remarks
    assert planned(*A1, "--resume", "env.scene.num_envs=7").env_cfg.scene.num_envs == 7


@pytest.mark.parametrize("library", ["rsl_rl", "skrl"])
def test_the_line_to_resume_with_is_one_that_its_reader_can_type(monkeypatch, place, library):
    monkeypatch.setattr(sys, "argv", ["scripts/train.py"])
    chosen = planned(*A1, "--rl_library", library, "--no_pretrained", "--checkpoint", str(put_checkpoint(place)))
    monkeypatch.delenv(LAUNCHER, raising=False)
    assert launch.resume_command(chosen, Path("model_9.pt")).startswith("python scripts/train.py --task UMC-A1-Stage2 ")
    monkeypatch.setenv(LAUNCHER, "./isaaclab.sh")
    launcher, flag, script, *arguments = launch.resume_command(chosen, place / "model_5.pt").split()
    assert (launcher, flag, script) == ("./isaaclab.sh", "-p", "scripts/train.py")
    again = parse(arguments)
    assert again.options.device == "cpu"
    assert (again.agent, again.library) == (chosen.request.agent, library)


def test_weights_that_do_not_fit_leave_the_run_as_it_was(place, monkeypatch, capfd):
    folder = put_run(place)
    before = content(folder)
    cfg = dummy.agent()
    cfg["actor"]["hidden_dims"] = [8]
    no_simulator(monkeypatch, cfg)
    argv = [*A1, "--resume", "--max_iterations", "79"]
    assert launch.main([*argv, "agent.actor.hidden_dims=[8]"]) == 2
    assert "do not fit the model" in capfd.readouterr().err
    assert content(folder) == before
    no_simulator(monkeypatch)  # the run itself goes on
    assert launch.main(argv) == 0
    record = json.loads((folder / "run.json").read_text())
    assert (record["status"], record["max_iterations"], len(record["starts"])) == ("finished", 79, 1)
    assert (folder / "params" / "agent.yaml").read_bytes() != before["agent.yaml"]


def test_a_run_goes_on_with_the_agent_it_began_with(place):
    for agent in ("transformer_mask_100", "transformer_curriculum"):  # both have the network of the default agent
        entry = f"rsl_rl_{agent}_cfg_entry_point"
        path = put_checkpoint(place / agent, "model_5.pt", RECORD, **STAGE2, model="transformer", agent=entry)
        argv = ["--task", "UMC-A1-Stage2", "--device", "cpu", "--resume", "--checkpoint", str(path)]
        with pytest.raises(UmcError, match=rf"is a run of agent {agent}; .* give --agent {agent}"):
            planned(*argv)
        assert planned(*argv, "--agent", agent).start_from == path
    assert not list(place.glob("logs"))


def test_weights_alone_can_be_started_from_but_not_gone_on_with(place):
    folder = put_run(place)
    path = folder / "model_76.pt"
    whole = read_checkpoint(path)
    folded = {name: part for name, part in whole.items() if name != "optimizer_state_dict"}
    shipped = {**whole, "infos": {"umc": whole["infos"]["umc"]}}
    for data in (folded, shipped):
        write_checkpoint(path, data)
        for refused in (lambda: planned(*A1, "--resume"), lambda: dummy.build(folder).resume(str(path))):
            with pytest.raises(UmcError, match=r"holds weights, but not the optimizer .* leave out --resume"):
                refused()
        assert planned(*A1, "--checkpoint", str(path)).start_from == path


@pytest.mark.parametrize("name", ["num_envs", "max_iterations"])
def test_a_record_without_sizes_is_one_line(place, name):
    folder = put_run(place, "model_5.pt")
    record = json.loads((folder / "run.json").read_text())
    del record[name]
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(UmcError, match=rf"run\.json does not say {name}; start a new run without --resume"):
        planned(*A1, "--resume")


def test_a_run_that_is_through_stays_through(place, monkeypatch, capfd):
    folder = put_run(place)
    before = content(folder)
    no_simulator(monkeypatch)
    for argv in ([], ["--max_iterations", "70"]):
        assert launch.main([*A1, "--resume", *argv]) == 2
        assert "the run has 77 iterations already; give a higher --max_iterations" in capfd.readouterr().err
    assert content(folder) == before
