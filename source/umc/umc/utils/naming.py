# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Names of tasks, agent entry points and run folders."""

from __future__ import annotations

import datetime
import re
from importlib.metadata import entry_points
from pathlib import Path

from umc.utils.errors import UmcError

LIBRARIES = ("rsl_rl", "skrl")
"""RL libraries that train the agents; the first is the default."""

TASK_GROUP = "isaaclab.tasks"
"""Entry points by which Isaac Lab finds the tasks of installed packages."""

TASK_NAME = re.compile(r"UMC-(\w+)-Stage([12])")
"""Gym ids: robot and stage."""

ENTRY_POINT = re.compile(r"(rsl_rl|skrl)_(\w+)_cfg_entry_point")
"""Names under which tasks register agents: RL library and agent."""


def load_tasks() -> None:
    """Register the tasks of installed packages, UMC's among them, as Isaac Lab's own commands do."""
    for package in entry_points(group=TASK_GROUP):
        package.load()


def task_parts(task: str) -> tuple[str, int]:
    """Return robot (lower case) and stage of a task id; raise :class:`UmcError` if it is not a UMC task id."""
    match = TASK_NAME.fullmatch(task)
    if match is None:
        raise UmcError(f"{task} is no UMC task; ids look like UMC-A1-Stage2")
    return match[1].lower(), int(match[2])


def robot_and_stage(task: str) -> tuple[str, int]:
    """Return robot and stage of any task: one of another package stands for a robot of its own, with faults."""
    return task_parts(task) if TASK_NAME.fullmatch(task) else (task, 2)


def display_name(robot: str) -> str:
    """Return the name of a robot as task ids and headings spell it, such as ``A1`` and ``Solo8``."""
    return robot.upper() if len(robot) == 2 else robot[:1].upper() + robot[1:]


def run_stamp() -> str:
    """Return the time now, as names of run folders begin with it."""
    return f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}"


def stage1_task(task: str) -> str:
    """Return the id of the Stage 1 task of the same robot."""
    task_parts(task)
    return task.removesuffix("Stage2").removesuffix("Stage1") + "Stage1"


def entry_point(agent: str, library: str = LIBRARIES[0]) -> str:
    """Return the name under which tasks register an agent, e.g. ``rsl_rl_mlp_cfg_entry_point``."""
    return f"{library}_{agent}_cfg_entry_point"


def library_of(entry: str) -> str | None:
    """Return the RL library of an entry point name; None for other names, such as an agent's short name."""
    match = ENTRY_POINT.fullmatch(entry)
    return match[1] if match else None


def experiment_name(robot: str, agent: str, stage: int) -> str:
    """Return the name of the folder that holds all runs of a robot, agent and stage."""
    return f"umc_{robot}_{agent}_stage{stage}"


def experiment_folder(logs: Path, experiment: str, library: str = LIBRARIES[0]) -> Path:
    """Return the folder of an experiment's runs under ``logs`` for one RL library."""
    return logs / library / experiment
