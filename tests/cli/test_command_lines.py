# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes on the command lines of evaluate.py and play.py: one line, exit status 2, nothing simulated."""

import sys
from importlib import import_module

import pytest
from fresh_policy import write_fresh
from umc.cli import evaluate as evaluation
from umc.cli import film, play


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    import_module("isaaclab.utils.warp")  # says once per process, outside of scripts, that its own setting is old
    return {
        "CHECKPOINT": str(write_fresh(tmp_path_factory.mktemp("a1"))),
        "OTHER ROBOT": str(write_fresh(tmp_path_factory.mktemp("g1"), task="UMC-G1-Stage2")),
    }


@pytest.mark.parametrize(
    ("script", "arguments", "words"),
    [
        (evaluation, [], "--checkpoint is missing"),
        (evaluation, ["--checkpoint"], "--checkpoint is empty"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "CHECKPOINT"], "is the same checkpoint as"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "OTHER ROBOT"], "was trained for robot g1"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--robot", "G1"], "was trained for robot a1"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--robot", "Solo9"], "unknown robot Solo9; did you mean solo8?"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--protocol", "umc"], "no protocol 'umc'"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--episodes", "0"], "--episodes is 0"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--labels", "a", "b"], "2 names for 1 checkpoints"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "protocol.stpes=3"], "unknown key stpes"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "protocol.settings.onset=[750,1,2]"], "onset 750 must lie between"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "protocol.radii=[3,2]"], "positive and increasing"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "sweep.grid.onset=[3]"], "there is no --sweep"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--sweep", "ratios"], "no sweep 'ratios'"),
        (evaluation, ["--sweep", "ablation_ratio"], "--robot is missing"),
        (evaluation, ["--sweep", "ablation_ratio", "--robot", "a1", "--logs", "no"], "no trained transformer of a1"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--share", "3/2"], "--share 3/2 is not a share"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--ray", "0"], "--ray is 0"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--ray", "2", "--quick"], "Ray, which is not installed"),
        (evaluation, ["--report_only", "nowhere"], "no study at nowhere"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "OTHER ROBOT", "--healthy"], "one --checkpoint"),
        (evaluation, ["--checkpoint", "nowhere.pt"], "no checkpoint at nowhere.pt"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--task", "UMC-A1-Stage3"], "did you mean UMC-A1-Stage"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--task", "UMC-G1-Stage2"], "trained for robot a1"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--num_envs", "-1"], "--num_envs is -1"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--num_envs", "7"], "less than the 24 cells"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--num_envs", "many"], "--num_envs"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--seed", "-5"], "--seed is -5"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--scenarios", "9"], "unknown scenario"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--radii", "2", "1"], "positive and increasing"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--radius", "2"], "unknown flag --radius"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "physics=newton_mjwrap"], "newton_mjwrap"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "physics=isaacsim_physx"], "needs Isaac Sim"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "agent.actor.hidden_dims=[3]"], "comes with the checkpoint"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "env.decimaton=2"], "decimation"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--device", "cuda:77"], "cuda:77"),
        (play, [], "--checkpoint is missing"),
        (play, ["--checkpoint", "CHECKPOINT", "CHECKPOINT", "--viz", "newton_gl"], "--viz shows one policy"),
        (play, ["--checkpoint", "CHECKPOINT", "CHECKPOINT", "--names", "NM"], "1 names for 2 checkpoints"),
        (play, ["--checkpoint", "CHECKPOINT", "CHECKPOINT", "--out", "clip.avi"], "cannot write .avi"),
        (play, ["--checkpoint", "CHECKPOINT", "CHECKPOINT", "--scenario", "9"], "unknown scenario 9"),
        (play, ["--checkpoint", "CHECKPOINT", "protocol.steps=3"], "only env. overrides"),
        (play, ["--checkpoint", "CHECKPOINT", "--steps", "1"], "--steps is 1"),
        (play, ["--checkpoint", "CHECKPOINT", "--steps", "50", "--onset", "50"], "--onset 50"),
        (play, ["--checkpoint", "CHECKPOINT", "--onset", "0"], "--onset 0"),
        (film, ["--checkpoint", "CHECKPOINT", "--viz", "viser"], "umc play --viz shows a policy"),
        (film, ["--checkpoint", "CHECKPOINT", "--port", "8080"], "unknown flag --port"),
    ],
)
def test_a_mistake_is_one_line_and_exit_status_2(script, arguments, words, checkpoints, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    status = script.main([checkpoints.get(argument, argument) for argument in arguments])
    lines = [line for line in capsys.readouterr().err.splitlines() if line]
    assert status == 2
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    assert words in lines[0]
