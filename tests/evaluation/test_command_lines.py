# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes on the command lines of evaluate.py and play.py: one line, exit status 2, nothing simulated."""

import pytest
from fresh_policy import write_fresh
from umc.evaluation import main as evaluation
from umc.evaluation import play


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return str(write_fresh(tmp_path_factory.mktemp("run")))


@pytest.mark.parametrize(
    ("script", "arguments", "words"),
    [
        (evaluation, [], "--checkpoint is missing"),
        (evaluation, ["--checkpoint", "nowhere.pt"], "no checkpoint at nowhere.pt"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--task", "UMC-A1-Stage3"], "did you mean UMC-A1-Stage"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--task", "UMC-G1-Stage2"], "trained for robot a1"),
        (evaluation, ["--checkpoint", "CHECKPOINT", "--num_envs", "0"], "--num_envs is 0"),
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
        (play, ["--checkpoint", "CHECKPOINT", "--scenario", "0"], "unknown scenario 0"),
        (play, ["--checkpoint", "CHECKPOINT", "--steps", "1"], "--steps is 1"),
        (play, ["--checkpoint", "CHECKPOINT", "--steps", "50", "--onset", "50"], "--onset 50"),
        (play, ["--checkpoint", "CHECKPOINT", "--onset", "0"], "--onset 0"),
    ],
)
def test_a_mistake_is_one_line_and_exit_status_2(script, arguments, words, checkpoint, capsys):
    status = script.main([checkpoint if argument == "CHECKPOINT" else argument for argument in arguments])
    lines = [line for line in capsys.readouterr().err.splitlines() if line]
    assert status == 2
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    assert words in lines[0]
