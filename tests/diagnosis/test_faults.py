# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The task that a detector learns in."""

import pytest
from umc.detection import JOINT_KINDS, SENSOR_KINDS
from umc.diagnosis.walk import FAULTS, add_random_faults
from umc.faults import FaultSchedule, JointLimits
from umc.faults.cfg import faults_cfg
from umc.tasks.task_cfg import resolve_cfgs
from umc.utils.errors import UmcError


def test_every_kind_that_is_told_apart_happens():
    happens = {kind for name in FAULTS for kind in name.split("+")}
    assert happens == {*SENSOR_KINDS, *JOINT_KINDS}


@pytest.mark.parametrize("robot", ["A1", "G1", "H1", "Solo8"])
def test_every_robot_takes_the_faults(robot):
    import torch

    cfg, _ = resolve_cfgs(f"UMC-{robot}-Stage2", None, ["physics=ovphysx"])
    add_random_faults(cfg, seed=3)
    params = {name: value for name, value in cfg.events.faults.params.items() if name != "asset_cfg"}
    joints = list(cfg.scene.robot.joint_ordering)
    limits = JointLimits(*(torch.full((len(joints),), value) for value in (-1.0, 1.0, 20.0, 10.0)))
    schedule = FaultSchedule(joints, faults_cfg(None, params), episode_length=1000, nominal=limits)
    plan = schedule.draw(torch.arange(4000), torch.zeros(4000, dtype=torch.long))
    sick = plan.joints.any(dim=2).any(dim=1)
    assert sick.float().mean().item() == pytest.approx(0.5, abs=0.05)
    assert plan.end[sick].max() > plan.onset[sick].max()  # and they end
    assert cfg.events.push.mode == "interval"


def test_a_task_without_fault_terms_is_refused():
    cfg, _ = resolve_cfgs("UMC-A1-Stage2", None, ["physics=ovphysx"])
    cfg.events.faults = None
    with pytest.raises(UmcError, match="no fault terms; give another --task"):
        add_random_faults(cfg, seed=0)
