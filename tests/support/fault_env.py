# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A1 with faults on a real engine, for scenarios of `run_engine`, and what stands in for an environment before that."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
import umc.tasks  # noqa: F401 - registers the ids
from isaaclab.envs import ManagerBasedRLEnv
from isaaclab.envs import mdp as lab
from isaaclab.managers import RewardTermCfg, TerminationTermCfg
from isaaclab_tasks.utils import resolve_presets
from umc.tasks.a1 import A1Stage2EnvCfg
from umc.terrains import FLAT_GROUND_CFG

SKY = 100.0
"""Height of robots that fall freely, which is weightlessness [m]."""


def a1_cfg(physics: str, num_envs: int, episode: int, faults: dict, seed: int = 3, falls: bool = False) -> Any:
    """A1's Stage 2 on flat ground with other faults; episodes in env steps, which falls may end."""
    torch.set_num_threads(1)
    cfg = resolve_presets(A1Stage2EnvCfg(), [physics, "flat"])
    cfg.scene.terrain = FLAT_GROUND_CFG
    cfg.scene.num_envs, cfg.sim.device, cfg.seed = num_envs, "cpu", seed
    cfg.episode_length_s = episode * cfg.sim.dt * cfg.decimation
    cfg.events.faults.params |= faults
    cfg.rewards = {"alive": RewardTermCfg(func=lab.is_alive, weight=1.0)}
    if not falls:
        cfg.terminations = {"time_out": TerminationTermCfg(func=lab.time_out, time_out=True)}
    cfg.observations.critic = None
    return cfg


def place(env: ManagerBasedRLEnv, env_ids: Any, on_ground: tuple[int, ...] = ()) -> None:
    """Reset event: default state, high above the ground but for some envs."""
    lab.reset_scene_to_default(env, env_ids)
    robot = env.scene["robot"]
    pose = robot.data.default_root_pose.torch.clone()
    pose[:, :3] += env.scene.env_origins
    pose[[env_id for env_id in range(env.num_envs) if env_id not in on_ground], 2] += SKY
    robot.write_root_pose_to_sim_index(root_pose=pose)


class Log:
    """Tensors of each env step, stacked and saved for the tests."""

    def __init__(self) -> None:
        self.steps: dict[str, list[torch.Tensor]] = {}
        self.once: dict[str, Any] = {}
        """Further results."""

    def add(self, **values: torch.Tensor) -> None:
        for name, value in values.items():
            self.steps.setdefault(name, []).append(value.clone())

    def save(self, path: str) -> None:
        torch.save({name: torch.stack(values) for name, values in self.steps.items()} | self.once, path)


def events_with(term: Any) -> Any:
    """Event manager of an environment whose fault term this is."""
    cfg = SimpleNamespace(func=term)
    return SimpleNamespace(active_terms={"interval": ["faults"]}, get_term_cfg=lambda name: cfg)


class UnstartedEnv(SimpleNamespace):
    """As much of an environment as fault terms look at before the simulation starts; its base has no weakrefs."""

    def __init__(self, cfg: Any, joint_names: Sequence[str] = "abcd") -> None:
        scene = {"robot": SimpleNamespace(joint_names=list(joint_names))}
        super().__init__(cfg=cfg, scene=scene, num_envs=2, device="cpu", step_dt=0.02, max_episode_length=1000)
