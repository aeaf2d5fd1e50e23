# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The baseline MT-FTC: what it changes in Solo8's task, what it reads and how it learns."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from dummy_robot import DummyRobotEnv, build_runner, mean_action
from tensordict import TensorDict
from umc.evaluation.study import STUDY, load_study
from umc.faults import FAULT_CLASSES
from umc.rl.agents import AGENTS
from umc.rl.checkpoint import interface_of
from umc.robots import SOLO8_JOINTS
from umc.robots.solo8 import POSITION_LIMIT
from umc.tasks.task_cfg import check_groups, resolve_cfgs
from umc.training.plan import SMALL, network_size
from umc.training.recipe import read_recipe
from umc.utils.naming import entry_point

TASK = "UMC-Solo8-Stage2"
COLUMNS = {"orientation": 4, "command": 2, "joint_pos": 8, "joint_vel": 8, "last_action": 8}


def terms(group):
    return [name for name, term in vars(group).items() if hasattr(term, "func")]


def test_it_reads_30_columns_and_the_class_of_the_fault_with_actor_and_critic():
    env_cfg, cfg = resolve_cfgs(TASK, entry_point("mt_ftc"), AGENTS["mt_ftc"].tokens(2))
    assert terms(env_cfg.observations.policy) == list(COLUMNS)
    assert sum(COLUMNS.values()) == 30
    assert cfg.obs_groups == {reader: ["policy", "fault_class"] for reader in ("actor", "critic")}
    assert cfg.actor.joint_start == cfg.critic.joint_start == 6
    assert (cfg.actor.distribution_cfg.init_std, cfg.critic.distribution_cfg) == (1.0, None)
    check_groups(env_cfg, cfg)
    assert env_cfg.observations.policy.command.scale == (2.0, 0.25)
    assert env_cfg.observations.policy.enable_corruption


def test_other_agents_have_the_task_without_it():
    env_cfg, _ = resolve_cfgs(TASK, entry_point("mlp"), [])
    assert terms(env_cfg.observations.policy) == [
        *("base_lin_vel", "base_ang_vel", "projected_gravity", "command"),
        *("joint_pos", "joint_vel", "last_action"),
    ]
    assert env_cfg.observations.fault_class is None


def test_its_env_and_ppo_are_those_of_the_public_code():
    env_cfg, cfg = resolve_cfgs(TASK, entry_point("mt_ftc"), AGENTS["mt_ftc"].tokens(2))
    motors = env_cfg.scene.robot.actuators["legs"]
    assert (motors.stiffness, motors.damping, env_cfg.actions.joint_pos.scale) == (3.0, 0.3, 0.25)
    assert 1.0 / (env_cfg.sim.dt * env_cfg.decimation) == pytest.approx(50.0)
    assert (env_cfg.episode_length_s, env_cfg.scene.num_envs) == (8.0, 4096)
    ranges = env_cfg.commands.base_velocity.ranges
    assert (tuple(ranges.lin_vel_x), tuple(ranges.ang_vel_z)) == ((0.0, 1.0), (-0.5, 0.5))
    faults = env_cfg.events.faults.params
    assert tuple(faults["scenario"]) == ("normal", "normal", "power_loss", "rom")  # 50, 25 and 25 % of the envs
    assert faults["severity"]["rom"] * 2.0 * POSITION_LIMIT == pytest.approx(0.05 * math.pi)
    ppo = cfg.algorithm
    assert (cfg.max_iterations, cfg.num_steps_per_env) == (1000, 24)
    assert (ppo.num_learning_epochs, ppo.num_mini_batches, ppo.learning_rate) == (5, 4, 1.0e-3)
    assert (ppo.schedule, ppo.desired_kl, ppo.entropy_coef) == ("adaptive", 0.01, 0.01)
    assert network_size(AGENTS["mt_ftc"]) == SMALL


def test_its_recipe_of_the_papers_sizes_is_the_public_codes():
    (phase,) = read_recipe("solo8_mt_ftc_paper").phases
    assert (phase.task, phase.agent, phase.num_envs, phase.iterations) == (TASK, "mt_ftc", 4096, 1000)
    assert phase.overrides == ("physics=newton_mjwarp",)


class MtFtcEnv(DummyRobotEnv):
    """What MT-FTC observes of Solo8; the classes take turns, and each has another best action."""

    num_envs = 12

    def __init__(self):
        super().__init__("Solo8")
        generator = torch.Generator().manual_seed(0)
        groups = {"policy": torch.randn(self.num_envs, 30, generator=generator)}
        groups["fault_class"] = torch.eye(len(FAULT_CLASSES))[torch.arange(self.num_envs) % 3]
        self.groups = TensorDict(groups, batch_size=[self.num_envs])
        self.best = torch.tensor([[-0.5], [0.0], [0.5]])[torch.arange(self.num_envs) % 3]

    def step(self, actions):
        groups, _, done, extras = super().step(actions)
        return groups, -(actions - self.best).square().sum(1), done, extras


def test_its_heads_learn_what_each_class_needs(tmp_path):
    def change(cfg):
        cfg.algorithm.entropy_coef, cfg.num_steps_per_env, cfg.actor.distribution_cfg.init_std = 0.0, 16, 0.3

    runner = build_runner(tmp_path, "mt_ftc", "Solo8", env=MtFtcEnv(), change=change)
    sizes = [sum(weight.numel() for weight in one.parameters()) for one in (runner.alg.actor, runner.alg.critic)]
    assert sizes == [35_768 + len(SOLO8_JOINTS), 35_075]
    runner.train(60)
    env = runner.env
    assert (mean_action(runner) - env.best).abs().mean() < 0.15
    other = env.get_observations()["fault_class"].roll(1, 1)
    assert (mean_action(runner, fault_class=other) - mean_action(runner)).abs().mean() > 0.3


def walk(physics):
    """Eight robots on whose second half of each four faults set in; what they observe and do."""
    from isaaclab.envs import ManagerBasedRLEnv
    from umc import mdp

    tokens = [*AGENTS["mt_ftc"].tokens(2), "env.events.faults.params.onset_range=[5,20]"]
    cfg, _ = resolve_cfgs(TASK, None, [f"physics={physics}", *tokens])
    cfg.scene.num_envs, cfg.sim.device, cfg.seed, cfg.terminations.trunk_contact = 8, "cpu", 1, None
    cfg.observations.policy.enable_corruption = False
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    robot, state = env.scene["robot"], mdp.fault_state(env)
    classes, positions = [], []
    for _ in range(60):
        obs, *_ = env.step(torch.randn(8, 8))
        classes.append(obs["fault_class"].argmax(dim=1).tolist())
        positions.append(robot.data.joint_pos.torch.clone())
    ended = torch.stack(positions[25:])
    return {
        "policy": obs["policy"].tolist(),
        "command": env.command_manager.get_command("base_velocity").tolist(),
        "classes": classes,
        "broken": state.has_joint_fault.tolist(),
        "effort": robot.actuators.applied_effort.torch.tolist(),
        "span": (ended.amax(0) - ended.amin(0)).tolist(),
    }


@pytest.mark.engine
def test_its_faults_break_a_leg_of_half_of_the_robots_while_they_walk(run_engine):
    seen = run_engine(walk, physics="ovphysx")
    policy, command = torch.tensor(seen["policy"]), torch.tensor(seen["command"])
    assert policy.shape == (8, 30)
    torch.testing.assert_close(policy[:, :4].norm(dim=1), torch.ones(8))
    torch.testing.assert_close(policy[:, 4:6], command[:, [0, 2]] * torch.tensor([2.0, 0.25]))
    assert seen["classes"][0] == [0] * 8
    assert seen["classes"][-1] == [0, 0, 1, 2] * 2
    broken = torch.tensor(seen["broken"])
    assert broken.sum(dim=1).tolist() == [0, 0, 2, 2] * 2
    assert torch.equal(broken[:, 0::2], broken[:, 1::2])  # hip and knee of a leg
    effort, span = torch.tensor(seen["effort"]), torch.tensor(seen["span"])
    lost, locked = broken & (torch.arange(8) % 4 == 2)[:, None], broken & (torch.arange(8) % 4 == 3)[:, None]
    assert (effort[lost] == 0.0).all()
    assert (effort[~broken] != 0.0).all()
    assert (span[locked] < 0.05 * math.pi + 0.01).all()
    assert (span[lost] > 0.05 * math.pi + 0.01).any()


@pytest.mark.engine
def test_it_is_trained_and_evaluated_with_its_own_gains(tmp_path):
    def run(name, *arguments):
        script = Path(__file__).parents[2] / "scripts" / f"{name}.py"
        command = [sys.executable, str(script), *arguments, "physics=ovphysx"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("train", "--task", TASK, "--agent", "mt_ftc", "--num_envs", "8", "--max_iterations", "1")
    (folder,) = (tmp_path / "logs/rsl_rl/umc_solo8_mt_ftc_stage2").iterdir()
    said = run("evaluate", "--checkpoint", str(folder), "--quick", "--detection", "oracle", "none", "--out", "report")
    repeated = next(line for line in said.splitlines() if line.startswith("as in the training: "))
    wanted = interface_of(AGENTS["mt_ftc"].tokens(2))
    assert repeated == f"as in the training: {' '.join(wanted)}"
    assert len(wanted) == 5
    assert len(load_study(tmp_path / "report" / STUDY).policies) == 2
