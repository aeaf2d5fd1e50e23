# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The joint action of UMC's tasks sets the targets that the robot submits, and nothing else."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from umc import mdp
from umc.mdp.actions import JointTargets

ACTIONS = torch.arange(8.0).reshape(2, 4)


def term(joint_ids) -> tuple[JointTargets, torch.Tensor]:
    """The action of a robot with five joints, and its targets, which are -1 so far."""
    targets = torch.full((2, 5), -1.0)
    # a robot that has nothing but a place for targets: a call of any setter fails
    command = SimpleNamespace(position=SimpleNamespace(torch=targets))
    action = object.__new__(JointTargets)
    action._asset = cast(Any, SimpleNamespace(actuators=SimpleNamespace(target_command=command)))
    action._joint_ids, action._processed_actions = joint_ids, ACTIONS
    return action, targets


@pytest.mark.parametrize("joints", [[0, 1, 2, 3], [4, 0, 2, 1]])
def test_targets_are_set_in_every_physics_step(joints):
    action, targets = term(torch.tensor(joints))
    action.apply_actions()
    targets[:, joints] = 0.0  # a lost command overwrites them
    action.apply_actions()
    assert torch.equal(targets[:, joints], ACTIONS)
    rest = [joint for joint in range(5) if joint not in joints]
    assert (targets[:, rest] == -1.0).all()


def test_tasks_use_it():
    import umc.tasks  # noqa: F401
    from isaaclab_tasks.utils import load_cfg_from_registry

    for robot in ("A1", "H1", "G1", "Solo8"):
        for stage in (1, 2):
            cfg: Any = load_cfg_from_registry(f"UMC-{robot}-Stage{stage}", "env_cfg_entry_point")
            assert isinstance(cfg.actions.joint_pos, mdp.JointTargetsCfg)
            assert cfg.actions.joint_pos.class_type is JointTargets
