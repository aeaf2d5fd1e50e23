# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A detector is measured in plain MuJoCo as it is in Isaac Lab: by true faults, on the joints that have them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import umc.tasks  # noqa: F401 - registers them
from fresh_policy import write_fresh
from isaaclab_tasks.utils import load_cfg_from_registry
from umc.deploy.detector_runner import DetectorRunner
from umc.deploy.export import export_checkpoint
from umc.deploy.policy_runner import PolicyRunner
from umc.detection import SENSOR_KINDS, Detector, DetectorCfg, DetectorFile
from umc.diagnosis.faults import KindRange, only, random_settings
from umc.faults import FaultState
from umc.models import JointLayout
from umc.robots import A1_JOINTS
from umc.sim2sim import diagnosis
from umc.sim2sim.conditions import NOISY, SensorNoise
from umc.sim2sim.diagnosis import DiagnosisSimulation, diagnosis_rollout, record
from umc.utils.errors import UmcError

STEPS, ROBOTS = 40, 10
"""Two groups of robots: eight in their first episode, two in their second."""

KINDS = [KindRange("dead"), KindRange("effort", (0.01, 0.02)), KindRange("delayed", (2.0, 4.0))]


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
    cfg = diagnosis_rollout(policy, ROBOTS / 3.0, only(kinds), 5)
    assert len(cfg.env) == ROBOTS
    return replace(cfg, steps=STEPS, random=random_settings(only(kinds), 5, STEPS, 12), oracle=oracle, push=push)


def plans(recording, cfg):
    """Fault state of each robot at the steps that were recorded of it."""
    source = DiagnosisSimulation(cfg).simulation.source
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
    weak, late = (recording.label[..., 1] == 1 + recording.kinds[1].index(kind) for kind in ("effort", "delayed"))
    assert 0.009 < recording.severity[..., 1][weak].min() <= recording.severity[..., 1][weak].max() < 0.021
    # a late command acts at once, unless the robot falls in this step; a weak motor where more is demanded
    assert recording.hinders[late].mean() > 0.9
    assert 0.5 < recording.hinders[weak].mean() < 1.0
    assert not recording.hinders[recording.label[..., 1] == 0].any()
    assert recording.reported[3:STEPS].all()


def test_what_the_detectors_predict_is_recorded_and_a_dead_joint_sends_nothing(policy, monkeypatch):
    seen, call = [], DetectorRunner.__call__

    def look(self, obs):
        call(self, obs)
        seen.append((obs.copy(), *self.probabilities))

    monkeypatch.setattr(DetectorRunner, "__call__", look)
    recording = record(rollout(policy, kinds=[KindRange("dead")]), 1)
    # robots of a group take turns: in the first step all are up
    for start, (_, *predicted) in zip(np.flatnonzero(recording.starts[:, 0])[:8], seen, strict=False):
        for fault, probability in enumerate(predicted):
            np.testing.assert_allclose(recording.faulty[start, 0, :, fault], 1.0 - probability[:, 0], atol=1e-3)
            assert (recording.kind[start, 0, :, fault] == probability[:, 1:].argmax(1) + 1).all()
    dead = recording.label[:, 0, :, 0] == 1 + SENSOR_KINDS.index("dead")
    assert dead.any()
    signals = np.array([obs for obs, *_ in seen])[:, 12:].reshape(len(seen), 3, 12)
    assert (signals == 0.0).all(1).sum() >= dead.sum()


@pytest.mark.parametrize("oracle", [False, True])
def test_the_policy_is_told_by_the_detector_or_by_the_simulator(policy, monkeypatch, oracle):
    masks, infer = [], PolicyRunner._infer

    def look(self, signals):
        masks.append(signals["joint_mask"].sum())
        return infer(self, signals)

    monkeypatch.setattr(PolicyRunner, "_infer", look)
    record(rollout(policy, oracle, kinds=[KindRange("dead")]), 1)
    # eight robots take turns; after three steps the detector reports all of their joints
    assert (max(masks) <= 4.0) if oracle else (min(masks[32:64]) == 12.0)


def test_sensors_are_as_noisy_as_in_the_task(policy, monkeypatch):
    seen, call = [], PolicyRunner.__call__

    def look(self, *signals, **known):
        seen.append([np.asarray(signal, dtype=float) for signal in signals[:4]])
        return call(self, *signals, **known)

    monkeypatch.setattr(PolicyRunner, "__call__", look)
    cfg = replace(rollout(policy, kinds=[KindRange("delayed", (2.0, 4.0))]), steps=1)
    assert cfg.noise
    exact, noisy, again = [], [], []
    for signals, noise in ((exact, False), (noisy, True), (again, True)):
        seen.clear()
        record(replace(cfg, noise=noise), 1)
        signals[:] = map(np.array, zip(*seen, strict=True))
    for true, wrong, other, largest in zip(exact, noisy, again, (0.01, 1.5, 0.2, 0.05), strict=True):
        off = np.abs(wrong - true)
        assert 0.8 * largest < off.max() <= largest * (1.0 + 1e-6)
        assert (np.ptp(wrong - true, axis=0) > 0.0).all()  # each robot has its own
        np.testing.assert_array_equal(wrong, other)


def test_a_frozen_sensor_has_no_noise(policy, monkeypatch):
    """Sensors fail after noise has been added: a reading that is held stands still."""
    seen, call = {}, PolicyRunner.__call__

    def look(self, position, *signals, **known):
        seen.setdefault(id(self), []).append(np.array(position))
        return call(self, position, *signals, **known)

    monkeypatch.setattr(PolicyRunner, "__call__", look)
    robots = DiagnosisSimulation(rollout(policy, kinds=[KindRange("frozen")])).run(np.arange(8))
    still = 0
    for columns, readings in zip(robots, map(np.array, seen.values()), strict=True):
        frozen = columns["label"][..., 0] > 0
        held = frozen[1:]  # what is held is the last reading before the onset
        np.testing.assert_array_equal((readings[1:] == readings[:-1])[: len(held)], held)
        still += held.sum()
    assert still > 10


def described(*noises):
    """Observations of a policy whose sensors have these noises."""
    terms = [{"function": function, "noise": noise} for function, noise in zip(NOISY, noises, strict=False)]
    return {"observations": {"policy": terms}}


def test_noise_is_drawn_anew_in_each_step_of_each_robot_by_its_distribution():
    noise = SensorNoise(described({"normal": [5.0, 0.1]}, {"uniform": [1.0, 2.0]}, None))
    one, same, other = noise.draw(5, 3), noise.draw(5, 3), noise.draw(5, 4)
    zeros = [np.zeros(1000)] * 4
    first, second = one(*zeros), one(*zeros)
    for number in (0, 1):
        assert (first[number] != second[number]).all()
        assert (first[number] != other(*zeros)[number]).all()
    assert abs(first[0].mean() - 5.0) < 0.02
    assert abs(first[0].std() - 0.1) < 0.01
    assert 1.0 <= first[1].min() < 1.1
    assert 1.9 < first[1].max() <= 2.0
    assert not first[2].any()
    assert not first[3].any()
    for found, wanted in zip(same(*zeros), first, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("description", "words"),
    [
        ({"observations": {"policy": [{"function": "joint_pos_rel"}]}}, "export the policy again"),
        (described({"other": "ConstantNoiseCfg"}), r"that of joint_pos_rel \(ConstantNoiseCfg\) is another"),
        ({"observations": {"policy": [{"function": "last_action", "noise": {"uniform": [0, 1]}}]}}, "last_action"),
    ],
)
def test_noise_that_is_not_known_is_refused(description, words):
    with pytest.raises(UmcError, match=words):
        SensorNoise(description)


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
