# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a PPO update costs A1's agents on a CPU: with the mirror, by rsl_rl's own loss, with an MLP critic, in bfloat16.

The observations are made up and nothing is simulated; networks, mini-batches and optimizer are those of a training.
Bare products are all matrix products of the update's layers, forward and backward, and nothing else. Usage:

    ./isaaclab.sh -p benchmarks/learning.py [--agents mlp transformer_small32 transformer] [--threads 2] [--rounds 3]
    ./isaaclab.sh -p benchmarks/learning.py --variants plain mirror --profile   # what the rest of the time goes into
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
import umc.tasks  # noqa: F401 - registers the ids
from common import positive
from isaaclab.utils import to_dict
from isaaclab_rl.rsl_rl.utils import check_rsl_rl_version, handle_deprecated_rsl_rl_cfg
from isaaclab_tasks.utils import load_cfg_from_registry
from models import matrix_products
from ratios import add_json_flag, save, spread
from rsl_rl.env import VecEnv
from rsl_rl.extensions import Symmetry
from tensordict import TensorDict
from torch import Tensor, nn
from umc.models import MaskedTransformer
from umc.rl.critics import use_mlp_critic
from umc.rl.runner import UmcRunner
from umc.robots import A1_JOINTS
from umc.utils.matmul import matmul_backend, onednn_matmul
from umc.utils.naming import entry_point

NUM_ENVS = 256
"""As in the CPU's recipes."""
STEPS, EPOCHS = 24, 3

BODY = [("base_lin_vel", 3), ("base_ang_vel", 3), ("projected_gravity", 3), ("command", 3)]
BODY += [(name, len(A1_JOINTS)) for name in ("joint_pos", "joint_vel", "last_action")]
TERMS = {
    "policy": BODY,
    "joint_mask": [("mask", len(A1_JOINTS))],
    "fault_flag": [("flag", 3)],
    "critic": [*BODY, ("physics", 4 + len(A1_JOINTS))],
}
"""A1's observation terms and their widths, by group."""

VARIANTS = {
    "plain": {},
    "mirror": {"mirror": True},
    "mirror, rsl_rl's loss": {"mirror": True, "own": True},
    "mirror, MLP critic": {"mirror": True, "mlp_critic": True},
    "mirror, bfloat16": {"mirror": True},
}
"""What is compared, each with the first. Bare products are float32's for all."""


PROFILE_ROWS = 25
"""Operations that a profile names."""


class MadeUpEnv(VecEnv):
    """Random observations of A1's task."""

    num_actions, max_episode_length, device, cfg = len(A1_JOINTS), 1000, "cpu", {}

    def __init__(self, num_envs: int = NUM_ENVS) -> None:
        self.num_envs = num_envs
        self.unwrapped: Any = self
        self.scene = {"robot": SimpleNamespace(joint_names=A1_JOINTS)}
        self.observation_manager = SimpleNamespace(
            active_terms={group: [name for name, _ in terms] for group, terms in TERMS.items()},
            group_obs_term_dim={group: [(width,) for _, width in terms] for group, terms in TERMS.items()},
        )
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)

    def get_observations(self) -> TensorDict:
        """Draw observations: a third of the joints is masked."""
        groups: dict[str, Any] = {
            group: torch.randn(self.num_envs, sum(width for _, width in terms)) for group, terms in TERMS.items()
        }
        groups["joint_mask"] = (groups["joint_mask"] > 0.43).float()  # a third of the normal distribution
        groups["fault_flag"] = groups["fault_flag"].sign()
        return TensorDict(groups, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict]:
        """Draw the next ones, and a reward."""
        never = torch.zeros(self.num_envs)
        return self.get_observations(), -actions.square().sum(1), never.long(), {"time_outs": never}


def make_runner(
    agent: str, mirror: bool = False, own: bool = False, mlp_critic: bool = False, num_envs: int = NUM_ENVS
) -> UmcRunner:
    """Make the runner of an agent of A1's Stage 2; `own` takes rsl_rl's own mirror loss."""
    with contextlib.redirect_stdout(None):
        cfg: Any = load_cfg_from_registry("UMC-A1-Stage2", entry_point(agent))
        cfg.num_steps_per_env, cfg.algorithm.num_learning_epochs, cfg.device = STEPS, EPOCHS, "cpu"
        cfg.mirror, cfg.mlp_critic = mirror, mlp_critic
        use_mlp_critic(cfg)
        cfg = handle_deprecated_rsl_rl_cfg(cfg, check_rsl_rl_version())
        runner = UmcRunner(MadeUpEnv(num_envs), to_dict(cfg))
    if own:
        ours = runner.alg.symmetry
        runner.alg.symmetry = Symmetry(ours.env, ours.data_augmentation_func, True, True, ours.mirror_loss_coeff)
    return runner


def update_time(runner: UmcRunner) -> float:
    """Fill the storage, then return how long one update takes [s]."""
    obs = runner.env.get_observations()
    with torch.inference_mode():
        for _ in range(STEPS):
            obs, rewards, dones, extras = runner.env.step(runner.alg.act(obs))
            runner.alg.process_env_step(obs, rewards, dones, extras)
        runner.alg.compute_returns(obs)
    return elapsed(runner.alg.update)


def elapsed(step: Callable[[], object]) -> float:
    """Return the processor time of a step per thread [s]: on a busy machine the wall time means nothing."""
    start = time.process_time()
    step()
    return (time.process_time() - start) / torch.get_num_threads()


def products(core: nn.Module, batch: int) -> Iterator[tuple[Tensor, Tensor, bool]]:
    """Yield the operands of all matrix products of a forward pass, and whether the left one needs a gradient."""
    if isinstance(core, MaskedTransformer):
        for left, right in matrix_products(core, batch, "cpu"):
            yield left, right, left.shape[-1] not in (3, core.context_dim)
        return
    for name, layer in core.named_modules():
        if isinstance(layer, nn.Linear):
            yield torch.randn(batch, layer.in_features), layer.weight.detach().t(), name != "layers.0"


def product_step(runner: UmcRunner, augmented: int) -> Callable[[], None]:
    """Make a step of the bare products of one mini-batch; each sample is used `augmented` times."""
    batch = augmented * NUM_ENVS * STEPS // runner.alg.num_mini_batches
    cores = runner.alg.actor.core, runner.alg.critic.core
    tasks = []
    for left, right, needs_gradient in (one for core in cores for one in products(core, batch)):
        result, d_right = left @ right, torch.empty_like(left.mT @ (left @ right))
        tasks.append((left, right, result, torch.empty_like(left) if needs_gradient else None, d_right))

    def step() -> None:
        for left, right, result, d_left, d_right in tasks:
            torch.matmul(left, right, out=result)
            if d_left is not None:
                torch.matmul(result, right.mT, out=d_left)
            torch.matmul(left.mT, result, out=d_right)

    return step


def print_profile(runner: UmcRunner) -> None:
    """Print which operations an update spends its time in."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        update_time(runner)
    print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=PROFILE_ROWS), flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", nargs="+", default=["mlp", "transformer_small32", "transformer"])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--threads", type=positive, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--profile", action="store_true", help="also print which operations the time goes into")
    add_json_flag(parser)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"{NUM_ENVS} envs x {STEPS} steps, {EPOCHS} epochs, {args.threads} threads, {args.rounds} rounds\n")
    print("| agent | variant | update [s] | x first variant | x bare products: median (min to max) |")
    print("|---|---|---:|---:|---|")
    saved = {}
    with matmul_backend("cpu", None):
        for agent in args.agents:
            runners = {name: make_runner(agent, **VARIANTS[name]) for name in args.variants}
            ratios = print_rows(agent, runners, args.rounds)
            saved |= {f"{agent}, {variant}, {args.threads} thread(s)": found for variant, found in ratios.items()}
            for name, runner in runners.items() if args.profile else ():
                print(f"\n{agent}, {name}")
                print_profile(runner)
    save(args.json, saved)


def print_rows(agent: str, runners: dict[str, UmcRunner], rounds: int) -> dict[str, list[float]]:
    """Print the rows of an agent; return their ratios to the bare products."""
    bare = {name: product_step(runner, 1 + ("mirror" in name)) for name, runner in runners.items()}
    times: dict[str, list[float]] = {name: [] for name in runners}
    ratios: dict[str, list[float]] = {name: [] for name in runners}
    for turn in range(rounds + 1):  # in turns, so that a busy machine slows all alike
        for name, runner in runners.items():
            steps = EPOCHS * runner.alg.num_mini_batches
            before = sum(elapsed(bare[name]) for _ in range(steps))
            rounded = onednn_matmul(rounded=True) if "bfloat16" in name else contextlib.nullcontext()
            with rounded:
                seconds = update_time(runner)
            after = sum(elapsed(bare[name]) for _ in range(steps))
            if turn:  # the first one warms up
                times[name].append(seconds)
                ratios[name].append(2 * seconds / (before + after))
    first = statistics.median(next(iter(times.values())))
    for name, found in times.items():
        seconds = statistics.median(found)
        print(f"| {agent} | {name} | {seconds:.2f} | {seconds / first:.2f} | {spread(ratios[name])} |", flush=True)
    return ratios


if __name__ == "__main__":
    main()
