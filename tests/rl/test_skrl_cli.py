# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""`--rl_library skrl` of scripts/train.py: right plans, and one line where the libraries are mixed up."""

from __future__ import annotations

import json
from pathlib import Path

import dummy_skrl as dummy
import dummy_training
import pytest
from dummy_training import planned
from umc.cli.main import main
from umc.training import train as launch
from umc.training.arguments import parse
from umc.training.plan import make_plan, needs_stage1
from umc.utils.errors import UmcError

STAGE1 = ["--task", "UMC-A1-Stage1", "--agent", "mlp", "--device", "cpu"]
STAGE2 = ["--task", "UMC-A1-Stage2", "--agent", "mlp", "--device", "cpu"]
SKRL = ["--rl_library", "skrl"]


@pytest.fixture(autouse=True)
def no_simulation(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "_simulate", lambda *_: pytest.fail("the simulation was started"))
    monkeypatch.setattr("umc.rl.transfer.pretrained_file", lambda *_: None)


def put_checkpoint(folder, library):
    """A run folder with a checkpoint of A1's Stage 1 MLP."""
    runner = dummy.build(folder) if library == "skrl" else dummy_training.build(folder)
    runner.save(str(folder / "model_5.pt"))
    record = {"task": "UMC-A1-Stage1", "agent": f"{library}_mlp_cfg_entry_point", "seed": 5, "overrides": []}
    (folder / "run.json").write_text(json.dumps({**record, "parent": None, "num_envs": 12, "max_iterations": 77}))
    return folder / "model_5.pt"


def test_skrl_is_asked_for_by_the_flag_or_by_the_agents_entry_point():
    for argv in (SKRL, ["--agent", "skrl_transformer_cfg_entry_point"]):
        chosen = planned("--task", "UMC-A1-Stage1", "--device", "cpu", *argv)
        assert (chosen.request.library, chosen.request.agent) == ("skrl", "skrl_transformer_cfg_entry_point")
        assert chosen.folder.parent == Path("logs/skrl/umc_a1_transformer_stage1")
        assert chosen.record.fields["library"] == "skrl"
    assert parse(["--task", "UMC-A1-Stage1"]).agent == "rsl_rl_transformer_cfg_entry_point"
    named = parse([*STAGE1, *SKRL])
    assert (named.agent, named.spec.network) == ("skrl_mlp_cfg_entry_point", "mlp")


def test_overrides_are_those_of_rsl_rl():
    chosen = planned(*STAGE1, *SKRL, "agent.algorithm.clip_param=0.1", "agent.actor.hidden_dims=[8]")
    assert (chosen.agent_cfg.algorithm.clip_param, chosen.agent_cfg.actor.hidden_dims) == (0.1, [8])


def test_several_processes_are_refused_before_skrl_waits_for_them(monkeypatch):
    request = parse([*STAGE1, *SKRL, "--distributed"])
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UmcError, match="skrl learns in one process here; start it without torchrun"):
        make_plan(request)


def test_a_run_resumes_with_its_own_library(tmp_path, capfd):
    paths = {library: put_checkpoint(tmp_path / library, library) for library in ("rsl_rl", "skrl")}
    capfd.readouterr()
    for library, path in paths.items():
        other = "skrl" if library == "rsl_rl" else "rsl_rl"
        argv = [*STAGE1, "--resume", "--checkpoint", str(path), "--rl_library"]
        assert main(["train", *argv, other]) == 2
        wanted = f"is a run of {library}; --resume needs the same library: give --rl_library {library}"
        assert wanted in capfd.readouterr().err
        assert planned(*argv, library).start_from == path


def test_stage_2_looks_for_its_own_librarys_stage_1_and_takes_the_others_if_asked(tmp_path):
    theirs = put_checkpoint(tmp_path / "logs" / "rsl_rl" / "umc_a1_mlp_stage1" / "run", "rsl_rl")
    assert needs_stage1(parse([*STAGE2, *SKRL]))
    chosen = planned(*STAGE2, *SKRL, "--checkpoint", str(theirs))
    assert (chosen.start_from, chosen.request.library) == (theirs, "skrl")
    ours = put_checkpoint(tmp_path / "logs" / "skrl" / "umc_a1_mlp_stage1" / "run", "skrl")
    assert planned(*STAGE2, *SKRL).start_from == ours.relative_to(tmp_path)
    assert planned(*STAGE2).start_from == theirs.relative_to(tmp_path)
    assert planned(*STAGE2, "--checkpoint", str(ours)).start_from == ours
