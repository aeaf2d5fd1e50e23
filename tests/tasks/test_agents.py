# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Every agent is there for every robot, is the network that its name says, and learns on a dummy environment."""

import gymnasium as gym
import pytest
import torch
from dummy_robot import ROBOTS, agent_cfg, build_runner, mean_action
from umc.rl.agents import AGENTS
from umc.rl.checkpoint import read_checkpoint, write_checkpoint
from umc.rl.transfer import load_stage1_weights
from umc.tasks.registry import checked_agent
from umc.utils.naming import entry_point

JOINT_COLUMNS = {"A1": 12, "Go2": 12, "G1": 9, "H1": 9, "Solo8": 12}
"""Column of the first joint position that the actor reads."""

ABLATED = ("transformer", "mlp", "transformer_small32")
"""Networks that have the paper's ablations."""

CHANGES_ONLY_THE_ENV = {name for name in AGENTS if "_ratio_" in name or name.endswith(("_one_stage", "_curriculum"))}
"""Their networks are those of the agent that they vary: on a dummy env nothing would be different."""


def test_the_table_holds_the_papers_methods_and_where_their_stage_2_starts():
    assert {name: spec.stage1 for name, spec in AGENTS.items() if 2 in spec.stages} == {
        **{name: name for name in ("transformer", "mlp", "gru", "transformer_small32", "transformer_small64")},
        **{f"{network}_{kind}": None for network in ABLATED for kind in ("one_stage", "curriculum")},
        "mt_ftc": None,
        **{
            f"{network}_{kind}": network
            for network in ABLATED
            for kind in (
                *("ratio_1110", "ratio_1101", "ratio_1011", "ratio_0111", "ratio_1221", "ratio_1331"),
                *("mask_100", "mask_minus_100"),
            )
        },
    }
    assert {name for name, spec in AGENTS.items() if spec.stages == (1,)} == {
        *("nm_transformer", "nm_mlp", "nm_gru", "nm_transformer_small32", "nm_transformer_small64", "body_transformer")
    }
    assert AGENTS["transformer_ratio_1221"].tokens(2) == ["env.events.faults.params.ratios=(1.0,2.0,2.0,1.0)"]
    for spec in AGENTS.values():
        if spec.stage1 is not None:
            assert 1 in AGENTS[spec.stage1].stages
            assert AGENTS[spec.stage1].network == spec.network  # else its weights would not fit


@pytest.mark.parametrize("robot", ROBOTS)
def test_every_agent_of_every_stage_is_registered_for_every_robot(robot):
    for stage in (1, 2):
        task = f"UMC-{robot}-Stage{stage}"
        for name, spec in AGENTS.items():
            trains = stage in spec.stages and (name != "mt_ftc" or robot == "Solo8")
            assert (entry_point(name) in gym.spec(task).kwargs) == trains
            if not trains or name == "mt_ftc":  # tests/tasks/test_mt_ftc.py
                continue
            cfg = agent_cfg(robot, name, stage)
            unaware = name.startswith("nm_") or name == "body_transformer"
            assert cfg.experiment_name == f"umc_{robot.lower()}_{name}_stage{stage}"
            assert tuple(cfg.actor.joint_names) == tuple(cfg.critic.joint_names) == ROBOTS[robot]
            assert cfg.actor.joint_start == JOINT_COLUMNS[robot]
            assert cfg.actor.mask_value == spec.mask_value
            assert cfg.critic.distribution_cfg is None
            actor_groups = ["policy"] if unaware else ["policy", "joint_mask", "fault_flag"]
            assert cfg.obs_groups == {"actor": actor_groups, "critic": ["critic"]}
            # a baseline trains as long as both stages
            assert cfg.max_iterations == (5000 if unaware or name.endswith("_curriculum") else 2500)
            assert cfg is not agent_cfg(robot, name, stage)  # a cfg that is changed must not change the next


@pytest.mark.parametrize(
    ("agent", "parameters"),
    [
        ("transformer", 368_804),  # within 1 % of the paper's 366,164
        ("mlp", 345_100),  # the paper's
        ("nm_mlp", 345_100 - 3 * 256),  # without the flag's three inputs
        ("nm_transformer", 368_804 - 3 * 120),
    ],
)
def test_sizes(tmp_path, agent, parameters):
    runner = build_runner(tmp_path, agent)
    assert sum(weight.numel() for weight in runner.alg.get_policy().core.parameters()) == parameters


@pytest.mark.parametrize(
    ("robot", "agent"),
    [
        *(("A1", name) for name, spec in AGENTS.items() if name not in CHANGES_ONLY_THE_ENV and not spec.robots),
        *((robot, name) for robot in ("Go2", "G1", "H1", "Solo8") for name in ("mlp", "nm_mlp", "body_transformer")),
    ],
)
def test_every_network_learns(tmp_path, robot, agent):
    runner = build_runner(tmp_path, agent, robot)
    start = {name: value.clone() for name, value in runner.alg.get_policy().state_dict().items()}
    runner.train(2)
    end = runner.alg.get_policy().state_dict()
    assert all(torch.isfinite(weight).all() for weight in end.values())
    assert not [name for name, weight in start.items() if name.endswith("weight") and torch.equal(weight, end[name])]
    # baselines read dead joints: they have no mask
    columns = slice(JOINT_COLUMNS[robot], JOINT_COLUMNS[robot] + 3 * len(ROBOTS[robot]))
    groups = runner.env.get_observations()
    changed = groups["policy"].clone()
    changed[:, columns].masked_fill_(groups["joint_mask"].repeat(1, 3).bool(), 3.0)
    reads_dead_joints = not torch.equal(mean_action(runner, policy=changed), mean_action(runner))
    assert reads_dead_joints == (agent.startswith("nm_") or agent == "body_transformer")


@pytest.mark.parametrize("ablation", ["transformer_mask_100", "transformer_ratio_1011"])
def test_an_ablation_takes_the_stage_1_of_the_agent_that_it_varies(tmp_path, ablation):
    first = build_runner(tmp_path / "one", "transformer")
    path = first.train(1)
    second = build_runner(tmp_path / "two", ablation, torch_seed=8)
    load_stage1_weights(second, path, "a1", AGENTS[ablation].network)
    weights, given = second.alg.get_policy().core.state_dict(), first.alg.get_policy().core.state_dict()
    assert all(torch.equal(weight, given[name]) for name, weight in weights.items() if not name.startswith("context."))


@pytest.mark.parametrize("agent", ["mlp", "transformer_small32"])
def test_stage_2_begins_with_a_flag_that_does_nothing_and_learns_what_it_does(tmp_path, agent):
    first, second = build_runner(tmp_path / "one", agent), build_runner(tmp_path / "two", agent, torch_seed=8)
    path = first.train(1)
    seen = first.env.get_observations()
    raised, lowered = (torch.full_like(seen["fault_flag"], value) for value in (1.0, -1.0))
    healthy = {"joint_mask": torch.zeros_like(seen["joint_mask"])}
    walk = mean_action(first, **healthy, fault_flag=lowered)
    assert (mean_action(first, **healthy, fault_flag=raised) - walk).abs().max() > 1e-3
    load_stage1_weights(second, path, "a1", AGENTS[agent].network)
    for flag in (lowered, raised):
        assert torch.allclose(mean_action(second, **healthy, fault_flag=flag), walk, atol=1e-5)
    second.train(1)
    learnt = mean_action(second, **healthy, fault_flag=lowered) - mean_action(second, **healthy, fault_flag=raised)
    assert learnt.abs().max() > 1e-5


def test_a_policy_of_stage_2_keeps_what_it_has_learnt_of_the_flag(tmp_path):
    path = build_runner(tmp_path / "one", "mlp").train(1)
    data = read_checkpoint(path)
    data["infos"]["umc"] |= {"stage": 2, "task": "UMC-A1-Stage2"}
    write_checkpoint(path, data)
    second = build_runner(tmp_path / "two", "mlp", torch_seed=8)
    load_stage1_weights(second, path, "a1", "mlp")
    raised = second.env.get_observations()["fault_flag"]
    assert (mean_action(second, fault_flag=raised) - mean_action(second, fault_flag=-raised)).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("name", "task", "agent"),
    [
        ("mlp", "UMC-G1-Stage2", "mlp"),
        ("transformer_small32", "UMC-A1-Stage1", "transformer_small32"),
        ("rsl_rl_body_transformer_cfg_entry_point", "UMC-A1-Stage1", "body_transformer"),
        ("rsl_rl_cfg_entry_point", "UMC-A1-Stage2", "transformer"),
    ],
)
def test_short_and_long_names(name, task, agent):
    assert checked_agent(name, task) == (entry_point(agent), AGENTS[agent])
