# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The phases of a recipe run one after the other, and its command resumes it wherever it was killed; no simulator."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from fresh_policy import write_fresh
from tiny_recipe import PHASES, TINY, written
from umc.rl.checkpoint import checkpoint_info, read_checkpoint, write_checkpoint
from umc.rl.watchdog import HUNG
from umc.training.recipe import read_recipe
from umc.training.recipe_runner import MAX_HANGS, RecipeRun, run_recipe
from umc.utils.errors import UmcError
from umc.utils.process import LAUNCHER, ChildFailed
from umc.utils.provenance import read_progress

pytestmark = pytest.mark.usefixtures("fake_umc")


def calls(folder):
    return [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]


def flag(arguments, name):
    return arguments[arguments.index(f"--{name}") + 1]


def test_phases_follow_each_other_and_the_policy_is_evaluated(tmp_path, capsys):
    argv = ["--recipe", written(tmp_path, evaluation={"num_envs": 24, "overrides": ["protocol.steps=100"]})]
    assert run_recipe(argv) == 0
    out = capsys.readouterr().out
    walk, speed, faults = calls(tmp_path)
    assert "--resume" not in walk
    assert "--checkpoint" not in walk
    assert (flag(walk, "max_iterations"), flag(walk, "seed"), flag(walk, "num_envs")) == ("2", "3", "8")
    assert {flag(call, "device") for call in calls(tmp_path)} == {"cpu"}
    assert "--resume" in speed
    assert flag(speed, "checkpoint").endswith("model_1.pt")
    assert flag(speed, "max_iterations") == "5"  # its own three after the two before it
    assert speed[-1] == "env.rewards.track_lin_vel.params.std=0.25"
    assert "--resume" not in faults
    assert flag(faults, "checkpoint").endswith("model_4.pt")
    assert (flag(faults, "task"), flag(faults, "num_envs")) == ("UMC-A1-Stage2", "16")
    assert faults[-2:] == ["physics=ovphysx", "env.scene.terrain=flat"]
    assert "[3/3] Stage 2, faults: iteration 4/4: 1,000 env-steps/s; whole recipe 100%, ETA 0:00:00" in out
    assert "evaluate it with: umc evaluate --checkpoint" in out
    state = json.loads((tmp_path / "logs" / "recipes" / "tiny_seed3" / "state.json").read_text())
    assert [entry["status"] for entry in state["phases"]] == ["done"] * PHASES

    assert run_recipe([*argv, "--evaluate"]) == 0
    assert len(calls(tmp_path)) == PHASES
    assert capsys.readouterr().out.count("done before") == PHASES
    asked = json.loads((tmp_path / "asked.json").read_text())
    assert flag(asked, "checkpoint").endswith("_tiny_seed3_phase3/model_3.pt")
    assert (flag(asked, "num_envs"), flag(asked, "device")) == ("24", "cpu")
    assert asked[-2:] == ["physics=ovphysx", "protocol.steps=100"]  # the engine that it was trained on


def test_progress_of_the_whole_recipe(tmp_path):
    run = RecipeRun(read_recipe(written(tmp_path)), tmp_path, "")
    # 2 x 8, 3 x 8 and 4 x 16 envs: half of the last phase is 0.69 of all; 2 iterations of 16 envs are left
    record = {"num_envs": 16, "num_steps_per_env": 24}
    assert run.overall(2, 2, 1000.0, record) == "whole recipe 69%, ETA 0:00:01"
    assert run.overall(1, 2, 1000.0, record).startswith("whole recipe 15%")  # the second goes on with the first's run


def test_every_seed_is_a_training_of_its_own(tmp_path):
    stages = {1: [{"iterations": 1}], 2: [{"iterations": 1, "seed": 4}]}
    for seed in ("3", "5"):
        run_recipe(["--recipe", written(tmp_path, stages=stages), "--seed", seed])
    assert [flag(call, "seed") for call in calls(tmp_path)] == ["3", "4", "5", "4"]  # Stage 2 names its own
    first, second = (flag(call, "checkpoint") for call in calls(tmp_path)[1::2])
    assert first != second
    assert "seed5_phase1/" in second


def test_a_phase_with_a_teacher_imitates_and_ppo_goes_on_from_it_in_a_run_of_its_own(tmp_path):
    (tmp_path / "walk.pt").touch()
    teacher = str(tmp_path / "walk.pt")
    walk = [{"iterations": 3, "teacher": teacher}, {"iterations": 2, "teacher": teacher}, {"iterations": 4}]
    recipe = read_recipe(
        written(tmp_path, stages={1: walk, 2: [{"iterations": 5, "teacher": "pretrained:a1_mlp_stage2"}]})
    )
    assert [(phase.resumes, phase.last_iteration) for phase in recipe.phases] == [
        (False, 3),
        (True, 5),
        (False, 4),
        (False, 5),
    ]
    run = RecipeRun(recipe, tmp_path / "logs", "", trust=True)
    first, _, ppo, faults = (run.arguments(number, None) for number in range(4))
    assert first[first.index("--teacher") :][:3] == ["--teacher", teacher, "--trust"]
    assert not {"--teacher", "--trust", "--resume"} & set(ppo)
    assert ppo[ppo.index("--checkpoint") + 1] == "<phase 2>"
    assert faults[faults.index("--teacher") + 1] == "pretrained:a1_mlp_stage2"
    assert faults[faults.index("--checkpoint") + 1] == "<phase 3>"
    untrusted = RecipeRun(recipe, tmp_path / "logs", "").arguments(0, None)
    assert "--trust" not in untrusted


@pytest.mark.parametrize(
    ("late", "words"),
    [
        ({"teacher": "walk.pt"}, r"Stage 2, late: the policy walk.pt is code \(TorchScript\); add --trust"),
        ({"teacher": "pretrained:g1_mlp_stage2"}, "Stage 2, late: .*for robot g1"),
        ({"teacher": "pretrained:a1_mlp_stage1"}, "Stage 2, late: .*was trained without faults"),
        (
            {"teacher": "pretrained:a1_mlp_stage2", "overrides": ["env.decimation=2"]},
            "Stage 2, late: only one of --teacher .*env.decimation=2",
        ),
        ({"from": "pretrained:g1_mlp_stage1"}, "Stage 2, late: .* g1"),
        ({"from": "gone.pt"}, "Stage 2, late: no checkpoint at gone.pt"),
        ({"teacher": "gone.pt"}, "Stage 2, late: no network at gone.pt"),
        ({"from": "stage1"}, "Stage 2, late: .*holds the transformer model, the agent is mlp"),
        (
            {"from": {"recipe": "a1_mlp_tracks_cpu"}},
            "Stage 2, late: this phase needs Stage 1 of recipe a1_mlp_tracks_cpu, which",
        ),
    ],
)
def test_what_a_late_phase_starts_from_is_read_before_the_first_is_trained(tmp_path, late, words):
    torch.jit.script(torch.nn.Linear(48, 12)).save(tmp_path / "walk.pt")
    write_fresh(tmp_path / "stage1", "UMC-A1-Stage1", "transformer")
    stages = {1: [{"iterations": 1}], 2: [{"name": "late", "iterations": 1, **late}]}
    with pytest.raises(UmcError, match=words):
        run_recipe(["--recipe", written(tmp_path, stages=stages)])
    assert not (tmp_path / "calls.jsonl").exists()


def test_a_late_phase_of_stage_1_cannot_start_from_stage_2(tmp_path):
    late = {"name": "late", "iterations": 1, "from": "pretrained:a1_mlp_stage2"}
    with pytest.raises(UmcError, match=r"^Stage 1, late: .* is of Stage 2; give weights of Stage 1"):
        run_recipe(["--recipe", written(tmp_path, stages={1: [{"iterations": 1}, late], 2: []})])
    assert not (tmp_path / "calls.jsonl").exists()


def train_real(tmp_path, recipe):
    """Train a recipe whose files can be read: `fake_umc.py` writes empty ones."""
    run_recipe(["--recipe", recipe])
    run = RecipeRun(read_recipe(recipe), Path("logs"), "")
    for phase, entry in zip(run.recipe.phases, run.state.phases, strict=True):
        fresh = write_fresh(tmp_path / "fresh", phase.task, phase.agent)
        write_checkpoint(entry.checkpoint, {**read_checkpoint(fresh), "critic_state_dict": {}})


@pytest.mark.parametrize(
    ("late", "words"),
    [
        ({"from": {"recipe": "other.yaml"}}, "holds the transformer model, the agent is mlp"),
        ({"from": {"path": "nm/model_0.pt", "fold": True}}, "holds the transformer model, the agent is mlp"),
        ({"from": {"recipe": "other.yaml", "stage": 2}}, "recipe other has no Stage 2; give another stage"),
        ({"teacher": {"recipe": "other.yaml"}}, "recipe other has no Stage 2; give another stage"),
        ({"teacher": {"recipe": "other.yaml", "stage": 1}}, "was trained without faults"),
    ],
)
def test_what_comes_from_another_recipe_or_is_folded_is_read_before_the_first_is_trained(tmp_path, late, words):
    train_real(tmp_path, written(tmp_path, "other", agent="transformer", stages={1: [{"iterations": 1}], 2: []}))
    baseline = write_fresh(tmp_path / "nm", "UMC-A1-Stage1", "nm_transformer")
    write_checkpoint(baseline, {**read_checkpoint(baseline), "critic_state_dict": {}})
    stages = {1: [{"iterations": 1}], 2: [{"name": "late", "iterations": 1, **late}]}
    with pytest.raises(UmcError, match=f"^Stage 2, late: .*{words}") as error:
        run_recipe(["--recipe", written(tmp_path, stages=stages)])
    assert "\n" not in str(error.value)
    assert len(calls(tmp_path)) == 1


def test_a_teacher_without_code_does_not_make_a_later_one_trusted(tmp_path):
    torch.jit.script(torch.nn.Linear(48, 12)).save(tmp_path / "walk.pt")
    imitate = [{"iterations": 1, "teacher": one} for one in ("pretrained:a1_mlp_stage2", "walk.pt")]
    with pytest.raises(UmcError, match=r"the policy walk.pt is code \(TorchScript\); add --trust"):
        run_recipe(["--recipe", written(tmp_path, stages={1: [], 2: imitate})])
    assert not (tmp_path / "calls.jsonl").exists()


def test_a_teacher_that_was_trusted_at_the_start_is_trusted_by_its_phase(tmp_path, monkeypatch):
    monkeypatch.setattr("umc.rl.distillation.confirm_code", lambda _: None)  # the user says yes
    torch.jit.script(torch.nn.Linear(48, 12)).save(tmp_path / "walk.pt")
    run_recipe(["--recipe", written(tmp_path, stages={1: [], 2: [{"iterations": 1, "teacher": "walk.pt"}]})])
    assert "--trust" in calls(tmp_path)[-1]  # hours later nobody answers


def test_a_stage_2_that_imitates_needs_no_stage_1(tmp_path):
    imitate = [{"iterations": 5, "teacher": "pretrained:a1_mlp_stage2"}, {"iterations": 5}]
    recipe = read_recipe(written(tmp_path, stages={1: [], 2: imitate}))
    first, ppo = (RecipeRun(recipe, tmp_path / "logs", "").arguments(number, None) for number in range(2))
    assert first[first.index("--teacher") + 1] == "pretrained:a1_mlp_stage2"
    assert "--checkpoint" not in first
    assert ppo[ppo.index("--checkpoint") + 1] == "<phase 1>"


def test_a_teacher_can_be_a_stage_of_another_recipe(tmp_path):
    other = written(tmp_path, "other")
    imitate = [{"iterations": 5, "teacher": {"recipe": other, "stage": 2}}]
    argv = ["--recipe", written(tmp_path, stages={1: [], 2: imitate})]
    with pytest.raises(UmcError, match=r"Stage 2 of recipe other, which is not done .*--recipe \S*other\.yaml"):
        run_recipe(argv)
    train_real(tmp_path, other)
    run_recipe(argv)
    assert flag(calls(tmp_path)[-1], "teacher").endswith("other_seed3_phase3/model_3.pt")
    more = {1: [{"iterations": 5, "name": "new"}, {"iterations": 5}], 2: [{"iterations": 3}]}
    written(tmp_path, "other", stages=more)  # so the number of the stage is that of another one
    with pytest.raises(UmcError, match="recipe other has changed since its phase"):
        run_recipe(["--recipe", written(tmp_path, "late", stages={1: [], 2: imitate})])


def test_of_another_recipe_only_the_stage_that_is_used_has_to_be_as_it_was_trained(tmp_path):
    other = written(tmp_path, "other")
    argv = ["--recipe", written(tmp_path, stages={1: [], 2: [{"iterations": 1, "from": {"recipe": other}}]})]
    train_real(tmp_path, other)
    RecipeRun(read_recipe(other), Path("logs"), "").checkpoint.unlink()
    run_recipe(argv)
    written(tmp_path, "other", stages={**TINY["stages"], 2: [{"iterations": 7}]})
    run_recipe([*argv, "--restart"])
    written(tmp_path, "other", stages={**TINY["stages"], 1: [{"iterations": 2}, {"iterations": 4}]})
    with pytest.raises(UmcError, match=r"Stage 1 of another recipe .*: recipe other has changed since its phase 2"):
        run_recipe([*argv, "--restart"])
    RecipeRun(read_recipe(other), Path("logs"), "").folder.joinpath("state.json").write_text("{")
    with pytest.raises(UmcError, match=r"Stage 1 of another recipe \(.*other.yaml .*--restart\): .*state.json"):
        run_recipe([*argv, "--restart"])


@pytest.mark.parametrize("is_done", [False, True])
def test_the_commands_are_shown_whatever_is_trained_and_nothing_is_written(tmp_path, capsys, is_done):
    other = written(tmp_path, "other")
    stages = {1: [{"iterations": 1, "from": {"recipe": other, "fold": True}}], 2: []}
    walk = written(tmp_path, "walk", agent="nm_mlp", stages=stages)
    imitate = written(tmp_path, stages={1: [], 2: [{"iterations": 5, "teacher": {"recipe": other}}]})
    if is_done:
        run_recipe(["--recipe", other])
    before = sorted(tmp_path.rglob("*"))
    capsys.readouterr()
    for recipe in (walk, imitate):
        assert run_recipe(["--recipe", recipe, "--show"]) == 0
    out = capsys.readouterr().out
    assert re.search(
        r"--checkpoint '<.*model_4\.pt, folded>'" if is_done else "'<Stage 1 of recipe other, folded>'", out
    )
    assert re.search(r"--teacher \S*model_3\.pt" if is_done else "--teacher '<Stage 2 of recipe other>'", out)
    assert sorted(tmp_path.rglob("*")) == before


def test_states_from_before_there_were_teachers_stay_valid(tmp_path):
    assert read_recipe(written(tmp_path)).fingerprint(PHASES) == "2b299454b523e7c3"


def test_a_changed_recipe_is_refused_unless_restarted(tmp_path):
    argv = ["--recipe", written(tmp_path)]
    run_recipe(argv)
    longer = {**TINY["stages"], 2: [{"name": "other name", "iterations": 4, "num_envs": 16}, {"iterations": 1}]}
    run_recipe(["--recipe", written(tmp_path, stages=longer)])  # what is done is the same: only the new phase
    assert len(calls(tmp_path)) == PHASES + 1
    with pytest.raises(UmcError, match=r"has changed since its phase 1 \(Stage 1, walk\) was trained; .*--restart"):
        run_recipe(["--recipe", written(tmp_path, num_envs=4)])
    run_recipe(["--recipe", written(tmp_path, num_envs=4), "--restart"])
    again = calls(tmp_path)[PHASES + 1 :]
    assert len(again) == PHASES
    assert "--resume" not in again[0]
    assert flag(again[0], "run_dir") != flag(calls(tmp_path)[0], "run_dir")
    Path(flag(again[2], "checkpoint")).unlink()
    with pytest.raises(UmcError, match=r"model_4\.pt is gone; start over with --restart"):
        run_recipe(["--recipe", written(tmp_path, num_envs=4)])


@pytest.mark.parametrize("trained", [0, 2])
def test_a_phase_that_failed_before_its_first_checkpoint_can_be_corrected(tmp_path, trained):
    run = RecipeRun(read_recipe(written(tmp_path)), tmp_path / "logs", "")
    for number in range(PHASES):
        entry = run._entry(number)
        Path(entry.run_dir).mkdir(parents=True, exist_ok=True)
        iterations = (2, 5, trained)[number]
        if iterations:
            checkpoint = Path(entry.run_dir) / f"model_{iterations - 1}.pt"
            checkpoint.touch()
        if number < PHASES - 1:
            entry.status, entry.checkpoint = "done", str(checkpoint)
    run._write()
    fewer = {**TINY["stages"], 2: [{"name": "faults", "iterations": 4, "num_envs": 4}]}
    changed = RecipeRun(read_recipe(written(tmp_path, stages=fewer)), tmp_path / "logs", "")
    if trained:
        with pytest.raises(UmcError, match="has changed since its phase 3"):
            changed._check_done()
    else:
        changed._check_done()
        assert len(changed.state.phases) == PHASES - 1


@pytest.mark.parametrize("later", [[], TINY["stages"][2]])
@pytest.mark.parametrize("saved", [False, True])
def test_a_second_phase_that_saved_nothing_can_be_taken_out(tmp_path, later, saved):
    run = RecipeRun(read_recipe(written(tmp_path)), tmp_path / "logs", "")
    first, _ = run._entry(0), run._entry(1)
    checkpoint = Path(first.run_dir) / "model_1.pt"  # of the run that the second phase resumes
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    first.status, first.checkpoint = "done", str(checkpoint)
    if saved:
        checkpoint.with_name("model_2.pt").touch()
    run._write()
    fewer = {1: TINY["stages"][1][:1], 2: later}
    changed = RecipeRun(read_recipe(written(tmp_path, stages=fewer)), tmp_path / "logs", "")
    if saved:
        with pytest.raises(UmcError, match=r"has changed since its phase 2 \(Stage 1, speed\)"):
            changed._check_done()
    else:
        changed._check_done()
        assert len(changed.state.phases) == 1


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda state: "{", "is not valid JSON"),
        (lambda state: {"format": 1}, "another version of umc"),
        (lambda state: {key: value for key, value in state.items() if key != "phases"}, "phases is missing"),
        (lambda state: {**state, "phases": [{**state["phases"][0], "seconds": -1.0}]}, "phases.0.seconds is -1.0"),
        (lambda state: {**state, "phases": [{**state["phases"][0], "checkpoint": None}]}, "is done is missing"),
        (lambda state: {**state, "phases": [{**state["phases"][0], "checkpoint": "last.pt"}]}, "last.pt is no model_"),
        (
            lambda state: {**state, "phases": [{**state["phases"][0], "status": "running"}, *state["phases"]]},
            "not done is followed by another",
        ),
        (lambda state: {**state, "phases": [{**state["phases"][0], "run_dir": "a\nb"}]}, "cannot be printed"),
    ],
)
def test_a_damaged_state_is_refused_in_one_line_and_a_restart_does_not_read_it(tmp_path, damage, why):
    recipe = read_recipe(written(tmp_path))
    run = RecipeRun(recipe, tmp_path / "logs", "")
    entry = run._entry(0)
    entry.status, entry.checkpoint, entry.ended_at = "done", "model_1.pt", "now"
    run._write()
    path = run.folder / "state.json"
    content = damage(json.loads(path.read_text()))
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(UmcError, match=rf"state\.json.*{why}") as error:
        RecipeRun(recipe, run.logs, "")
    assert "--restart" in str(error.value)
    assert "\n" not in str(error.value)
    assert RecipeRun(recipe, run.logs, "", restart=True).state.phases == []


def test_the_time_of_a_killed_phase_is_kept(tmp_path):
    run = RecipeRun(read_recipe(written(tmp_path)), tmp_path / "logs", "")
    run._entry(0)
    for seconds in (100.0, 200.0):
        run._kept -= 100.0
        run._on_poll(0, "")
        again = RecipeRun(run.recipe, run.logs, "")  # as after kill -9
        assert again.state.phases[0].seconds == pytest.approx(seconds, abs=20.0)


def test_a_failing_phase_ends_the_recipe_with_the_command_that_resumes_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "scripts" / "train.py")])
    monkeypatch.setenv(LAUNCHER, "./isaaclab.sh")
    with monkeypatch.context() as broken:
        broken.setattr("umc.utils.process.UMC", ("-c", "print('no')\nraise SystemExit(7)\n"))
        with pytest.raises(ChildFailed):
            run_recipe(["--recipe", written(tmp_path), "--restart"])
    out = capsys.readouterr().out
    assert "no\n" in out
    assert "resume with: ./isaaclab.sh -p scripts/train.py --recipe " in out
    assert "--restart" not in out
    assert run_recipe(["--recipe", written(tmp_path)]) == 0


def test_a_phase_that_hung_is_resumed_unless_it_never_gets_to_a_checkpoint(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FAKE_HANGS_AFTER", "1")  # iterations of each process
    assert run_recipe(["--recipe", written(tmp_path)]) == 0
    done = calls(tmp_path)
    assert len(done) == 2 + 3 + 4  # one for each iteration of the three phases
    assert "--resume" in done[1]
    monkeypatch.setenv("FAKE_HANGS_AFTER", "0")
    with pytest.raises(ChildFailed, match=str(HUNG)):
        run_recipe(["--recipe", written(tmp_path, "other")])
    assert len(calls(tmp_path)) == len(done) + MAX_HANGS
    assert "resume with: " in capsys.readouterr().out


def test_hangs_are_counted_from_the_last_checkpoint_on(tmp_path, monkeypatch):
    started = []

    def hang(command, arguments, **_):
        if not started:
            run = Path(flag(arguments, "run_dir"))
            run.mkdir(parents=True)
            (run / "model_0.pt").touch()
        started.append(arguments)
        raise ChildFailed([command], HUNG)

    monkeypatch.setattr("umc.training.recipe_runner.run_umc", hang)
    with pytest.raises(ChildFailed):
        run_recipe(["--recipe", written(tmp_path)])
    assert len(started) == 1 + MAX_HANGS


def test_weights_can_come_from_another_recipe(tmp_path):
    """Folded for a baseline, whose network reads no mask and no flag."""
    other = written(tmp_path, "other")
    source = {"recipe": other, "stage": 1}
    faults = {1: [], 2: [{"iterations": 1, "from": source}]}
    argv = ["--recipe", written(tmp_path, stages=faults)]
    with pytest.raises(UmcError, match=r"Stage 1 of recipe other, which is not done .*--recipe \S*other\.yaml"):
        run_recipe(argv)
    train_real(tmp_path, other)
    run_recipe(argv)
    assert flag(calls(tmp_path)[-1], "checkpoint").endswith("other_seed3_phase1/model_4.pt")
    walk = {1: [{"iterations": 1, "from": {**source, "fold": True}}]}
    run_recipe(["--recipe", written(tmp_path, "baseline", agent="nm_mlp", stages=walk)])
    folded = flag(calls(tmp_path)[-1], "checkpoint")
    assert checkpoint_info(read_checkpoint(folded), folded).model == "nm_mlp"
    back = {1: [], 2: [{"iterations": 1, "from": {"path": str(folded), "fold": True}}]}
    run_recipe(["--recipe", written(tmp_path, "back", stages=back)])
    start = flag(calls(tmp_path)[-1], "checkpoint")
    assert checkpoint_info(read_checkpoint(start), start).model == "mlp"


def test_a_phase_that_has_begun_needs_its_start_no_longer(tmp_path):
    start = write_fresh(tmp_path / "start", "UMC-A1-Stage1")
    argv = ["--recipe", written(tmp_path, stages={1: [], 2: [{"iterations": 3, "from": str(start)}]})]
    run_recipe(argv)
    start.unlink()
    run = RecipeRun(read_recipe(argv[1]), Path("logs"), "")
    run.checkpoint.unlink()
    run.state.phases[0].status = "running"
    run._write()
    assert run_recipe(argv) == 0
    assert flag(calls(tmp_path)[-1], "checkpoint") == str(run.checkpoint.with_name("model_1.pt"))


def test_the_progress_of_an_earlier_start_is_forgotten(tmp_path, monkeypatch):
    argv, seen = ["--recipe", written(tmp_path)], []
    run_recipe(argv)
    run = RecipeRun(read_recipe(argv[1]), Path("logs"), "")
    run.checkpoint.unlink()
    run.state.phases[-1].status = "running"
    run._write()

    def start(command, *_, **__):
        seen.append(read_progress(run.checkpoint.parent))
        raise ChildFailed(command, 1)

    assert read_progress(run.checkpoint.parent) is not None
    monkeypatch.setattr("umc.training.recipe_runner.run_umc", start)
    with pytest.raises(ChildFailed):
        run_recipe(argv)
    assert seen == [None]


def test_a_phase_can_start_a_run_of_its_own_from_the_weights_before_it(tmp_path):
    first, second = TINY["stages"][1]
    stages = {1: [first, {**second, "from": "before"}, {"iterations": 1}], 2: []}
    assert run_recipe(["--recipe", written(tmp_path, stages=stages, agent="nm_mlp")]) == 0
    _, new, after = calls(tmp_path)
    assert "--resume" not in new
    assert flag(new, "checkpoint").endswith("tiny_seed3_phase1/model_1.pt")
    assert flag(new, "max_iterations") == "3"
    assert "env.scene.terrain=flat" in new
    assert "--resume" in after
    assert flag(after, "checkpoint").endswith("tiny_seed3_phase2/model_2.pt")


def test_stopped_or_killed_a_recipe_resumes_from_its_last_checkpoint_and_only_one_works_on_it(
    fake_umc, tmp_path, monkeypatch
):
    monkeypatch.setattr("umc.utils.process.LOCK_TIMEOUT_S", 0.3)
    argv = ["--recipe", written(tmp_path, stages={1: [{"iterations": 2}], 2: [{"iterations": 400}]})]

    def start_stage_2():
        slow = {**os.environ, "FAKE_ITERATION_S": "0.1"}
        process = subprocess.Popen([*fake_umc, *argv], stdout=subprocess.PIPE, text=True, env=slow)
        assert any("[2/2] Stage 2, 1: iteration " in line for line in process.stdout)
        return process

    first = start_stage_2()
    with pytest.raises(UmcError, match=rf"process {first.pid} on .* trains recipe .*; wait for it, or end it"):
        run_recipe(argv)
    first.send_signal(signal.SIGTERM)  # passed on to the child, which saves
    assert "resume with: " in first.communicate(timeout=60)[0]
    assert first.returncode != 0
    second = start_stage_2()
    second.kill()  # its child saves and ends by itself
    second.wait()
    third = subprocess.run([*fake_umc, *argv], capture_output=True, text=True, timeout=300, check=False)
    assert third.returncode == 0, third.stdout + third.stderr
    assert third.stdout.count("done before") == 1
    _, stage2, *resumed = calls(tmp_path)
    assert flag(stage2, "task") == "UMC-A1-Stage2"
    assert ["--resume" in call for call in resumed] == [True, True]
    numbers = [int(Path(flag(call, "checkpoint")).stem.removeprefix("model_")) for call in resumed]
    assert 0 <= numbers[0] < numbers[1] < 400
    assert f"resuming after iteration {numbers[1] + 1}, {400 - numbers[1] - 1} iterations" in third.stdout
    assert len(list(tmp_path.glob("logs/rsl_rl/umc_a1_mlp_stage2/*"))) == 1
