# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The command line of ``umc train``, and its checks before anything slow is imported."""

from __future__ import annotations

import argparse
import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from umc.rl.agents import AGENTS, AgentSpec
from umc.rl.pretrained import PRETRAINED, find_pretrained, is_pretrained
from umc.utils.cli import Parser, as_flags, at_least_one, check_combinations, check_seed, path, within
from umc.utils.config import merged_overrides, override_key
from umc.utils.errors import UmcError
from umc.utils.naming import LIBRARIES, entry_point, library_of, stage1_task, task_parts
from umc.utils.outputs import require_folder_name, require_writable

if TYPE_CHECKING:
    from umc.rl.distillation import Teacher

DEFAULT_AGENT = next(iter(AGENTS))

LARGEST_RANDOM_SEED = 10_000
"""``--seed -1`` draws up to this number, as Isaac Lab does."""

VIDEO_LENGTH, VIDEO_INTERVAL = 200, 2000
"""Length of a clip and distance from clip to clip [env steps], as Isaac Lab's."""

LONGEST_CLIP = 10_000
"""Most env steps of a clip; it is kept in memory while it is recorded."""

DESCRIPTION = (
    "Train a UMC policy. Stage 2 starts from the newest Stage 1 checkpoint of the same robot and agent, else from the "
    "pretrained one; where there is none, Stage 1 is trained first."
)

EXAMPLES = (
    "--task UMC-G1-Stage2 --quick",
    "--task UMC-A1-Stage2 --agent mlp --num_envs 1024 env.scene.terrain=flat",
    "--recipe a1_mlp_cpu",
    "--task UMC-G1-Stage2 --agent gru --teacher motion.pt --trust",
)

RECIPE_FLAGS = ("restart", "evaluate", "show")
SWEEP_FLAGS = ("jobs", "ray", "ray_address")
"""Flags that mean something with ``--recipe`` or ``--sweep`` only."""

STAGE2_KEYS = ("env.events.faults", "env.events.reset_faults", "agent.experiment_name")
"""Overrides that do not hold for a Stage 1 trained first: it has no faults, and its own folder."""

ONE_FOLDER = "--run_dir is the whole name of one run's folder; leave out"
FROM_PRETRAINED = f"--checkpoint {PRETRAINED} starts from a pretrained policy; leave out"
FROM_SCRATCH = "--quick starts from scratch; leave out --resume and --checkpoint"

CONTRADICTIONS: tuple[tuple[set[str], str], ...] = (
    *(({flag}, f"--{flag} needs --recipe NAME; leave it out, or name a recipe") for flag in RECIPE_FLAGS),
    ({"teacher", "no_pretrained"}, "--teacher replaces Stage 1; leave out --no_pretrained"),
    *(({flag}, f"--{flag} needs --sweep; leave it out, or name a sweep") for flag in SWEEP_FLAGS),
    ({"run_dir", "quick"}, f"{ONE_FOLDER} --quick, or --run_dir"),
    ({"run_dir", "run_name"}, f"{ONE_FOLDER} --run_name, or --run_dir"),
    (
        {"resume", "run_dir", "checkpoint"},
        "--resume continues in the folder of its checkpoint; leave out --run_dir or --checkpoint",
    ),
    ({PRETRAINED, "resume"}, f"{FROM_PRETRAINED} --resume"),
    ({PRETRAINED, "no_pretrained"}, f"{FROM_PRETRAINED} --no_pretrained"),
    ({"quick", "resume"}, FROM_SCRATCH),
    ({"quick", "checkpoint"}, FROM_SCRATCH),
    ({"teacher", "quick"}, "--quick has no teacher; leave out --teacher"),
    ({"video", "quick"}, "--quick films the policy at its end; leave out --video"),
    ({"quick", "distributed"}, "--quick is a matter of one process; start it without torchrun and --distributed"),
)
"""Flags of one training that do not go together, and what the user is told."""

SIZE_KEYS = {"num_envs": "env.scene.num_envs", "max_iterations": "agent.max_iterations", "seed": "agent.seed"}
"""Flags, and the overrides that say the same."""


@dataclasses.dataclass
class TrainRequest:
    """A checked command line."""

    task: str
    robot: str
    stage: int
    agent: str
    """Entry point."""
    spec: AgentSpec
    overrides: list[str]
    """Presets and Hydra overrides, as typed."""
    options: argparse.Namespace
    """All flags, Isaac Lab's launcher flags included."""
    checkpoint: Path | None
    """Checkpoint to start from or to resume."""
    teacher: Teacher | None = None
    """Policy to imitate."""
    engine: str = ""
    """Which engine was chosen and why, where the user named none."""

    @property
    def library(self) -> str:
        """RL library that trains."""
        return library_of(self.agent) or LIBRARIES[0]

    @property
    def all_overrides(self) -> list[str]:
        """Overrides of the agent, and those typed, which win."""
        return merged_overrides(self.spec.tokens(self.stage), self.overrides)

    @property
    def stage1_agent(self) -> str | None:
        """Agent whose Stage 1 weights this run loads; None if it starts from scratch, a checkpoint or a teacher."""
        given = self.checkpoint is not None or self.options.teacher is not None
        return None if given or self.stage == 1 else self.spec.stage1

    def flags(self, agent: str) -> list[str]:
        """Return the flags that a child process which trains ``agent`` takes over."""
        names = ["num_envs", "seed", "device", "run_name", "deterministic", "distributed"]
        names += [] if self.options.resume else ["max_iterations"]  # the rest of a run has the run's own
        return as_flags(agent=agent, logs=self.options.logs, **{name: getattr(self.options, name) for name in names})

    def stage1_arguments(self) -> list[str]:
        """Return the arguments of a training of the Stage 1 that this run starts from, or of the rest of it."""
        assert self.stage1_agent is not None
        flags = self.flags(entry_point(self.stage1_agent, self.library))
        overrides = stage1_overrides(self.overrides)
        if self.options.resume:
            overrides = [token for token in overrides if override_key(token) != SIZE_KEYS["max_iterations"]]
        return ["--task", stage1_task(self.task), *flags, *overrides]


def stage1_overrides(overrides: Sequence[str]) -> list[str]:
    """Return the overrides that also hold for a Stage 1 trained first."""
    return [token for token in overrides if not override_key(token).startswith(STAGE2_KEYS)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``umc train``."""
    add = parser.add_argument_group("what to train").add_argument
    add("--task", help="gym id, e.g. UMC-A1-Stage2")
    add("--agent", default=DEFAULT_AGENT, help="transformer (default), mlp, ... (docs/agents.md), or an entry point")
    add(
        "--rl_library",
        choices=LIBRARIES,
        help="library that trains: rsl_rl (default) or skrl; the networks are the same",
    )
    add("--num_envs", type=int, help="envs simulated at once")
    add("--seed", type=int, help="seed of envs and networks; -1 draws one")
    add("--max_iterations", type=int, help="iterations of the whole run, those before --resume included")
    add("--device", help="cpu, cuda, cuda:N; the first GPU where there is one, else the CPU")
    add("--distributed", action="store_true", help="one of the processes that torchrun starts (docs/distributed.md)")
    add = parser.add_argument_group("where it starts from").add_argument
    add("--checkpoint", help="model_*.pt, run folder or 'pretrained' to start from; with --resume: to resume")
    add(
        "--teacher",
        help="policy to imitate instead of PPO: a TorchScript or ONNX file, a checkpoint of rsl_rl, skrl or UMC, a "
        "folder of umc export, a YAML file that describes one, or package.module:function (docs/distillation.md)",
    )
    add("--trust", action="store_true", help="run the code in the TorchScript file of --teacher")
    add("--no_pretrained", action="store_true", help="train a missing Stage 1 even where one comes with the package")
    add("--resume", action="store_true", help="resume the newest run of this task and agent, in its folder")
    add = parser.add_argument_group("where it goes to").add_argument
    add("--logs", type=path, default=Path("logs"), help="folder of all runs (logs)")
    add("--run_dir", type=path, help="run folder; without it a new one named by date and time, under --logs")
    add("--run_name", default="", help="appended to the name of the run folder")
    add("--video", action="store_true", help="film env 0 while it trains, in videos/train of the run folder")
    add("--video_length", type=int, default=VIDEO_LENGTH, help=f"length of a clip [env steps] ({VIDEO_LENGTH})")
    add("--video_interval", type=int, default=VIDEO_INTERVAL, help=f"from clip to clip [env steps] ({VIDEO_INTERVAL})")
    add = parser.add_argument_group("several trainings by one command").add_argument
    add(
        "--quick",
        action="store_true",
        help="both stages, evaluation and video in minutes: checks the installation, does not train",
    )
    add("--recipe", help="train all phases of a recipe, or resume it; it sets all the rest (docs/recipes.md)")
    add("--restart", action="store_true", help="with --recipe: start again from its first phase")
    add("--evaluate", action="store_true", help="with --recipe: evaluate the policy at the end")
    add("--show", action="store_true", help="with --recipe: print the commands of its phases instead of running them")
    add("--sweep", help="train all runs of a file in config/sweeps: agents x seeds x overrides (docs/distributed.md)")
    add("--jobs", type=int, help="trainings of a sweep at once; one for each GPU or core without it")
    add("--ray", type=int, metavar="WORKERS", help="train a sweep on so many workers of a Ray cluster")
    add("--ray_address", help="address of the cluster; without it one is started on this machine")


def _check_clips(options: argparse.Namespace) -> None:
    within(options.video_length, "--video_length", 1, LONGEST_CLIP)
    if options.video_interval < options.video_length:
        raise UmcError(
            f"--video_interval is {options.video_interval}, shorter than a clip of --video_length "
            f"{options.video_length}; give at least that"
        )
    if not options.video and (options.video_length, options.video_interval) != (VIDEO_LENGTH, VIDEO_INTERVAL):
        raise UmcError("--video_length and --video_interval need --video; add it, or leave them out")


def parse(argv: list[str], writes: bool = True) -> TrainRequest:
    """Check what needs no import of torch; ``plan.add_launcher_options`` completes the request.

    The folder of the run has to be writable unless nothing is written (``writes``).
    """
    from umc.tasks.registry import checked_agent, checked_checkpoint, checked_task  # registers the tasks

    parser = Parser(add_help=False, allow_abbrev=False)
    add_arguments(parser)
    options, overrides = parser.parse_known_args(argv)
    at_least_one(options.num_envs, "--num_envs")
    at_least_one(options.max_iterations, "--max_iterations")
    _check_clips(options)
    if options.seed != -1:
        check_seed(options.seed, ", or -1 for a random one")
    check_combinations(options, CONTRADICTIONS, [PRETRAINED] if is_pretrained(options.checkpoint) else [])
    keys = {override_key(token) for token in overrides}
    for flag, key in SIZE_KEYS.items():
        if getattr(options, flag) is not None and key in keys:
            raise UmcError(f"--{flag} and {key} are both given; leave one out")
    require_folder_name(options.run_name, "--run_name")
    if writes:
        place = "logs" if options.run_dir is None else "run_dir"
        require_writable(getattr(options, place), f"--{place}")
    if options.seed == -1:
        options.seed = random.randint(0, LARGEST_RANDOM_SEED)
    if options.resume and options.run_dir is not None:
        options.checkpoint = str(options.run_dir)
    pretrained = is_pretrained(options.checkpoint)
    given: str | None = options.checkpoint
    checkpoint = None if pretrained or given is None else checked_checkpoint(given)
    task = checked_task(options.task)
    robot, stage = task_parts(task)
    agent, spec = checked_agent(options.agent, task, options.rl_library)
    if options.teacher is not None and library_of(agent) != LIBRARIES[0]:
        raise UmcError(f"--teacher needs --rl_library {LIBRARIES[0]}; leave out --rl_library, or --teacher")
    if pretrained:
        checkpoint, _ = find_pretrained(options.checkpoint, robot, spec.stage1 or spec.name, 1)
    return TrainRequest(task, robot, stage, agent, spec, overrides, options, checkpoint)
