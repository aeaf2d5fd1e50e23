# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The command line of ``scripts/train.py``, and its checks before anything slow is imported."""

from __future__ import annotations

import argparse
import dataclasses
import random
from pathlib import Path

from umc.rl.agents import AGENTS, AgentSpec
from umc.rl.pretrained import PRETRAINED, find_pretrained, is_pretrained
from umc.utils.cli import Parser, at_least_one
from umc.utils.errors import UmcError
from umc.utils.naming import LIBRARIES, library_of, task_parts

DEFAULT_AGENT = next(iter(AGENTS))

LARGEST_RANDOM_SEED = 10_000
"""``--seed -1`` draws up to this number, as Isaac Lab does."""


DESCRIPTION = (
    "Train a UMC policy. Stage 2 starts from the newest Stage 1 checkpoint of the same robot and model; where there is "
    "none, Stage 1 is trained first."
)

EXAMPLES = (
    "--task UMC-G1-Stage2 --quick",
    "--task UMC-A1-Stage2 --agent mlp --num_envs 1024 env.scene.terrain=flat",
    "--recipe a1_mlp_cpu",
)

RECIPE_FLAGS = ("restart", "evaluate", "show")
"""Flags that mean something with ``--recipe`` only."""


@dataclasses.dataclass
class TrainRequest:
    """A checked command line."""

    task: str
    """Gym id."""
    robot: str
    """Robot in lower case."""
    stage: int
    """1 or 2."""
    agent: str
    """Agent entry point."""
    spec: AgentSpec
    """The agent."""
    overrides: list[str]
    """Presets and Hydra overrides, as typed."""
    options: argparse.Namespace
    """All flags, Isaac Lab's launcher flags included."""
    checkpoint: Path | None
    """Checkpoint to start from or to resume."""
    engine: str = ""
    """Which engine was chosen and why, where the user named none."""

    @property
    def model(self) -> str:
        """What checkpoints call the agent's network."""
        return self.spec.network

    @property
    def library(self) -> str:
        """RL library that trains."""
        return library_of(self.agent) or LIBRARIES[0]

    @property
    def logs(self) -> Path:
        """Folder of all runs."""
        return self.options.logs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``umc train``."""
    add = parser.add_argument_group("what to train").add_argument
    add("--task", help="gym id, e.g. UMC-A1-Stage2")
    add("--agent", default=DEFAULT_AGENT, help="transformer (default), mlp, ... (docs/agents.md), or an entry point")
    add("--rl_library", choices=LIBRARIES, help="who trains: rsl_rl (default) or skrl; the networks are the same")
    add("--num_envs", type=int, help="envs simulated at once")
    add("--seed", type=int, help="seed of envs and networks; -1 draws one")
    add("--max_iterations", type=int, help="iterations of the whole run, those before --resume included")
    add("--device", help="cpu, cuda, cuda:N; the first GPU where there is one, else the CPU")
    add("--distributed", action="store_true", help="one of the processes that torchrun starts (docs/distributed.md)")
    add = parser.add_argument_group("where it starts from").add_argument
    add("--checkpoint", help="model_*.pt, run folder or 'pretrained' to start from; with --resume: to go on with")
    add("--no_pretrained", action="store_true", help="train a missing Stage 1 even where one comes with the package")
    add("--resume", action="store_true", help="go on with the newest run of this task and agent, in its folder")
    add = parser.add_argument_group("where it goes to").add_argument
    add("--logs", type=Path, default=Path("logs"), help="folder of all runs (logs)")
    add("--run_dir", type=Path, help="run folder; without it a new one named by date and time, under --logs")
    add("--run_name", default="", help="appended to the name of the run folder")
    add("--video", action="store_true", help="film the trained policy at the end (umc play)")
    add = parser.add_argument_group("several trainings by one command").add_argument
    add("--quick", action="store_true", help="both stages, evaluation and video in minutes: proves plumbing only")
    add("--recipe", help="train all phases of a recipe, or go on with it; it says all the rest (docs/recipes.md)")
    add("--restart", action="store_true", help="with --recipe: forget what is done and start anew")
    add("--evaluate", action="store_true", help="with --recipe: evaluate the policy at the end")
    add("--show", action="store_true", help="with --recipe: print the commands of its phases instead of running them")
    add("--sweep", help="train all runs of a file in config/sweeps: agents x seeds x overrides (docs/distributed.md)")
    add("--jobs", type=int, help="trainings of a sweep at once; one for each GPU without it")
    add("--ray", type=int, metavar="WORKERS", help="train a sweep on so many workers of a Ray cluster")
    add("--ray_address", help="address of the cluster; without it one is started on this machine")


def parse(argv: list[str]) -> TrainRequest:
    """Check what needs no import of torch; ``task_cfg.add_launcher_options`` completes the request."""
    from umc.tasks.registry import checked_agent, checked_checkpoint, checked_task  # registers the tasks

    parser = Parser(add_help=False, allow_abbrev=False)
    add_arguments(parser)
    options, overrides = parser.parse_known_args(argv)
    for flag in RECIPE_FLAGS:
        if getattr(options, flag):
            raise UmcError(f"--{flag} goes with --recipe NAME; leave it out, or name a recipe")
    at_least_one(options.num_envs, "--num_envs")
    at_least_one(options.max_iterations, "--max_iterations")
    if options.seed is not None and options.seed < -1:
        raise UmcError(f"--seed is {options.seed}; it has to be 0 or more, or -1 for a random one")
    if options.seed == -1:
        options.seed = random.randint(0, LARGEST_RANDOM_SEED)
    if options.run_dir is not None and (options.quick or options.run_name):
        other = "--quick" if options.quick else "--run_name"
        raise UmcError(f"--run_dir is the whole name of one run's folder; leave out {other}, or --run_dir")
    if options.resume and options.run_dir is not None:
        if options.checkpoint is not None:
            raise UmcError("--resume continues in the folder of its checkpoint; leave out --run_dir or --checkpoint")
        options.checkpoint = str(options.run_dir)
    pretrained = is_pretrained(options.checkpoint)
    checkpoint = None if pretrained else checked_checkpoint(options.checkpoint)
    if pretrained and (options.resume or options.no_pretrained):
        other = "--resume" if options.resume else "--no_pretrained"
        raise UmcError(f"--checkpoint {PRETRAINED} starts from a pretrained policy; leave out {other}")
    if options.quick and (options.resume or options.checkpoint):
        raise UmcError("--quick starts from nothing; leave out --resume and --checkpoint")
    for flag in ("jobs", "ray", "ray_address"):
        if getattr(options, flag) is not None:
            raise UmcError(f"--{flag} is for several trainings; give --sweep, too")
    if options.quick and options.distributed:
        raise UmcError("--quick is a matter of one process; start it without torchrun and --distributed")
    task = checked_task(options.task)
    robot, stage = task_parts(task)
    agent, spec = checked_agent(options.agent, task, options.rl_library)
    if pretrained:
        checkpoint, _ = find_pretrained(options.checkpoint, robot, spec.stage1 or spec.name, 1)
    return TrainRequest(task, robot, stage, agent, spec, overrides, options, checkpoint)
