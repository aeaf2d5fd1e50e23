# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The project of docs/howto_*.md, with a robot, two kinds of faults and a model of its own."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import fresh_policy
import gymnasium as gym
import pytest
import torch
import umc.tasks  # noqa: F401
from dummy_robot import build_runner, mean_action
from fresh_export import export_fresh
from umc.cli.main import main
from umc.evaluation.protocol import protocol_for
from umc.faults import FaultSchedule, FaultState
from umc.faults.kinds import KINDS
from umc.rl.agents import AGENTS, EXTENSION_NETWORKS, AgentSpec
from umc.rl.checkpoint import checkpoint_info, checkpoints_in, read_checkpoint
from umc.rl.policy import build_model, registered_agent
from umc.rl.transfer import fold_flag_into_bias, load_stage1_weights
from umc.robots.builder import build
from umc.sim2sim.robot import robot_mjcf
from umc.tasks.registration import register_agent
from umc.tasks.registry import checked_agent
from umc.tasks.task_cfg import resolve_cfgs
from umc.training.recipe import read_recipe
from umc.training.recipe_runner import check_recipe
from umc.utils.errors import UmcError
from umc.utils.naming import entry_point
from usd_comparison import TOLERANCE, compare, reduced_model

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT = REPOSITORY / "examples" / "my_extension"
WIDTHS = {"policy": 48, "joint_mask": 12, "fault_flag": 3, "critic": 64}


def watch(physics: str) -> dict:
    """Scenario of `test_its_kinds_act_on_its_robot`: the example's own measurement."""
    sys.path.insert(0, str(PROJECT))
    from my_extension.watch import watch

    return watch(physics)


@pytest.fixture
def extension(monkeypatch):
    """Import the example; undo its registrations afterwards."""
    monkeypatch.syspath_prepend(str(PROJECT))
    tables = [AGENTS, EXTENSION_NETWORKS, KINDS, gym.registry]
    kwargs = {task: spec.kwargs for task, spec in gym.registry.items() if task.startswith("UMC-")}
    before = [dict(table) for table in tables], {task: dict(options) for task, options in kwargs.items()}
    import my_extension

    yield my_extension
    for table, content in zip(tables, before[0], strict=True):
        table.clear()
        table.update(content)
    for task, options in kwargs.items():
        options.clear()
        options.update(before[1][task])
    for name in [name for name in sys.modules if name.split(".")[0] == "my_extension"]:
        del sys.modules[name]


@pytest.mark.engine
def test_its_kinds_act_on_its_robot(run_engine):
    measured = run_engine(watch, physics="ovphysx")
    back, off, torque = measured.values()
    assert back[0] < 0.05 < 0.3 < back[1]  # the ratchet holds but for what PhysX lets through
    assert off[0] < 1.0e-4 < 0.05 < off[1]
    assert torque[0] <= 0.75 * 1.001 < 1.0 < torque[1]


@pytest.mark.usefixtures("extension")
def test_its_robot_equals_its_source(tmp_path):
    from my_extension.recipe import BUILD_CFG
    from my_extension.robot import USD

    built = build(BUILD_CFG, tmp_path)
    assert built.read_bytes() == USD.read_bytes()
    assert built.with_suffix(".xml").read_bytes() == USD.with_suffix(".xml").read_bytes()
    worst = compare(USD, reduced_model(BUILD_CFG))
    assert max(worst.values()) < TOLERANCE, worst
    assert len(protocol_for("solo12", name=str(PROJECT / "solo12.yaml")).cells) == 8


@pytest.mark.usefixtures("extension")
@pytest.mark.parametrize("task", ["UMC-Solo12-Stage2", "UMC-A1-Stage2"])
def test_its_agent_masks_dead_joints_of_every_robot(task):
    entry, spec = checked_agent("residual_mlp", task)
    assert spec.stage1 == "residual_mlp"
    assert checked_agent("residual_mlp", task, "skrl")[0] == entry_point("residual_mlp", "skrl")
    agent = registered_agent(task, entry)
    actor, critic = (build_model(agent, WIDTHS, outputs, of) for outputs, of in ((12, "actor"), (1, "critic")))
    sensors, flag = torch.randn(2, 48), -torch.ones(2, 3)
    mask = torch.zeros(2, 12)
    mask[:, 4] = 1.0
    broken = sensors.clone()
    broken[:, [16, 28, 40]] = torch.nan  # position, speed and last action of joint 4
    actions = actor.deterministic(sensors, mask, flag)
    assert torch.equal(actions, actor.deterministic(broken, mask, flag))
    assert not torch.equal(actions, actor.deterministic(sensors, 0 * mask, flag))
    assert not torch.equal(actions, actor.deterministic(sensors, mask, -flag))
    assert critic.deterministic(torch.randn(2, 64)).shape == (2, 1)
    exported = torch.jit.script(actor.as_jit())
    torch.testing.assert_close(exported(sensors, mask, flag), actions)


@pytest.mark.usefixtures("extension")
def test_its_robot_walks_in_mujoco(tmp_path, monkeypatch, capsys):
    from my_extension.robot import USD

    monkeypatch.setitem(fresh_policy.WIDTHS, "solo12", WIDTHS)
    _, files = export_fresh(tmp_path / "exported", "UMC-Solo12-Stage2")
    argv = ["sim2sim", "--policy", str(files.description), "--healthy", "--episodes", "2", "--steps", "20"]
    argv += ["--workers", "1"]
    assert main(argv) == 2
    assert "give its model with --mjcf FILE" in capsys.readouterr().err
    assert main([*argv, "--mjcf", str(USD.with_suffix(".xml"))]) == 0
    assert main([*argv, "--mjcf", str(robot_mjcf("a1"))]) == 2
    assert "a1.xml has other joints than the policy" in capsys.readouterr().err


@pytest.mark.usefixtures("extension")
def test_a_robot_without_an_order_of_joints_has_no_agents(monkeypatch):
    from my_extension.task import ROBOT_AGENTS

    for order in (None, "physx"):
        monkeypatch.setattr(ROBOT_AGENTS.articulation, "joint_ordering", order)
        with pytest.raises(UmcError, match=r"joint_ordering of solo12's cfg is .*; set it to the list"):
            ROBOT_AGENTS.cfg("mlp_stage1")


def stage_2_of_residual_mlp(tmp_path):
    """Its Stage 1 on a dummy env, a Stage 2 that took its weights, and the groups of a healthy robot."""
    first, second = (
        build_runner(tmp_path / name, "residual_mlp", torch_seed=seed) for name, seed in (("one", 7), ("two", 8))
    )
    path = first.train(1)
    load_stage1_weights(second, path, "a1", "residual_mlp")
    mask, flag = (first.env.get_observations()[name] for name in ("joint_mask", "fault_flag"))
    return first, second, [{"joint_mask": 0 * mask, "fault_flag": raised * flag.abs()} for raised in (-1.0, 1.0)]


@pytest.mark.usefixtures("extension")
def test_its_stage_2_begins_with_a_flag_that_does_nothing(tmp_path):
    first, second, (lowered, raised) = stage_2_of_residual_mlp(tmp_path)
    walk = mean_action(first, **lowered)
    assert (mean_action(first, **raised) - walk).abs().max() > 1e-3
    for flag in (lowered, raised):
        assert torch.allclose(mean_action(second, **flag), walk, atol=1e-5)


@pytest.mark.usefixtures("extension")
def test_a_network_that_names_no_flag_layer_keeps_its_weights_and_says_so(tmp_path, monkeypatch):
    from my_extension.model import ResidualMlp

    monkeypatch.setattr(ResidualMlp, "flag_layer", None)
    with pytest.warns(RuntimeWarning, match="ResidualMlp names no flag_layer"):
        first, second, groups = stage_2_of_residual_mlp(tmp_path)
    for flag in groups:
        assert torch.equal(mean_action(second, **flag), mean_action(first, **flag))


@pytest.mark.usefixtures("extension")
def test_a_network_of_ones_own_is_not_folded(tmp_path):
    spec = AgentSpec("nm_residual_mlp", network="nm_residual_mlp", purpose="", stages=(1,))
    register_agent(spec, EXTENSION_NETWORKS["residual_mlp"])
    data = read_checkpoint(build_runner(tmp_path, "residual_mlp").train(1))
    with pytest.raises(UmcError, match="holds the residual_mlp model, which has no baseline"):
        fold_flag_into_bias(data, "file")


@pytest.mark.usefixtures("extension")
def test_the_command_of_the_page_uses_its_kind():
    tokens = re.findall(r"'(env\.[^']*)'", (REPOSITORY / "docs" / "howto_fault.md").read_text())
    env_cfg, _ = resolve_cfgs("UMC-A1-Stage2", None, tokens)
    params = {name: value for name, value in env_cfg.events.faults.params.items() if name != "asset_cfg"}
    kinds = FaultSchedule(["hip", "thigh", "calf", "toe"], **params).kinds
    assert [kind.name for kind in kinds] == ["coarse", "effort"]


@pytest.mark.usefixtures("extension")
def test_a_critic_sees_that_a_ratchet_reduces_the_range():
    state = FaultState(FaultSchedule(["hip", "calf"], scenario="ratchet", num_joints=(2, 2), onset=3), 1)
    state.reset(torch.arange(1))
    for step, reduced in ((1, False), (3, True)):
        state.advance(torch.tensor([step]), torch.zeros(1, 2))
        assert state.range_reduced.all() == reduced


@pytest.mark.usefixtures("extension")
def test_its_robot_has_the_recipe_of_the_page():
    recipe = read_recipe(str(PROJECT / "solo12_mlp.yaml"))
    check_recipe(recipe, ())
    assert [(phase.task, phase.name) for phase in recipe.phases] == [
        ("UMC-Solo12-Stage1", "walk"),
        ("UMC-Solo12-Stage1", "speed"),
        ("UMC-Solo12-Stage2", "faults"),
    ]


def test_names_that_are_taken_are_refused(extension):
    taken = AgentSpec("mlp", network="mine", purpose="")
    with pytest.raises(UmcError, match="an agent named 'mlp' already"):
        register_agent(taken, "somewhere:ELSE")
    with pytest.raises(UmcError, match="a network named 'mlp' already"):
        register_agent(AgentSpec("mine", network="mlp", purpose=""), "somewhere:ELSE")
    assert "mine" not in AGENTS
    register_agent(AGENTS["residual_mlp"], EXTENSION_NETWORKS["residual_mlp"])  # the same one again is fine


@pytest.mark.engine
def test_the_installed_example_is_trained_by_the_script(tmp_path):
    project = tmp_path / "my_extension"
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    # what `pip install -e` leaves behind for Python to find
    install = "from setuptools.build_meta import prepare_metadata_for_build_editable as p; p('.')"
    subprocess.run([sys.executable, "-c", install], cwd=project, check=True, capture_output=True)
    command = [sys.executable, str(REPOSITORY / "scripts" / "train.py"), "--task", "UMC-Solo12-Stage2"]
    command += ["--agent", "residual_mlp", "--num_envs", "4", "--max_iterations", "1", "physics=ovphysx"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(project), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [*command, "agent.actor.width=32", "agent.critic.width=48"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=560,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "logs/rsl_rl/umc_solo12_residual_mlp_stage1").is_dir()  # trained first
    (run,) = (tmp_path / "logs/rsl_rl/umc_solo12_residual_mlp_stage2").iterdir()
    path = checkpoints_in(run)[-1]
    data = read_checkpoint(path)
    info = checkpoint_info(data, path)
    assert (info.robot, info.model, len(info.joint_names)) == ("solo12", "residual_mlp", 12)
    assert data["actor_state_dict"]["core.first.weight"].shape == (32, 48 + 3)
    assert data["critic_state_dict"]["core.last.weight"].shape == (1, 48)  # its own network, not an MLP
