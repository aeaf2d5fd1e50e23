# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A training without a simulator: `build` makes a runner and `planned` a plan; this file trains until it is killed."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from umc.rl.checkpoint import CheckpointInfo, checkpoints_in
from umc.rl.runner import UmcRunner
from umc.utils.io import remove_leftovers
from umc.utils.process import lock_folder

JOINTS = ["left_thigh_joint", "left_knee_joint", "right_thigh_joint", "right_knee_joint"]
INIT_STD = 0.6
LEARNING_RATE = 3.0e-4


def observation_manager(groups):
    """Of an env, by the terms of its groups and their widths, what mirror images need."""
    return SimpleNamespace(
        active_terms={group: [name for name, _ in terms] for group, terms in groups.items()},
        group_obs_term_dim={group: [(width,) for _, width in terms] for group, terms in groups.items()},
        group_obs_concatenate=dict.fromkeys(groups, True),
    )


class DummyEnv(VecEnv):
    """Rewards actions near 0.5; an episode is one iteration. All chance lies in torch's generator."""

    num_envs, num_actions, max_episode_length, device, cfg = 8, len(JOINTS), 4, "cpu", {}

    def __init__(self, step_s: float = 0.0, on_step=None):
        self.step_s, self.on_step, self.steps = step_s, on_step, 0
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long)
        self.table = torch.randn(self.num_envs, 6, generator=torch.Generator().manual_seed(0))

    def get_observations(self):
        return TensorDict({"policy": self.table, "critic": self.table}, batch_size=[self.num_envs])

    def step(self, actions):
        time.sleep(self.step_s)
        self.steps += 1
        if self.on_step is not None:
            self.on_step(self.steps)
        self.episode_length_buf += 1
        done = self.episode_length_buf >= self.max_episode_length
        self.episode_length_buf[done] = 0
        reward = -(actions - 0.5).square().sum(1)
        return self.get_observations(), reward, done.long(), {"time_outs": done}


def agent(std_type="scalar", save_interval=1000):
    model = {"class_name": "MLPModel", "hidden_dims": [16], "activation": "elu"}
    distribution = {"class_name": "GaussianDistribution", "init_std": INIT_STD, "std_type": std_type}
    return {
        "num_steps_per_env": 4,
        "save_interval": save_interval,
        "obs_groups": {"actor": ["policy"], "critic": ["critic"]},
        "actor": {**model, "distribution_cfg": distribution},
        "critic": dict(model),
        "algorithm": {"class_name": "PPO", "learning_rate": LEARNING_RATE, "num_learning_epochs": 2},
        "stage1_transfer": {"reset_noise": True, "reset_optimizer": True},
    }


def info(**changes):
    fields = {
        "robot": "a1",
        "task": "UMC-A1-Stage1",
        "stage": 1,
        "model": "mlp",
        "joint_names": JOINTS,
        "seed": 7,
        "iteration": 0,
        "umc_version": "0.1.0",
        "agent": "rsl_rl_mlp_cfg_entry_point",
        "experiment": "umc_a1_mlp_stage1",
    }
    return CheckpointInfo(**{**fields, **changes})


def build(folder, env=None, cfg=None, save_every_s=1000.0, torch_seed=7, device="cpu", **changes):
    torch.manual_seed(torch_seed)
    folder = folder and str(folder)
    runner = UmcRunner(env or DummyEnv(), cfg or agent(), folder, device, info(**changes), save_every_s)
    runner.env_counters["fault_episode"] = torch.zeros(DummyEnv.num_envs, dtype=torch.long)
    return runner


def put_checkpoint(folder, name="model_5.pt", record=None, **info):
    """A run folder with a checkpoint, by default of A1's Stage 1 MLP, and a run.json if `record` is given."""
    runner = build(folder, **info)
    runner.current_learning_iteration = int(name.split("_")[1].split(".")[0])
    runner.save(str(folder / name))
    if record is not None:
        (folder / "run.json").write_text(json.dumps(record))
    return folder / name


def train_or_resume(folder, iterations):
    """Train, or resume what is in the folder, as `umc train` does; every iteration is saved."""
    with lock_folder(folder, f"trains in {folder}"):
        remove_leftovers(folder)
        runner = build(folder, DummyEnv(step_s=0.001), save_every_s=0.0)
        if files := checkpoints_in(folder):
            runner.resume(str(files[-1]))
        runner.train(iterations)


def planned(*argv):
    """The plan of a command line of train.py."""
    from umc.training.arguments import parse
    from umc.training.plan import add_launcher_options, add_teacher, make_plan

    request = parse(list(argv))
    add_launcher_options(request, list(argv))
    add_teacher(request)
    return make_plan(request)


if __name__ == "__main__":
    build(Path(sys.argv[1]), DummyEnv(step_s=0.005), save_every_s=0.0).train(100_000)
