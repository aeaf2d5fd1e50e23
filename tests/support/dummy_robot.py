# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A robot's observations without a simulator, and agents that learn on them."""

from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import dummy_training as dummy
import fresh_policy
import torch
import umc.tasks  # noqa: F401 - registers the ids
from isaaclab.utils import to_dict
from isaaclab_rl.rsl_rl.utils import handle_deprecated_rsl_rl_cfg
from isaaclab_tasks.utils import load_cfg_from_registry
from tensordict import TensorDict
from umc.rl.agents import AGENTS
from umc.robots import A1_JOINTS, G1_JOINTS, GO2_JOINTS, H1_JOINTS, SOLO8_JOINTS
from umc.utils.naming import entry_point

ROBOTS = {"A1": A1_JOINTS, "Go2": GO2_JOINTS, "G1": G1_JOINTS, "H1": H1_JOINTS, "Solo8": SOLO8_JOINTS}
CRITIC = {"A1": 64, "Go2": 64, "G1": 50, "H1": 44, "Solo8": 48}
WIDTHS = {robot: {**fresh_policy.WIDTHS[robot.lower()], "critic": critic} for robot, critic in CRITIC.items()}
"""Observation columns of the tasks."""


def term_groups(joints: int) -> dict[str, list[tuple[str, int]]]:
    """Terms of a quadruped's task."""
    body = [("base_lin_vel", 3), ("base_ang_vel", 3), ("projected_gravity", 3), ("command", 3)]
    body += [(name, joints) for name in ("joint_pos", "joint_vel", "last_action")]
    return {
        "policy": body,
        "joint_mask": [("mask", joints)],
        "fault_flag": [("flag", 3)],
        "critic": [*body, ("physics", 4 + joints)],
        "live_faults": [("live", 3 * joints)],
    }


class DummyRobotEnv(dummy.DummyEnv):
    """The observation groups of a robot's task; a third of the joints is masked; rewards actions near 0.5."""

    num_envs = 4

    def __init__(self, robot, device="cpu"):
        super().__init__()
        self.device = device
        self.num_actions = len(ROBOTS[robot])
        self.action_manager = SimpleNamespace(total_action_dim=self.num_actions)
        self.episode_length_buf = self.episode_length_buf.to(device)
        generator = torch.Generator().manual_seed(0)
        groups = {name: torch.randn(self.num_envs, width, generator=generator) for name, width in WIDTHS[robot].items()}
        groups["joint_mask"] = (groups["joint_mask"] > 0.4).float()
        groups["fault_flag"] = torch.ones_like(groups["fault_flag"])
        self.groups = TensorDict(groups, batch_size=[self.num_envs]).to(device)

    def get_observations(self):
        return self.groups


def with_terms(env, robot, **changed) -> Any:
    """Tell what a mirror has to know of a quadruped's env; ``changed`` are groups with other terms than the task's."""
    env.unwrapped, env.scene = env, {"robot": SimpleNamespace(joint_names=ROBOTS[robot])}
    env.observation_manager = dummy.observation_manager(term_groups(len(ROBOTS[robot])) | changed)
    return env


def agent_cfg(robot, agent, stage) -> Any:
    return load_cfg_from_registry(f"UMC-{robot}-Stage{stage}", entry_point(agent))


def mean_action(runner, **groups):
    obs = runner.env.get_observations().clone().update(groups)
    policy = runner.alg.get_policy()
    policy.reset()  # the first step of an episode
    with torch.inference_mode():
        return policy(obs)


def build_runner(folder, agent, robot="A1", env=None, change=lambda _cfg: None, torch_seed=7, device="cpu"):
    """A runner of an agent's last stage on the dummy env; ``change`` may alter the agent cfg."""
    spec = AGENTS[agent]
    cfg = agent_cfg(robot, agent, spec.stages[-1])
    cfg.num_steps_per_env, cfg.algorithm.num_learning_epochs = 4, 1
    change(cfg)
    learns = to_dict(handle_deprecated_rsl_rl_cfg(cfg, version("rsl-rl-lib")))
    says = {"robot": robot.lower(), "model": spec.network, "joint_names": list(ROBOTS[robot])}
    env = env or DummyRobotEnv(robot, device)
    runner = dummy.build(folder, env, learns, torch_seed=torch_seed, device=device, **says)
    del runner.env_counters["fault_episode"]
    return runner
