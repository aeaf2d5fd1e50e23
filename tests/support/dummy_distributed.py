# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""One of several processes that train without a simulator: `dummy_distributed.py <folder> <what> ...`, started with
torchrun's variables. Each `what` is a training of its own, all by one connection:

`alike`: every env has noise of its own and nothing is averaged over a process's own envs, so that any number of
processes learns the same. `whole`: six iterations. `halves`: three, then three more by a runner that resumes.
`stop`: process 1 gets SIGTERM. `die`: process 1 is killed.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import dummy_training as dummy
import torch
from umc.rl.runner import TrainingInterrupted
from umc.utils.distributed import RankLostError, broadcast_object, catch_lost_ranks, connect, disconnect, ranks_from_env

ENVS = 16
"""Of all processes together."""

ITERATIONS = 3
STEP_OF_THE_END = 9
"""Env step at which process 1 is stopped or killed: iteration 2 of 4 steps each."""


class ShareEnv(dummy.DummyEnv):
    """A process's share of the envs."""

    def __init__(self, rows: slice, on_step=None):
        self.num_envs = rows.stop - rows.start
        super().__init__(on_step=on_step)
        self.table = torch.randn(ENVS, 6, generator=torch.Generator().manual_seed(0))[rows]


def rows_of(ranks) -> slice:
    share = ENVS // ranks.world_size
    return slice(ranks.first_env(share), ranks.first_env(share) + share)


def runner_of(folder: Path, what: str):
    ranks = ranks_from_env()
    rows = rows_of(ranks)
    signum = {"stop": signal.SIGTERM, "die": signal.SIGKILL}.get(what)

    def on_step(now):
        if signum is not None and ranks.rank == 1 and now == STEP_OF_THE_END:
            signal.raise_signal(signum)

    cfg = dummy.agent(save_interval=1)
    if what == "alike":
        cfg["algorithm"] |= {"schedule": "fixed", "num_mini_batches": 1, "optimizer": "sgd", "learning_rate": 0.05}
    runner = dummy.build(folder, ShareEnv(rows, on_step), cfg, torch_seed=ranks.seed(7))
    runner.env_counters["fault_episode"] = torch.arange(ENVS)[rows].clone()
    if what == "alike":
        average_nothing_within_a_process(runner, rows)
    return runner


def average_nothing_within_a_process(runner, rows: slice):
    torch.manual_seed(7)
    for network in (runner.alg.actor, runner.alg.critic):  # weights as in any other number of processes
        for weight in network.parameters():
            if weight.dim() == 2:
                weight.data = torch.randn(weight.shape) / weight.shape[1] ** 0.5
    noise = torch.randn(1000, ENVS, runner.env.num_actions)[:, rows]
    distribution, step = runner.alg.actor.distribution, iter(range(len(noise)))

    def sample():
        learning = torch.is_grad_enabled()  # rsl_rl draws then, too, and throws it away
        return distribution.mean + (0.0 if learning else distribution.std * noise[next(step)])

    distribution.sample = sample
    compute_returns = runner.alg.compute_returns

    def without_normalisation(obs):
        compute_returns(obs)
        storage = runner.alg.storage
        storage.advantages = storage.returns - storage.values

    runner.alg.compute_returns = without_normalisation


def train(folder: Path, what: str):
    """Trains in a folder of that name."""
    runner = runner_of(folder / what, what)
    if what == "halves":
        runner.train(ITERATIONS)
        torch.rand(5)  # a new process has other random numbers
        runner = runner_of(folder / what, what)
        runner.env_counters["fault_episode"] += 100
        runner.resume(str(broadcast_object(folder / what / f"model_{ITERATIONS - 1}.pt")))
        print("goes on:", runner.env_counters["fault_episode"].tolist())
    try:
        with catch_lost_ranks():
            runner.train({"alike": ITERATIONS, "whole": 2 * ITERATIONS, "halves": 2 * ITERATIONS}.get(what, 100))
    except TrainingInterrupted as stop:
        print("stopped:", stop.signum, stop.checkpoint.name)


def main(folder: Path, todo: list[str]) -> int:
    connect(ranks_from_env(), "test")
    try:
        for what in todo:
            train(folder, what)
    except RankLostError as error:
        print(error, file=sys.stderr)
        return 1
    disconnect()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
