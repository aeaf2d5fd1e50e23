# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Every agent is there for every robot, is the network that its name says, and learns on a dummy environment."""

from types import SimpleNamespace
from typing import Any

import dummy_training as dummy
import gymnasium as gym
import pytest
import torch
from dummy_robot import ROBOTS, DummyRobotEnv, agent_cfg, mean_action
from isaaclab.utils import to_dict
from isaaclab_rl.rsl_rl.utils import handle_deprecated_rsl_rl_cfg
from rsl_rl.extensions import Symmetry
from umc.rl.agents import AGENTS
from umc.rl.checkpoint import read_checkpoint, write_checkpoint
from umc.rl.symmetry import mirror_of
from umc.rl.transfer import load_stage1_weights
from umc.robots import A1_JOINTS
from umc.tasks.registry import checked_agent
from umc.utils.errors import UmcError
from umc.utils.naming import entry_point

JOINT_COLUMNS = {"A1": 12, "G1": 9, "H1": 9, "Solo8": 12}
"""Column of the first joint position that the actor reads."""

ISSUE = {
    *("transformer", "mlp", "nm_transformer", "nm_mlp", "body_transformer", "transformer_one_stage"),
    *("transformer_curriculum", "transformer_small32", "transformer_small64"),
    *("transformer_ratio_1110", "transformer_ratio_1101", "transformer_ratio_1011", "transformer_ratio_0111"),
    *("transformer_ratio_1221", "transformer_ratio_1331", "transformer_mask_100", "transformer_mask_minus_100"),
}
"""The paper's methods and ablations (its tables of A1, of ratios, masking values and paradigms), and the small ones."""

CHANGES_ONLY_THE_ENV = {name for name in AGENTS if "_ratio_" in name or name.endswith(("_one_stage", "_curriculum"))}
"""Their networks are those of the agent that they vary: on a dummy env nothing would be different."""


def trained(folder, robot, agent, iterations, torch_seed=7):
    """A runner of an agent that has learnt on the dummy env, and the weights that it began with."""
    spec = AGENTS[agent]
    cfg = handle_deprecated_rsl_rl_cfg(agent_cfg(robot, agent, spec.stages[-1]), "5.5.1")
    cfg.num_steps_per_env, cfg.algorithm.num_learning_epochs = 4, 1
    env = DummyRobotEnv(robot)
    says = {"robot": robot.lower(), "model": spec.network, "joint_names": list(ROBOTS[robot])}
    runner = dummy.build(folder, env, to_dict(cfg), torch_seed=torch_seed, **says)
    del runner.env_counters["fault_episode"]
    start = {name: value.clone() for name, value in runner.alg.get_policy().state_dict().items()}
    if iterations:
        runner.train(iterations)
    return runner, start


def test_the_table_holds_every_method_and_ablation_of_the_paper():
    assert AGENTS.keys() >= ISSUE
    assert AGENTS["transformer_ratio_1221"].tokens(2) == ["env.events.faults.params.ratios=(1.0,2.0,2.0,1.0)"]


def test_where_stage_2_of_each_agent_starts():
    assert {name: spec.stage1 for name, spec in AGENTS.items() if 2 in spec.stages} == {
        **{name: name for name in ("transformer", "mlp", "transformer_small32", "transformer_small64")},
        **{f"{network}_{kind}": None for network in ("transformer", "mlp") for kind in ("one_stage", "curriculum")},
        **{
            f"{network}_{kind}": network
            for network in ("transformer", "mlp")
            for kind in (
                *("ratio_1110", "ratio_1101", "ratio_1011", "ratio_0111", "ratio_1221", "ratio_1331"),
                *("mask_100", "mask_minus_100"),
            )
        },
    }
    for spec in AGENTS.values():
        if spec.stage1 is not None:
            assert 1 in AGENTS[spec.stage1].stages
            assert AGENTS[spec.stage1].network == spec.network  # else its weights would not fit


@pytest.mark.parametrize("robot", ROBOTS)
def test_every_agent_of_every_stage_is_registered_for_every_robot(robot):
    for stage in (1, 2):
        task = f"UMC-{robot}-Stage{stage}"
        for name, spec in AGENTS.items():
            assert (entry_point(name) in gym.spec(task).kwargs) == (stage in spec.stages)
            if stage not in spec.stages:
                continue
            cfg = agent_cfg(robot, name, stage)
            assert cfg.experiment_name == f"umc_{robot.lower()}_{name}_stage{stage}"
            assert tuple(cfg.actor.joint_names) == tuple(cfg.critic.joint_names) == ROBOTS[robot]
            assert cfg.actor.joint_start == JOINT_COLUMNS[robot]
            assert cfg.critic.distribution_cfg is None
            assert cfg is not agent_cfg(robot, name, stage)  # a cfg that is changed must not change the next


def test_baselines_train_as_long_as_both_stages_and_read_neither_mask_nor_flag():
    for name in ("nm_mlp", "nm_transformer", "nm_transformer_small32", "body_transformer"):
        cfg = agent_cfg("A1", name, 1)
        assert cfg.obs_groups == {"actor": ["policy"], "critic": ["critic"]}
        assert cfg.max_iterations == 2 * agent_cfg("A1", "mlp", 1).max_iterations == 5000


@pytest.mark.parametrize(
    ("agent", "parameters"),
    [
        ("transformer", 368_804),
        ("mlp", 345_100),  # the paper's
        ("nm_mlp", 345_100 - 3 * 256),  # without the flag's three inputs
        ("nm_transformer", 368_804 - 3 * 120),
    ],
)
def test_sizes(tmp_path, agent, parameters):
    runner, _ = trained(tmp_path, "A1", agent, 0)
    assert sum(weight.numel() for weight in runner.alg.get_policy().core.parameters()) == parameters


@pytest.mark.parametrize(
    ("robot", "agent"), [(robot, name) for robot in ROBOTS for name in AGENTS if name not in CHANGES_ONLY_THE_ENV]
)
def test_every_network_learns(tmp_path, robot, agent):
    runner, start = trained(tmp_path, robot, agent, 2)
    end = runner.alg.get_policy().state_dict()
    assert all(torch.isfinite(weight).all() for weight in end.values())
    unmoved = {name for name, weight in start.items() if torch.equal(weight, end[name])}
    assert not {name for name in unmoved if name.endswith("weight")}
    # baselines read dead joints: they have no mask
    columns = slice(JOINT_COLUMNS[robot], JOINT_COLUMNS[robot] + 3 * len(ROBOTS[robot]))
    dead = runner.env.get_observations()["joint_mask"].repeat(1, 3).bool()
    said = runner.env.get_observations()["policy"].clone()
    said[:, columns] = torch.where(dead, 3.0, said[:, columns])
    listens = not torch.equal(mean_action(runner, policy=said), mean_action(runner))
    assert listens == (agent.startswith("nm_") or agent == "body_transformer")


def test_the_masked_mlp_of_an_ablation_reads_its_mask_value(tmp_path):
    runner, _ = trained(tmp_path, "A1", "mlp_mask_minus_100", 0)
    groups = runner.env.get_observations()
    said = groups["policy"].clone()
    said[:, 12:] = torch.where(groups["joint_mask"].repeat(1, 3).bool(), -100.0, said[:, 12:])
    unmasked = mean_action(runner, policy=said, joint_mask=torch.zeros_like(groups["joint_mask"]))
    assert torch.equal(mean_action(runner), unmasked)


@pytest.mark.parametrize("ablation", ["transformer_mask_100", "transformer_ratio_1011"])
def test_an_ablation_takes_the_stage_1_of_the_agent_that_it_varies(tmp_path, ablation):
    first, _ = trained(tmp_path / "one", "A1", "transformer", 1)
    path = tmp_path / "one" / "model_0.pt"
    second, start = trained(tmp_path / "two", "A1", ablation, 0, torch_seed=8)
    load_stage1_weights(second, path, "a1", AGENTS[ablation].network)
    weights, given = second.alg.get_policy().core.state_dict(), first.alg.get_policy().core.state_dict()
    assert all(torch.equal(weight, given[name]) for name, weight in weights.items() if not name.startswith("context."))
    assert any(not torch.equal(weight, start[f"core.{name}"]) for name, weight in weights.items())


@pytest.mark.parametrize("agent", ["mlp", "transformer_small32"])
def test_stage_2_begins_with_a_flag_that_does_nothing_and_learns_what_it_does(tmp_path, agent):
    first, _ = trained(tmp_path / "one", "A1", agent, 1)
    second, _ = trained(tmp_path / "two", "A1", agent, 0, torch_seed=8)
    seen = first.env.get_observations().clone()
    healthy = torch.full_like(seen["fault_flag"], -1.0)
    groups = {"policy": seen["policy"], "joint_mask": torch.zeros_like(seen["joint_mask"])}
    walk = mean_action(first, **groups, fault_flag=healthy)
    assert (mean_action(first, **groups, fault_flag=-healthy) - walk).abs().max() > 1e-3
    load_stage1_weights(second, tmp_path / "one" / "model_0.pt", "a1", AGENTS[agent].network)
    assert torch.allclose(mean_action(second, **groups, fault_flag=healthy), walk, atol=1e-5)
    assert torch.allclose(mean_action(second, **groups, fault_flag=-healthy), walk, atol=1e-5)
    second.train(1)
    learnt = mean_action(second, **groups, fault_flag=healthy) - mean_action(second, **groups, fault_flag=-healthy)
    assert learnt.abs().max() > 1e-5


def mirrored_run(folder, mirror, mask="mask", iterations=1, mirror_loss=0.0):
    """A1's MLP after some iterations on the dummy env, which has a task's terms."""
    joints = len(A1_JOINTS)
    body = [("base_lin_vel", 3), ("base_ang_vel", 3), ("projected_gravity", 3), ("command", 3)]
    body += [(name, joints) for name in ("joint_pos", "joint_vel", "last_action")]
    critic = [*body, ("physics", 4 + joints)]
    terms = {"policy": body, "joint_mask": [(mask, joints)], "fault_flag": [("flag", 3)], "critic": critic}
    env: Any = DummyRobotEnv("A1")
    env.unwrapped, env.scene = env, {"robot": SimpleNamespace(joint_names=A1_JOINTS)}
    env.observation_manager = SimpleNamespace(
        active_terms={group: [name for name, _ in names] for group, names in terms.items()},
        group_obs_term_dim={group: [(width,) for _, width in names] for group, names in terms.items()},
    )
    cfg = handle_deprecated_rsl_rl_cfg(agent_cfg("A1", "mlp", 2), "5.5.1")
    cfg.num_steps_per_env, cfg.algorithm.num_learning_epochs = 4, 1
    cfg.mirror, cfg.mirror_loss = mirror, mirror_loss
    runner = dummy.build(folder, env, to_dict(cfg), robot="a1", model="mlp", joint_names=list(A1_JOINTS))
    del runner.env_counters["fault_episode"]
    seen = []
    runner.alg.get_policy().core.register_forward_hook(
        lambda module, inputs, output: seen.append(len(output)) if torch.is_grad_enabled() else None
    )
    runner.train(iterations)
    return runner, seen


def asymmetry(runner):
    """Mean squared difference between the action in the mirror and the mirrored action."""
    mirror, seen = mirror_of(runner.env), runner.env.get_observations()
    policy = runner.alg.get_policy()
    with torch.no_grad():
        return (policy(mirror.observations(seen)) - mirror.actions(policy(seen))).square().mean().item()


def test_the_mirror_loss_makes_a_policy_symmetric(tmp_path):
    without, _ = mirrored_run(tmp_path / "without", mirror=True, iterations=10)
    with_it, _ = mirrored_run(tmp_path / "with", mirror=True, iterations=10, mirror_loss=10.0)
    assert asymmetry(with_it) < 0.5 * asymmetry(without)


def test_the_mirror_loss_in_one_pass_is_rsl_rls_own(tmp_path, monkeypatch):
    once, passes = mirrored_run(tmp_path / "once", mirror=True, iterations=3, mirror_loss=2.0)
    monkeypatch.setattr("umc.rl.runner.OnePassSymmetry", Symmetry)
    own, more = mirrored_run(tmp_path / "own", mirror=True, iterations=3, mirror_loss=2.0)
    assert 2 * len(passes) == len(more)
    pairs = zip(once.alg.get_policy().parameters(), own.alg.get_policy().parameters(), strict=True)
    assert all(torch.allclose(weight, other, atol=1e-5) for weight, other in pairs)


def test_a_mirror_loss_below_0_is_refused(tmp_path):
    with pytest.raises(UmcError, match=r"agent\.mirror_loss is -1\.0; it has to be 0 or more"):
        mirrored_run(tmp_path, mirror=True, mirror_loss=-1.0)


def test_mirror_learns_from_every_sample_twice(tmp_path):
    plain, once = mirrored_run(tmp_path / "plain", mirror=False)
    mirrored, twice = mirrored_run(tmp_path / "mirrored", mirror=True)
    assert max(twice) == 2 * max(once)
    weights, others = plain.alg.get_policy().state_dict(), mirrored.alg.get_policy().state_dict()
    assert any(not torch.equal(weight, others[name]) for name, weight in weights.items())


def test_mirror_names_what_it_cannot_mirror_before_it_learns(tmp_path):
    with pytest.raises(UmcError, match="observation height_scan of width 12"):
        mirrored_run(tmp_path, mirror=True, mask="height_scan")


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


@pytest.mark.parametrize(
    ("name", "task", "words"),
    [
        ("foo", "UMC-A1-Stage2", "unknown agent foo; choose one of transformer, mlp, transformer_small32, "),
        ("nm_mpl", "UMC-A1-Stage1", "unknown agent nm_mpl; did you mean nm_mlp? choose one of"),
        ("nm_mlp", "UMC-A1-Stage2", "nm_mlp is trained in Stage 1 only; give --task UMC-A1-Stage1"),
        ("mlp_one_stage", "UMC-G1-Stage1", "mlp_one_stage is trained in Stage 2 only; give --task UMC-G1-Stage2"),
    ],
)
def test_an_agent_that_is_not_there_is_one_clear_error(name, task, words):
    with pytest.raises(UmcError, match=words.replace("?", r"\?")):
        checked_agent(name, task)


def test_a_policy_of_stage_2_keeps_what_it_has_learnt_of_the_flag(tmp_path):
    trained(tmp_path / "one", "A1", "mlp", 1)
    path = tmp_path / "one" / "model_0.pt"
    data = read_checkpoint(path)
    data["infos"]["umc"] |= {"stage": 2, "task": "UMC-A1-Stage2"}
    write_checkpoint(path, data)
    second, _ = trained(tmp_path / "two", "A1", "mlp", 0, torch_seed=8)
    load_stage1_weights(second, path, "a1", "mlp")
    raised = second.env.get_observations()["fault_flag"]
    assert (mean_action(second, fault_flag=raised) - mean_action(second, fault_flag=-raised)).abs().max() > 1e-3
