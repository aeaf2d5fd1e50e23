# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The command line of ``scripts/train.py``, and what can be told wrong about it before anything slow is imported."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import random
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NoReturn

from umc.rl.agents import AGENTS, AgentSpec, agent_spec
from umc.rl.checkpoint import checkpoints_in
from umc.rl.pretrained import WORD, find_pretrained, is_pretrained
from umc.utils.console import without_gpu_remark
from umc.utils.errors import UmcError
from umc.utils.naming import ENTRY_POINT, LIBRARIES, TASK_NAME, library_of, task_parts

DEFAULT_AGENT = next(iter(AGENTS))

TASK_GROUP = "isaaclab.tasks"
"""Entry points by which Isaac Lab finds the tasks of installed packages."""

LARGEST_RANDOM_SEED = 10_000
"""``--seed -1`` draws up to this number, as Isaac Lab does."""


RECIPE_FLAGS = ("restart", "evaluate", "show")
"""Flags that mean something with ``--recipe`` only."""


class Parser(argparse.ArgumentParser):
    """Argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Raise what the script prints as one line."""
        raise UmcError(message)


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
    """Checkpoint to start from or to go on with."""

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
    """Add the flags of ``scripts/train.py`` to ``parser``."""
    add = parser.add_argument
    add("--task", help="gym id, e.g. UMC-A1-Stage2")
    add("--agent", default=DEFAULT_AGENT, help="transformer (default), mlp, ... (docs/agents.md), or an entry point")
    add("--rl_library", choices=LIBRARIES, help="who trains: rsl_rl (default) or skrl; the networks are the same")
    add("--num_envs", type=int, help="envs simulated at once")
    add("--seed", type=int, help="seed of envs and networks; -1 draws one")
    add("--max_iterations", type=int, help="iterations of the whole run, those before --resume included")
    add("--device", help="cpu, cuda, cuda:N; the first GPU where there is one, else the CPU")
    add("--checkpoint", help="model_*.pt, run folder or 'pretrained' to start from; with --resume: to go on with")
    add("--no_pretrained", action="store_true", help="train a missing Stage 1 even where one comes with the package")
    add("--resume", action="store_true", help="go on with the newest run of this task and agent, in its folder")
    add("--video", action="store_true", help="record the trained policy at the end (scripts/play.py)")
    add("--run_name", default="", help="appended to the name of the run folder")
    add("--distributed", action="store_true", help="one of the processes that torchrun starts (docs/distributed.md)")
    add("--recipe", help="train all phases of a recipe, or go on with it; it says all the rest (docs/recipes.md)")
    add("--restart", action="store_true", help="with --recipe: forget what is done and start anew")
    add("--evaluate", action="store_true", help="with --recipe: evaluate the policy at the end")
    add("--show", action="store_true", help="with --recipe: print the commands of its phases instead of running them")
    add("--quick", action="store_true", help="both stages, evaluation and video in minutes: proves plumbing only")
    add("--sweep", help="train all runs of a file in config/sweeps: agents x seeds x overrides (docs/distributed.md)")
    add("--jobs", type=int, help="trainings of a sweep at once; one for each GPU without it")
    add("--ray", type=int, metavar="WORKERS", help="train a sweep on so many workers of a Ray cluster")
    add("--ray_address", help="address of the cluster; without it one is started on this machine")
    add("--logs", type=Path, default=Path("logs"), help="folder of all runs (logs)")


def task_ids() -> list[str]:
    """Ids of all registered UMC tasks."""
    import gymnasium as gym

    load_tasks()
    return sorted(task for task in gym.registry if TASK_NAME.fullmatch(task))


def load_tasks() -> None:
    """Register the tasks of UMC and of installed packages, without Warp's banner and its remark about a missing GPU."""
    import warp as wp

    level = wp.config.log_level
    wp.config.log_level = wp.LOG_WARNING
    with without_gpu_remark():
        import umc.tasks  # noqa: F401

        for package in entry_points(group=TASK_GROUP):  # as Isaac Lab's own commands do
            package.load()
    wp.config.log_level = level


def checked_task(task: str | None) -> str:
    """Id of a registered task.

    Args:
        task: What was typed, perhaps with a ``module:`` before it.

    Returns:
        The id.

    Raises:
        UmcError: If there is no such task.
    """
    known = task_ids()
    if task is None:
        raise UmcError(f"--task is missing; choose one of {', '.join(known)}")
    name = task.split(":")[-1]
    if name in known:
        return name
    raise UmcError(f"unknown task {task};{did_you_mean(name, known)} choose one of {', '.join(known)}")


def checked_agent(agent: str, task: str, library: str | None = None) -> tuple[str, AgentSpec]:
    """Agent entry point of a task, and the agent.

    Args:
        agent: Entry point, or short the agent's name.
        task: Gym id.
        library: RL library that trains it; without one the entry point's own, else the default.

    Returns:
        Entry point and agent.

    Raises:
        UmcError: If there is no such agent, it is the other library's, or the task is not one that it is trained in.
    """
    import gymnasium as gym

    own = library_of(agent)
    if library is not None and own not in (None, library):
        raise UmcError(f"agent {agent} is {own}'s, --rl_library is {library}; leave one of the two out")
    library = library or own or LIBRARIES[0]
    kwargs = gym.spec(task).kwargs
    matches = [match for name in kwargs if (match := ENTRY_POINT.fullmatch(name))]
    agents = {match[2]: match[0] for match in matches if match[1] == library and match[2] in AGENTS}
    # Isaac Lab's own name for the default agent stands for one of these
    same = [short for short, name in agents.items() if kwargs[name] == kwargs.get(agent)]
    spec = AGENTS[same[0]] if same else agent_spec(agent)
    if spec is None:
        raise UmcError(f"unknown agent {agent};{did_you_mean(agent, list(agents))} choose one of {', '.join(agents)}")
    if spec.name not in agents:
        stages = " and ".join(f"Stage {stage}" for stage in spec.stages)
        raise UmcError(
            f"agent {spec.name} is trained in {stages} only; give --task {task[:-1]}{spec.stages[0]} or another --agent"
        )
    return agents[spec.name], spec


def did_you_mean(name: str, known: list[str]) -> str:
    """A hint at the closest of ``known``, or an empty string."""
    close = difflib.get_close_matches(name, known, n=1)
    return f" did you mean {close[0]}?" if close else ""


def checked_checkpoint(text: str | None) -> Path | None:
    """Path of a checkpoint file; a run folder stands for its last one.

    Raises:
        UmcError: If there is none.
    """
    if text is None:
        return None
    path = Path(text)
    if path.is_dir():
        files = checkpoints_in(path)
        if not files:
            raise UmcError(f"no model_<iteration>.pt in {path}; give a run folder that has one, or the file itself")
        return files[-1]
    if not path.is_file():
        raise UmcError(f"no checkpoint at {path}; give the path of a model_<iteration>.pt")
    return path


def policy_asked_for(text: str, task: str | None, robot: str | None, agent: str | None) -> tuple[Path, str]:
    """The shipped policy that play.py, evaluate.py and export.py are asked for.

    Args:
        text: ``pretrained`` or ``pretrained:NAME``.
        task: Gym id as typed; says robot and stage.
        robot: Robot as typed.
        agent: Agent as typed; the first that is shipped for the robot without it.

    Returns:
        Its file, and a line that says which it is.

    Raises:
        UmcError: If there is no such task, robot, agent or policy.
    """
    stage, spec = None, None
    if task is not None:
        of_task, stage = task_parts(checked_task(task))
        if robot is not None and robot.lower() != of_task:
            raise UmcError(f"--task {task} is not of robot {robot}; leave one of the two out")
        robot = of_task
    elif robot is not None:
        robot = checked_robot(robot)
    if agent is not None:
        spec = agent_spec(agent)
        if spec is None:
            raise UmcError(
                f"unknown agent {agent};{did_you_mean(agent, list(AGENTS))} choose one of {', '.join(AGENTS)}"
            )
        # baselines are judged in Stage 2 without being trained there
        stage = None if stage is None else min(stage, spec.stages[-1])
    return find_pretrained(text, robot, None if spec is None else spec.name, stage)


def checked_robot(robot: str) -> str:
    """Name of a robot that UMC has tasks for, in lower case.

    Raises:
        UmcError: If there is no such robot.
    """
    robots = sorted({task_parts(task)[0] for task in task_ids()})
    if robot.lower() in robots:
        return robot.lower()
    raise UmcError(f"unknown robot {robot};{did_you_mean(robot.lower(), robots)} choose one of {', '.join(robots)}")


def at_least_one(value: Any, flag: str) -> None:
    """Refuse counts below 1.

    Raises:
        UmcError: If ``value`` is one.
    """
    if value is not None and value < 1:
        raise UmcError(f"{flag} is {value}; it has to be at least 1")


def parse(argv: list[str]) -> TrainRequest:
    """Check a command line as far as that is quick; nothing is simulated, torch is not imported.

    Args:
        argv: Arguments without the script's name.

    Returns:
        The request; its launcher flags are added by :func:`umc.training.task_cfg.add_launcher_options`.

    Raises:
        UmcError: If something is wrong with it.
    """
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
    shipped = is_pretrained(options.checkpoint)
    checkpoint = None if shipped else checked_checkpoint(options.checkpoint)
    if shipped and (options.resume or options.no_pretrained):
        other = "--resume" if options.resume else "--no_pretrained"
        raise UmcError(f"--checkpoint {WORD} starts from a shipped policy; leave out {other}")
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
    if shipped:
        checkpoint, _ = find_pretrained(options.checkpoint, robot, spec.stage1 or spec.name, 1)
    return TrainRequest(task, robot, stage, agent, spec, overrides, options, checkpoint)
