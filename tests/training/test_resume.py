# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""--resume keeps the settings that a run started with; where it is refused, in one line, the run stays as it was."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import dummy_skrl
import dummy_training as dummy
import pytest
from dummy_training import planned, put_checkpoint
from held_lock import held_lock
from umc.cli.main import main
from umc.rl.checkpoint import checkpoints_in, read_checkpoint, write_checkpoint
from umc.rl.transfer import apply_changes
from umc.training import train
from umc.training.arguments import parse
from umc.utils.errors import UmcError
from umc.utils.naming import LIBRARIES
from umc.utils.process import LAUNCHER, LOCK

A1 = ["--task", "UMC-A1-Stage2", "--agent", "mlp", "--device", "cpu"]
STAGE2 = {"task": "UMC-A1-Stage2", "stage": 2}
RECORD = {
    "task": "UMC-A1-Stage2",
    "agent": "rsl_rl_mlp_cfg_entry_point",
    "seed": 5,
    "overrides": ["physics=ovphysx", "agent.algorithm.gamma=0.9"],
    "parent": {"path": "p"},
    "num_envs": 12,
    "max_iterations": 77,
    "status": "finished",
    "starts": [],
    "ended_at": "then",
}
"""A run.json, as far as --resume needs it."""


def put_run(name="model_76.pt", **record):
    """The folder of a finished run."""
    folder = Path("logs/rsl_rl/umc_a1_mlp_stage2/run")
    put_checkpoint(folder, name, {**RECORD, **record}, **STAGE2)
    (folder / "params").mkdir()
    (folder / "params" / "agent.yaml").write_text("as it was\n")
    return folder


def content(folder):
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in (train.STARTUP_LOG, LOCK)]
    return {path.name: path.read_bytes() for path in files}


def no_simulator(monkeypatch, cfg=None):
    """Let `umc train` build the dummy training in place of env and runner, and keep the rest of what it does."""

    def build(plan, _cleanup):
        runner = dummy.build(plan.folder, cfg=cfg)
        runner.env.unwrapped = None
        return runner

    monkeypatch.setattr("isaaclab.app.launch_simulation", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(train, "_build", build)
    faults = SimpleNamespace(reset_faults=lambda _: None)
    monkeypatch.setattr("umc.mdp.fault_terms.fault_term", lambda _: faults)


@pytest.mark.parametrize("name", ["best.pt", "model_best.pt"])
def test_a_checkpoint_with_another_name_cannot_be_resumed(name):
    folder = put_run("model_4.pt")
    shutil.copy(folder / "model_4.pt", folder / name)
    with pytest.raises(UmcError, match=rf"{name} is not named model_<iteration>\.pt, .* rename it"):
        planned(*A1, "--resume", "--checkpoint", str(folder / name))


def test_resume_keeps_the_settings_that_the_run_started_with(tmp_path):
    older_sizes = ["env.scene.num_envs=64", "agent.max_iterations=500"]
    record = {**RECORD, "overrides": RECORD["overrides"] + older_sizes, "device": "cuda:0"}
    folder = put_run("model_4.pt")
    put_checkpoint(folder, "model_30.pt", record, **STAGE2)
    chosen = planned(*A1, "--resume")
    assert (chosen.start_from, chosen.folder) == (folder / "model_30.pt", folder)
    assert (chosen.env_cfg.scene.num_envs, chosen.agent_cfg.max_iterations, chosen.env_cfg.seed) == (12, 77, 5)
    assert (chosen.physics, chosen.agent_cfg.algorithm.gamma) == ("ovphysx", 0.9)
    assert chosen.record.fields["parent"] == {"path": "p"}
    assert "it ran on cuda:0 so far (--device)" in chosen.remarks
    assert not any("--run_name" in remark for remark in chosen.remarks)
    for token in ("--run_name=late", "agent.run_name=late"):
        named = planned(*A1, "--resume", token)
        assert (named.folder, "its folder keeps its name: --run_name has no effect" in named.remarks) == (folder, True)
    runner = dummy.build(tmp_path / "new")
    train.load_start(chosen, runner)
    assert runner.current_learning_iteration == 31
    given = ["agent.algorithm.gamma=0.8", "env.scene.num_envs=7"]
    changed = planned(*A1, "--resume", "--max_iterations", "99", "--seed", "6", *given)
    sizes = (changed.env_cfg.scene.num_envs, changed.agent_cfg.max_iterations, changed.env_cfg.seed)
    assert sizes == (7, 99, 6)
    assert changed.agent_cfg.algorithm.gamma == 0.8
    assert {"physics=ovphysx", *given} < {*changed.record.fields["overrides"]}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_learning_rate_and_a_noise_of_the_command_replace_those_of_the_checkpoint(tmp_path, library):
    rate, noise = "agent.algorithm.learning_rate=0.0003", "agent.actor.distribution_cfg.init_std=0.2"
    put_run(overrides=[*RECORD["overrides"], rate])
    more = ["--max_iterations", "99"]
    for typed, changed in (([rate], set()), ([rate, noise], {noise}), ([f"{rate}1"], {f"{rate}1"})):
        chosen = planned(*A1, "--resume", *more, *typed)
        assert chosen.changed == {token.split("=")[0] for token in changed}  # a repeated command changes nothing
    if library == "rsl_rl":
        resumed = dummy.build(tmp_path / "resumed")
        resumed.cfg["algorithm"]["learning_rate"] = 0.0007
        train.load_start(chosen, resumed)
        assert resumed.alg.learning_rate == 0.0007
    cfg = (dummy if library == "rsl_rl" else dummy_skrl).agent()
    runner = dummy.build(None, cfg=cfg) if library == "rsl_rl" else dummy_skrl.build(None, cfg=cfg)
    cfg["algorithm"]["learning_rate"], cfg["actor"]["distribution_cfg"]["init_std"] = 0.0007, 0.2
    runner.cfg = cfg
    before = runner.alg.learning_rate
    apply_changes(runner, [])
    assert runner.alg.learning_rate == before != 0.0007
    apply_changes(runner, ["agent.algorithm.learning_rate", "agent.actor.distribution_cfg.init_std"])
    assert [group["lr"] for group in runner.alg.optimizer.param_groups] == [0.0007]
    assert runner.alg.learning_rate == 0.0007
    assert runner.alg.get_policy().distribution.std_param.tolist() == pytest.approx([0.2] * len(dummy.JOINTS))


def test_the_seed_may_change_and_the_steps_of_an_iteration_may_not():
    put_run(num_steps_per_env=24)
    more = [*A1, "--resume", "--max_iterations", "99"]
    assert planned(*more, "agent.seed=8").env_cfg.seed == 8
    with pytest.raises(UmcError, match=r"a resumed run keeps agent\.num_steps_per_env=24"):
        planned(*more, "agent.num_steps_per_env=48")


@pytest.mark.parametrize("library", ["rsl_rl", "skrl"])
def test_the_command_to_resume_with_can_be_typed(monkeypatch, tmp_path, library):
    monkeypatch.setattr(sys, "argv", ["scripts/train.py"])
    clips = ["--video", "--video_length", "12"]
    chosen = planned(*A1, "--rl_library", library, "--checkpoint", str(put_checkpoint(tmp_path)), *clips)
    monkeypatch.delenv(LAUNCHER, raising=False)
    assert train.resume_command(chosen, Path("model_9.pt")).startswith("python scripts/train.py --task UMC-A1-Stage2 ")
    monkeypatch.setenv(LAUNCHER, "./isaaclab.sh")
    launcher, flag, script, *arguments = train.resume_command(chosen, tmp_path / "model_5.pt").split()
    assert (launcher, flag, script) == ("./isaaclab.sh", "-p", "scripts/train.py")
    again = parse(arguments)
    assert again.options.device == "cpu"
    assert (again.agent, again.library) == (chosen.request.agent, library)
    assert (again.options.video, again.options.video_length) == (True, 12)


def test_the_command_to_resume_with_starts_as_many_processes_on_as_many_machines(monkeypatch, tmp_path):
    chosen = planned(*A1, "--checkpoint", str(put_checkpoint(tmp_path)))
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    for here, words in (("4", ""), ("2", "--nnodes 2 --rdzv_backend c10d --rdzv_endpoint HOST:29500 ")):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", here)
        start = f"torchrun {words}--nproc_per_node {here} "
        assert train.resume_command(chosen, Path("model_9.pt")).startswith(start)


def test_a_run_whose_resume_is_refused_stays_as_it_was(monkeypatch, capfd):
    folder = put_run()
    before = content(folder)
    cfg = dummy.agent()
    cfg["actor"]["hidden_dims"] = [8]
    no_simulator(monkeypatch, cfg)
    more = ["--max_iterations", "79"]
    for argv, line in (
        ([], "the run has 77 iterations already; give a higher --max_iterations"),
        (["--max_iterations", "70"], "the run has 77 iterations already"),
        ([*more, "agent.actor.hidden_dims=[8]"], "a resumed run keeps its network"),
        ([*more, "agent.critic.hidden_dims=[8]"], "keeps its network: leave out agent.critic.hidden_dims"),
        (more, "do not fit the model"),
    ):
        assert main(["train", *A1, "--resume", *argv]) == 2
        assert line in capfd.readouterr().err
        assert content(folder) == before
    no_simulator(monkeypatch)
    assert main(["train", *A1, "--resume", *more]) == 0
    record = json.loads((folder / "run.json").read_text())
    assert (record["status"], record["max_iterations"], len(record["starts"])) == ("finished", 79, 1)
    assert (folder / "params" / "agent.yaml").read_bytes() != before["agent.yaml"]


def test_a_change_takes_effect_although_the_start_that_made_it_died_before_its_first_checkpoint():
    folder = put_run()
    change = "agent.algorithm.learning_rate=1.0e-4"
    first = planned(*A1, "--resume", "--max_iterations", "79", change)
    assert first.changed == {"agent.algorithm.learning_rate"}
    first.record.release()  # the run dies
    for typed in ([change], []):  # and dies again
        again = planned(*A1, "--resume", "--max_iterations", "79", *typed)
        assert again.changed == first.changed
        again.record.release()
    shutil.copy(folder / "model_76.pt", folder / "model_77.pt")  # it goes on, and comes to a checkpoint
    assert not planned(*A1, "--resume", "--max_iterations", "79", change).changed
    from_before = ["--resume", "--checkpoint", str(folder / "model_76.pt"), "--max_iterations", "79"]
    assert planned(*A1, *from_before, change).changed == first.changed


def test_a_run_in_which_another_process_trains_is_refused_by_name_until_that_process_dies(monkeypatch, capfd):
    folder = put_run()
    (folder / ".model_77.pt.tmp1").touch()  # the other process is saving
    no_simulator(monkeypatch)
    with held_lock(folder) as other:
        before = content(folder)
        assert main(["train", *A1, "--resume", "--max_iterations", "78"]) == 2
        assert f"process {other.pid} on {socket.gethostname()} (since 2" in capfd.readouterr().err
        assert content(folder) == before
    assert main(["train", *A1, "--resume", "--max_iterations", "78"]) == 0


def test_a_run_keeps_its_agent(tmp_path):
    for agent in ("transformer_mask_100", "transformer_curriculum"):  # both have the network of the default agent
        entry = f"rsl_rl_{agent}_cfg_entry_point"
        path = put_checkpoint(tmp_path / agent, "model_5.pt", RECORD, **STAGE2, model="transformer", agent=entry)
        argv = ["--task", "UMC-A1-Stage2", "--device", "cpu", "--resume", "--checkpoint", str(path)]
        with pytest.raises(UmcError, match=rf"is a run of agent {agent}; .* give --agent {agent}"):
            planned(*argv)
        assert planned(*argv, "--agent", agent).start_from == path


def test_a_run_starts_from_weights_alone_and_does_not_resume_them():
    folder = put_run()
    path = folder / "model_76.pt"
    complete = read_checkpoint(path)
    folded = {name: part for name, part in complete.items() if name != "optimizer_state_dict"}
    pretrained = {**complete, "infos": {"umc": complete["infos"]["umc"]}}
    for data in (folded, pretrained):
        write_checkpoint(path, data)
        for refused in (lambda: planned(*A1, "--resume"), lambda: dummy.build(folder).resume(str(path))):
            with pytest.raises(UmcError, match=r"holds weights, but not the optimizer .* leave out --resume"):
                refused()
        assert planned(*A1, "--checkpoint", str(path)).start_from == path


def test_a_record_without_sizes_is_refused(tmp_path):
    for name in ("num_envs", "max_iterations"):
        put_checkpoint(tmp_path / name, "model_5.pt", {**RECORD, name: None}, **STAGE2)
        with pytest.raises(UmcError, match=rf"run\.json does not say {name}; start a new run without --resume"):
            planned(*A1, "--resume", "--checkpoint", str(tmp_path / name))


def test_the_checkpoints_that_a_run_went_back_from_no_longer_stand_for_it(monkeypatch, capfd):
    folder = put_run("model_4.pt")
    no_simulator(monkeypatch)
    put_checkpoint(folder, "model_30.pt", RECORD, **STAGE2)
    assert main(["train", *A1, "--resume", "--checkpoint", str(folder / "model_4.pt"), "--max_iterations", "6"]) == 0
    assert [path.name for path in checkpoints_in(folder)] == ["model_4.pt", "model_5.pt"]
    (later,) = folder.glob("later_than_model_4_*/*.pt")
    assert later.name == "model_30.pt"
    assert f"a later checkpoint is now {later}" in capfd.readouterr().out


def test_a_ledger_goes_on_in_a_further_file(tmp_path):
    ledger = tmp_path / "faults.jsonl"
    put_run(overrides=[*RECORD["overrides"], f"env.events.faults.params.ledger={ledger}"], max_iterations=99)
    assert planned(*A1, "--resume").env_cfg.events.faults.params["ledger"] == str(ledger)
    ledger.touch()
    again = planned(*A1, "--resume")
    further = Path(again.env_cfg.events.faults.params["ledger"])
    assert further.parent == tmp_path
    assert further.stem.startswith("faults_20")
    assert f"faults from here on are logged in {further}" in again.remarks


def test_a_curriculum_keeps_its_stages_in_a_run_that_is_prolonged():
    stages = [[0, [1, 0, 0, 0]], [480, [0, 0, 0, 1]], [960, [0, 1, 0, 0]], [1440, [0, 0, 1, 0]]]
    name = "rsl_rl_mlp_curriculum_cfg_entry_point"
    folder = Path("logs/rsl_rl/umc_a1_mlp_curriculum_stage2/run")
    put_checkpoint(folder, "model_76.pt", {**RECORD, "agent": name, "fault_curriculum": stages}, agent=name, **STAGE2)
    agent = ["--task", "UMC-A1-Stage2", "--agent", "mlp_curriculum", "--device", "cpu"]
    agent += ["--checkpoint", str(folder / "model_76.pt")]
    longer = planned(*agent, "--resume", "--max_iterations", "160")
    kept = [(step, tuple(odds)) for step, odds in stages]
    assert longer.env_cfg.curriculum.faults.params["stages"] == longer.record.fields["fault_curriculum"] == kept
    typed = planned(*agent, "--resume", "--max_iterations", "160", "agent.curriculum_iterations=160")
    assert typed.env_cfg.curriculum.faults.params["stages"][1][0] == 40 * typed.agent_cfg.num_steps_per_env


def test_scenarios_without_an_env_are_named(tmp_path):
    start = ["--checkpoint", str(put_checkpoint(tmp_path)), "env.events.faults.params.scenario=[1,2,8]", "--num_envs"]
    words = "2 envs have the first 2 of 3 scenarios; the others do not happen"
    assert words in planned(*A1, *start, "2").remarks
    assert not any("do not happen" in one for one in planned(*A1, *start, "3").remarks)
