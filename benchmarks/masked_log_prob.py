# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Should the actions of joints with dead sensors count in PPO? Trains both ways on a toy task and compares.

Each joint has to reach a target that depends on the base, and another one while its sensor is dead: without feedback
a joint has to be driven otherwise. In one task dead joints still move and count in the reward, as in scenario 1; in
the other one they are gone, as after a power loss. PPO's log-probability, entropy and KL divergence count either all
joints or living ones only. Usage:

    ./isaaclab.sh -p benchmarks/masked_log_prob.py [--iterations 40] [--seeds 3]
"""

from __future__ import annotations

import argparse
import contextlib
import io
from importlib.metadata import version
from statistics import mean, stdev
from typing import Any, cast

import torch
from common import positive
from isaaclab_rl.rsl_rl import (
    RslRlMLPModelCfg,
    RslRlOnPolicyRunnerCfg,
    RslRlPpoAlgorithmCfg,
    create_rsl_rl_runner,
    handle_deprecated_rsl_rl_cfg,
)
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from torch import Tensor
from torch.distributions import Normal, kl_divergence
from umc.rl.model_cfg import UmcMlpModelCfg
from umc.rl.models import MaskedMlpModel

NUM_JOINTS, BASE, NUM_ENVS, HORIZON = 12, 4, 128, 16
DEAD_FRACTION = 0.33
"""Share of dead sensors: four of twelve joints, the most that the paper's training breaks."""
INIT_STD = 0.5
DEAD_SHIFT = 0.5
"""How much further a joint has to go while its sensor is dead."""


class TargetEnv(VecEnv):
    """Rewards actions near targets of the base; `dead_joints_move` says whether dead joints count in the reward."""

    num_envs, num_actions, max_episode_length, device, cfg = NUM_ENVS, NUM_JOINTS, HORIZON, "cpu", {}

    def __init__(self, dead_joints_move: bool) -> None:
        self.dead_joints_move = dead_joints_move
        self.episode_length_buf = torch.zeros(NUM_ENVS, dtype=torch.long)
        self.weights = torch.randn(BASE, NUM_JOINTS, generator=torch.Generator().manual_seed(0)) / BASE**0.5
        self._draw()

    def _draw(self) -> None:
        self.base = torch.randn(NUM_ENVS, BASE)
        self.mask = (torch.rand(NUM_ENVS, NUM_JOINTS) < DEAD_FRACTION).float()

    def target(self) -> Tensor:
        """Targets (E, J)."""
        return 0.5 * torch.tanh(self.base @ self.weights) + DEAD_SHIFT * self.mask

    def get_observations(self) -> TensorDict:
        """Draw the joints' observations, around 1: what dead ones report is blanked by the model and reads 0."""
        policy = torch.cat([self.base, 1.0 + 0.1 * torch.randn(NUM_ENVS, 3 * NUM_JOINTS)], 1)
        flag = torch.ones(NUM_ENVS, 3)
        groups = {"policy": policy, "critic": policy, "joint_mask": self.mask, "fault_flag": flag}
        return TensorDict(cast(dict[str, Any], groups), batch_size=[NUM_ENVS])

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict]:
        """Reward, then draw the next base and dead sensors."""
        error = (actions - self.target()).square()
        counted = torch.ones_like(self.mask) if self.dead_joints_move else 1.0 - self.mask
        self.episode_length_buf += 1
        done = self.episode_length_buf >= self.max_episode_length
        self.episode_length_buf[done] = 0
        self._draw()
        return self.get_observations(), -(error * counted).sum(1), done.long(), {"time_outs": done.float()}


class LivingJointsModel(MaskedMlpModel):
    """Leaves the actions of dead joints out of log-probability, entropy and KL divergence."""

    living: Tensor

    def forward(self, obs: TensorDict, *args: Any, **options: Any) -> Tensor:
        """Remember who lives."""
        self.living = 1.0 - obs["joint_mask"]
        return super().forward(obs, *args, **options)

    def _normal(self) -> Normal:
        average, std = self.output_distribution_params
        return Normal(average, std)

    def get_output_log_prob(self, outputs: Tensor) -> Tensor:
        """Sum over living joints."""
        return (self._normal().log_prob(outputs) * self.living).sum(-1)

    @property
    def output_entropy(self) -> Tensor:
        """Sum over living joints."""
        return (self._normal().entropy() * self.living).sum(-1)

    def get_kl_divergence(self, old_params: tuple[Tensor, ...], new_params: tuple[Tensor, ...]) -> Tensor:
        """Sum over living joints."""
        old, new = (Normal(average, std) for average, std in (old_params, new_params))
        return (kl_divergence(old, new) * self.living).sum(-1)


def train(dead_joints_move: bool, living_only: bool, iterations: int, seed: int) -> tuple[float, float]:
    """Train once.

    Returns:
        Mean absolute error of the mean action at living and at dead joints.
    """
    torch.manual_seed(seed)
    env = TargetEnv(dead_joints_move)
    joints = [f"joint_{i}" for i in range(NUM_JOINTS)]
    place = {"joint_names": joints, "joint_start": BASE, "hidden_dims": [64, 64]}
    cfg = RslRlOnPolicyRunnerCfg(
        device="cpu",
        seed=seed,
        num_steps_per_env=HORIZON,
        max_iterations=iterations,
        save_interval=10 * iterations,
        experiment_name="masked_log_prob",
        obs_groups={"actor": ["policy", "joint_mask", "fault_flag"], "critic": ["critic"]},
        actor=UmcMlpModelCfg(**place, distribution_cfg=RslRlMLPModelCfg.GaussianDistributionCfg(init_std=INIT_STD)),
        critic=UmcMlpModelCfg(**place),
        algorithm=RslRlPpoAlgorithmCfg(  # as umc.tasks.ppo, but that each step is a task of its own
            gamma=0.0,
            lam=0.95,
            learning_rate=1e-3,
            schedule="adaptive",
            desired_kl=0.01,
            entropy_coef=0.01,
            num_learning_epochs=5,
            num_mini_batches=4,
            clip_param=0.2,
            max_grad_norm=1.0,
            value_loss_coef=1.0,
            use_clipped_value_loss=True,
        ),
    )
    with contextlib.redirect_stdout(io.StringIO()):
        runner = create_rsl_rl_runner(env, handle_deprecated_rsl_rl_cfg(cfg, version("rsl-rl-lib")), log_dir=None)
        if living_only:
            runner.alg.actor.__class__ = LivingJointsModel
        runner.learn(iterations)
    errors = torch.zeros(2)
    counts = torch.zeros(2)
    with torch.no_grad():
        for _ in range(HORIZON):
            off = (runner.alg.actor(env.get_observations()) - env.target()).abs()
            for index, chosen in enumerate((env.mask < 0.5, env.mask > 0.5)):
                errors[index] += off[chosen].sum()
                counts[index] += chosen.sum()
            env._draw()
    return float(errors[0] / counts[0]), float(errors[1] / counts[1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=positive, default=40)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    if args.seeds < 2:
        parser.error("--seeds must be at least 2")
    print(f"{args.iterations} iterations, {args.seeds} seeds: mean and standard deviation of the mean action's error\n")
    print("| joints with dead sensors | PPO counts | error, living joints | error, dead joints |\n|---|---|---:|---:|")
    for dead_joints_move in (True, False):
        for living_only in (False, True):
            runs = [train(dead_joints_move, living_only, args.iterations, seed) for seed in range(args.seeds)]
            cells = " | ".join(f"{mean(part):.3f} ± {stdev(part):.3f}" for part in zip(*runs, strict=True))
            name = "move (scenario 1)" if dead_joints_move else "are gone"
            print(f"| {name} | {'living joints' if living_only else 'all joints'} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
