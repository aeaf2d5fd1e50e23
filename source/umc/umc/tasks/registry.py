# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Find the task, agent, robot, checkpoint or pretrained policy that a user names; every mistake is one line."""

from __future__ import annotations

import importlib
from pathlib import Path

import gymnasium as gym

from umc.rl.agents import AGENTS, AgentSpec, agent_spec
from umc.rl.checkpoint import checkpoints_in
from umc.rl.pretrained import find_pretrained, read_models
from umc.utils.cli import did_you_mean, unknown
from umc.utils.errors import UmcError, shown
from umc.utils.naming import ENTRY_POINT, LIBRARIES, TASK_NAME, display_name, library_of, load_tasks, task_parts


def task_ids() -> list[str]:
    """Return the ids of all registered UMC tasks."""
    load_tasks()
    return sorted(task for task in gym.registry if TASK_NAME.fullmatch(task))


def task_id(robot: str, stage: int) -> str:
    """Return the id of a robot's task; :class:`UmcError` if there is none."""
    found = [task for task in task_ids() if task_parts(task) == (robot, stage)]
    if not found:
        raise UmcError(f"UMC has no Stage {stage} task of robot {robot}; it has some of {', '.join(robots())}")
    return found[0]


def robots() -> list[str]:
    """Return the names of all robots that UMC has tasks for, in lower case."""
    return sorted({task_parts(task)[0] for task in task_ids()})


def agents_of(task: str, library: str = LIBRARIES[0]) -> dict[str, str]:
    """Return the agents that an RL library trains in a task: entry point by name."""
    matches = [match for name in gym.spec(task).kwargs if (match := ENTRY_POINT.fullmatch(name))]
    return {match[2]: match[0] for match in matches if match[1] == library and match[2] in AGENTS}


ADD_FAULTS = "your own task gets faults by umc.mdp.add_faults (docs/tutorial.md)"
"""What helps somebody whose task is not one of UMC's."""


def checked_task(task: str | None, fix: str = ADD_FAULTS) -> str:
    """Return a registered task's id, perhaps typed with a ``module:`` before it; :class:`UmcError` if there is none.

    ``fix`` is what helps somebody whose task is not one of UMC's.
    """
    known = task_ids()
    if task is None:
        raise UmcError(f"--task is missing; choose one of {', '.join(known)}")
    name = task.split(":")[-1]
    if name in known:
        return name
    other = "" if name.startswith("UMC-") else f"; {fix}"
    raise UmcError(f"unknown task {task};{did_you_mean(name, known)} choose one of {', '.join(known)}{other}")


def checked_task_of_any_package(task: str) -> str:
    """Return the id of a registered task, of UMC, Isaac Lab or any package; :class:`UmcError` if there is none.

    ``package:id`` imports the package, as in gymnasium; one with an entry point ``isaaclab.tasks`` needs no prefix.
    """
    package, _, name = task.rpartition(":")
    known = task_ids()
    try:
        for module in ("isaaclab_tasks", package):
            if module:
                importlib.import_module(module)
    except (ImportError, SyntaxError, ValueError, TypeError) as error:
        raise UmcError(f"--task {task}: cannot import {package} ({shown(str(error))}); correct it") from error
    others = [other for other, spec in gym.registry.items() if "env_cfg_entry_point" in spec.kwargs]
    if name in others:
        return name
    raise UmcError(
        f"unknown task {task};{did_you_mean(name, others)} choose one of {', '.join(known)}, one of Isaac Lab, or "
        "PACKAGE:ID for one that the Python package PACKAGE registers"
    )


def checked_agent(agent: str, task: str, library: str | None = None) -> tuple[str, AgentSpec]:
    """Return the agent entry point of a task, and the agent."""
    own = library_of(agent)
    if library is not None and own not in (None, library):
        raise UmcError(f"agent {agent} is {own}'s, --rl_library is {library}; leave one of the two out")
    agents, kwargs = agents_of(task, library or own or LIBRARIES[0]), gym.spec(task).kwargs
    # Isaac Lab's own name for the default agent stands for one of these
    same = [short for short, name in agents.items() if kwargs[name] == kwargs.get(agent)]
    spec = AGENTS[same[0]] if same else agent_spec(agent)
    if spec is None:
        raise UmcError(unknown("agent", agent, agents))
    robot = task_parts(task)[0]
    if spec.robots and robot not in spec.robots:
        owners = " and ".join(display_name(name) for name in spec.robots)
        raise UmcError(
            f"agent {spec.name} is trained on {owners} only, not on {display_name(robot)}; give another --agent"
        )
    if spec.name not in agents:
        stages = " and ".join(f"Stage {stage}" for stage in spec.stages)
        raise UmcError(
            f"agent {spec.name} is trained in {stages} only; give --task {task[:-1]}{spec.stages[0]} or another --agent"
        )
    return agents[spec.name], spec


def checked_robot(robot: str) -> str:
    """Return the name of a robot that UMC has tasks for, in lower case; :class:`UmcError` if there is none."""
    known = robots()
    if robot.lower() in known:
        return robot.lower()
    raise UmcError(f"unknown robot {robot};{did_you_mean(robot.lower(), known)} choose one of {', '.join(known)}")


def checked_checkpoint(text: str) -> Path:
    """Return the path of a checkpoint, of a run folder its last one; :class:`UmcError` if there is none."""
    if not text:
        raise UmcError("--checkpoint is empty; give the path of a model_<iteration>.pt")
    path = Path(text)
    if path.is_dir():
        files = checkpoints_in(path)
        if not files:
            raise UmcError(f"no model_<iteration>.pt in {path}; give a run folder that has one, or the file itself")
        return files[-1]
    if not path.is_file():
        raise UmcError(f"no checkpoint at {path}; give the path of a model_<iteration>.pt")
    return path


def pretrained_policy(text: str, task: str | None, robot: str | None, agent: str | None) -> tuple[Path, str]:
    """Return the pretrained policy that a command is asked for, and a line that says which it is."""
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
            raise UmcError(unknown("agent", agent, AGENTS))
        # baselines are evaluated in Stage 2 without being trained there
        stage = None if stage is None else min(stage, spec.stages[-1])
    found = find_pretrained(text, robot, None if spec is None else spec.name, stage)
    name, flag = found[0].stem, "robot" if task is None else "task"
    entry = read_models()[name]
    for key, typed, wanted in (("robot", flag, robot), ("agent", "agent", None if spec is None else spec.name)):
        if wanted not in (None, entry[key]):
            raise UmcError(f"{name} is of {key} {entry[key]}; leave out --{typed}, or give another --checkpoint")
    return found
