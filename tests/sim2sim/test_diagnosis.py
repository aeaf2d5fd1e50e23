# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A detector is measured in plain MuJoCo as it is in Isaac Lab: by true faults, on the joints that have them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fresh_policy import write_fresh
from isaaclab_tasks.utils import load_cfg_from_registry
from umc.deploy.detector_runner import DetectorRunner
from umc.deploy.export import export_checkpoint
from umc.detection import SENSOR_KINDS, Detector, DetectorCfg, DetectorFile
from umc.diagnosis.faults import KindRange, only, random_settings
from umc.faults import FaultSchedule, FaultState
from umc.models import JointLayout
from umc.robots import A1_JOINTS
from umc.sim2sim import diagnosis
from umc.sim2sim.diagnosis import diagnosis_rollout, record
from umc.utils.errors import UmcError

STEPS, ROBOTS = 40, 10
"""Two groups of robots: eight in their first episode, two in their second."""

KINDS = [KindRange("dead"), KindRange("locked"), KindRange("power_loss"), KindRange("delayed", (2.0, 4.0))]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """The description of a policy, and of a detector that reports every joint from its third step on."""
    folder = tmp_path_factory.mktemp("exported")
    torch.manual_seed(1)
    detector = Detector(JointLayout.term_major(A1_JOINTS, 48, 12), DetectorCfg()).eval()
    detector.thresholds[:] = torch.tensor([0.0, 0.0, 2.0])
    env_cfg = load_cfg_from_registry("UMC-A1-Stage2", "env_cfg_entry_point")
    file = DetectorFile(detector, "a1", path="detector.pt")
    return export_checkpoint(write_fresh(folder), folder, env_cfg, file).description


def rollout(policy, oracle=False, push=False, kinds=KINDS):
    cfg = diagnosis_rollout(policy, (0.5, 0.0, 0.0), ROBOTS / 3.0, only(kinds), 5, oracle, push)
    assert len(cfg.env) == ROBOTS
    return replace(cfg, steps=STEPS, random=random_settings(only(kinds), 5, STEPS, 12))


def plans(recording, cfg):
    """Fault state of each robot at the steps that were recorded of it."""
    source = FaultSchedule(recording.joint_names, **cfg.random)
    starts = np.flatnonzero(recording.starts[:, 0])
    assert starts[0] == 0
    assert len(starts) == ROBOTS
    for row, (begin, end) in enumerate(zip(starts, [*starts[1:], len(recording.starts)], strict=True)):
        state = FaultState(source, 8)
        state.episode[:] = row // 8 - 1
        state.reset(torch.arange(8))
        yield row % 8, slice(begin, end), state


def test_labels_are_the_faults_that_the_robots_have(policy):
    cfg = rollout(policy)
    recording = record(cfg, 1)
    assert recording.joint_names == A1_JOINTS
    assert recording.kinds[1][-1] == "delayed"
    met = set()
    for env, steps, state in plans(recording, cfg):
        for step in range(steps.stop - steps.start):
            state.advance(torch.full((8,), step), torch.zeros(8, 12))
            for fault, kinds in enumerate(recording.kinds):
                label = recording.label[steps][step, 0, :, fault]
                for number, kind in enumerate(kinds, start=1):
                    assert (label == number).tolist() == state.live_fault(kind).on[env].tolist(), kind
                    met |= {kind} if (label == number).any() else set()
    assert met == {one.kind for one in KINDS}
    # a late command acts at once, unless the robot falls in this step; locked joints only if they are pushed
    late = recording.label[..., 1] == len(recording.kinds[1])
    assert recording.hinders[:-1][late[:-1]].mean() > 0.9
    assert not recording.hinders[recording.label[..., 1] == 0].any()
    assert recording.reported[3:STEPS].all()


def test_dead_joints_send_nothing_and_the_policy_knows_what_the_detector_reports(policy, monkeypatch):
    seen, call = [], DetectorRunner.__call__

    def look(self, obs):
        seen.append(obs.copy())
        call(self, obs)

    monkeypatch.setattr(DetectorRunner, "__call__", look)
    cfg = rollout(policy, kinds=[KindRange("dead")])
    recording = record(cfg, 1)
    dead = recording.label[:, 0, :, 0] == 1 + SENSOR_KINDS.index("dead")
    assert dead.any()
    # robots of a group take turns: in the first step all are up
    first = dead[np.flatnonzero(recording.starts[:, 0])]
    for obs, hidden in zip(seen, first[:8], strict=False):
        assert (obs[12:24][hidden] == 0.0).all()
    hidden = np.array(seen)[:, 12:].reshape(len(seen), 3, 12)
    assert (hidden == 0.0).all(1).sum() >= dead.sum()
    told, found = (record(rollout(policy, oracle), 1).speed for oracle in (True, False))
    assert told.shape != found.shape or (told != found).any()


def test_pushes_change_the_speed_of_the_trunk(policy, monkeypatch):
    monkeypatch.setattr(diagnosis, "PUSH_EVERY", (0.4, 0.4))
    calm, pushed = (record(rollout(policy, push=push), 1).speed[:STEPS, 0].astype(float) for push in (False, True))
    assert (calm[:20] == pushed[:20]).all()
    assert abs(calm[20] - pushed[20]) > 0.02


@pytest.mark.slow
def test_processes_record_what_one_does(policy):
    one, two = (record(rollout(policy), workers) for workers in (1, 2))
    for name in ("starts", "label", "severity", "faulty", "kind", "reported", "hinders", "speed"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_without_a_detector_there_is_nothing_to_measure(tmp_path):
    env_cfg = load_cfg_from_registry("UMC-A1-Stage2", "env_cfg_entry_point")
    alone = export_checkpoint(write_fresh(tmp_path), tmp_path / "exported", env_cfg).description
    with pytest.raises(UmcError, match="has no detector; export the policy again with --detector FILE"):
        rollout(alone)
