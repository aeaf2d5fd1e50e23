# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The plan of a training on many GPUs: its numbers are the paper's and the networks', its arithmetic adds up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from umc.errors import UmcError
from umc.rl import cluster_plan
from umc.rl.cluster_plan import plan_cluster, plan_evaluation

PAGE = Path(__file__).parents[2] / "docs" / "distributed.md"


@pytest.fixture(scope="module")
def plans():
    return {agent: plan_cluster("a1", agent, 64) for agent in ("transformer", "mlp")}


def test_parameters_are_those_of_the_networks(plans):
    std = 12  # the action noise is learnt, too; the paper does not count it
    assert plans["transformer"].actor_parameters == 368_804 + std
    assert plans["mlp"].actor_parameters == 345_100 + std


def test_the_paper_s_envs_are_dealt_out(plans):
    plan = plans["mlp"]
    assert plan.envs_per_gpu == 116  # 7,400 / 64 = 115.6
    assert (plan.iterations, plan.steps, plan.updates) == (5000, 24, 20)
    assert plan.total_samples == 64 * 116 * 24 * 5000
    assert plan.mini_batch == 64 * 116 * 24 // 4


def test_traffic_is_that_of_a_ring(plans):
    plan = plans["transformer"]
    assert plan.traffic_per_iteration == pytest.approx(20 * 2 * 63 / 64 * 4 * plan.parameters)
    assert plan_cluster("a1", "transformer", 1).traffic_per_update == 0.0


def test_a_transformer_s_env_step_is_305_mflop(plans):
    plan = plans["transformer"]
    assert plan.learning_tflop * 1e6 / plan.samples_per_gpu == pytest.approx(305, abs=1.5)
    assert plans["mlp"].learning_tflop * 1e6 / plans["mlp"].samples_per_gpu == pytest.approx(22, abs=0.5)


def test_a_gpu_that_is_not_full_is_not_taken_to_be_faster(plans):
    few, full = plans["mlp"], plan_cluster("a1", "mlp", 64, envs_per_gpu=4096)
    assert few.seconds_per_iteration(62_000.0) == full.seconds_per_iteration(62_000.0) == 4096 * 24 / 62_000.0
    more = plan_cluster("a1", "mlp", 64, envs_per_gpu=8192)
    assert more.seconds_per_iteration(62_000.0) == 2 * full.seconds_per_iteration(62_000.0)


@pytest.mark.parametrize(("robot", "cells", "robots", "steps"), [("a1", 24, 4000, 750), ("solo8", 8, 4096, 1000)])
def test_evaluation_is_the_paper_s(robot, cells, robots, steps):
    plan = plan_evaluation(robot)
    assert (plan.cells, plan.robots, plan.steps) == (cells, robots, steps)


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["--robot", "spot"], "unknown robot spot"),
        (["--agent", "lstm"], "unknown agent lstm"),
        (["--gpus", "0"], "--gpus is 0"),
        (["--envs_per_gpu", "0"], "--envs_per_gpu is 0"),
        (["--rate", "-1"], "--rate is -1.0"),
    ],
)
def test_what_is_wrong_is_one_line(argv, line, capsys):
    assert cluster_plan.main(argv) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert line in err
    assert err.count("\n") == 1


def test_the_page_holds_what_the_command_prints(capsys):
    block = re.search(r"cluster_plan --gpus 64 --robot g1\n```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    assert cluster_plan.main(["--gpus", "64", "--robot", "g1"]) == 0
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line]
    assert [" ".join(line.split()) for line in block[1].splitlines() if line] == printed


def test_mistakes_name_the_mend():
    with pytest.raises(UmcError, match="choose one of a1, g1, h1, solo8"):
        plan_cluster("spot", "mlp", 4)
