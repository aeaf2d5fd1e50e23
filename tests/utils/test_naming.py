# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Names of robots as task ids and headings spell them."""

import gymnasium as gym
import pytest
from umc.utils.naming import TASK_NAME, display_name, load_tasks, task_parts


@pytest.mark.parametrize(
    ("robot", "name"),
    [
        ("a1", "A1"),
        ("xy", "XY"),  # two characters are capitals
        ("go2", "Go2"),
        ("solo8", "Solo8"),
        ("myDog", "MyDog"),  # what follows the first stays as it is
        ("Isaac-Velocity-Flat-H1-v0", "Isaac-Velocity-Flat-H1-v0"),  # a task of another package stands for its robot
        ("x", "X"),
        ("", ""),
    ],
)
def test_a_robots_name_is_spelled_as_in_its_task_ids(robot, name):
    assert display_name(robot) == name


def test_every_task_id_has_the_name_of_its_robot():
    load_tasks()
    tasks = [task for task in gym.registry if TASK_NAME.fullmatch(task)]
    assert {task_parts(task)[0] for task in tasks} >= {"a1", "g1", "go2", "h1", "solo8"}
    for task in tasks:
        robot, stage = task_parts(task)
        assert task == f"UMC-{display_name(robot)}-Stage{stage}"
