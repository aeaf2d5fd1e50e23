# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults act on robots in plain MuJoCo as they do in Isaac Lab: sensors, limits, commands, ledgers."""

import numpy as np
import pytest
import torch
from umc.faults import FaultCases, FaultReplay, FaultSchedule, FaultState, LedgerWriter
from umc.sim2sim.faults import Faults
from umc.sim2sim.robot import JointBounds
from umc.utils.errors import UmcError

NAMES = ("a", "b", "c")
POSE = np.array([0.1, 0.2, 0.3])
ANGLES = np.array([[0.4, 0.5, 0.6]])
SPEEDS = np.array([[1.0, 2.0, 3.0]])
HEALTHY = JointBounds(
    np.array([-0.8, -np.pi / 3, -0.3]), np.array([0.8, np.pi / 3, 0.9]), np.full(3, 25.0), np.full(3, 21.0)
)
"""No window is a round number in single precision."""


def faults_of(scenario, onset=2, envs=(0,), num_envs=1, step_dt=0.02, **severity):
    """Faults of robots whose joint ``b`` breaks."""
    case = {"scenario": scenario, "onset": onset, "num_joints": (1, 1), "joint_names": ["b"], "severity": severity}
    source = FaultCases(NAMES, [{**case, "seed": 3}], num_envs)
    faults = Faults(source, np.array(envs), num_envs, POSE, HEALTHY, step_dt)
    faults.reset(0)
    return faults


def read(faults, steps, angles=lambda step: ANGLES, speeds=lambda step: SPEEDS):
    """Sensor readings at the steps 0 to ``steps``."""
    found = []
    for step in range(steps + 1):
        faults.advance(step, angles(step))
        found.append(faults.sense(angles(step), speeds(step)))
    return found


def test_dead_sensors_are_masked_from_the_onset_on():
    senses = read(faults_of("dead"), 3)
    assert [bool(one.dead.any()) for one in senses] == [False, False, True, True]
    assert senses[2].dead.tolist() == [[False, True, False]]
    assert not senses[2].detected.any()  # a dead sensor alone is no fault of a joint
    broken = read(faults_of("dead+effort", effort=5.0), 2)
    assert [one.detected.tolist() for one in broken[1:]] == [[False], [True]]
    # an exported policy cannot observe another value of a dead sensor
    with pytest.raises(UmcError, match="must report 0"):
        faults_of("dead", dead=0.5)


def test_bias_drift_and_frozen_sensors_change_readings():
    bias = read(faults_of("bias", bias=0.3), 2)
    np.testing.assert_allclose(bias[1].position, ANGLES)
    np.testing.assert_allclose(bias[2].position, ANGLES + np.array([[0.0, 0.3, 0.0]]))
    np.testing.assert_allclose(bias[2].velocity, SPEEDS)
    drift = read(faults_of("drift", drift=0.5), 4)
    np.testing.assert_allclose(drift[4].position - ANGLES, [[0.0, 0.5 * 2 * 0.02, 0.0]], atol=1e-8)
    np.testing.assert_allclose(drift[4].velocity - SPEEDS, [[0.0, 0.5, 0.0]])
    moving = read(faults_of("frozen"), 4, angles=lambda step: ANGLES + step)
    np.testing.assert_allclose(moving[4].position, [[4.4, 1.5, 4.6]])  # b keeps what it read at step 1


def test_the_imu_of_a_robot_drifts_and_dies():
    turning, down = np.array([[0.1, 0.2, 0.3]]), np.array([[0.0, 0.0, -1.0]])
    for kind, severity in (("imu_bias", {"imu_bias": 0.4}), ("imu_dead", {})):
        faults = faults_of(kind, **severity)
        seen = []
        for step in range(4):
            faults.advance(step, ANGLES)
            seen.append(faults.sense_base(turning, down))
        np.testing.assert_array_equal(seen[1], [turning, down])
        if kind == "imu_dead":
            np.testing.assert_array_equal(seen[2], np.zeros((2, 1, 3)))
        else:
            assert np.linalg.norm(seen[2][0] - turning) == pytest.approx(0.4, rel=1e-5)
            np.testing.assert_array_equal(seen[3], [seen[2][0], down])


def test_noise_of_a_member_is_the_same_beside_any_others_and_in_isaac_lab():
    speeds = np.tile(SPEEDS, (4, 1))
    four = faults_of("noise", envs=(0, 1, 2, 3), num_envs=4, noise=0.1)
    every = read(four, 3, lambda _: np.tile(ANGLES, (4, 1)), lambda _: speeds)[3].position
    alone = read(faults_of("noise", envs=(2,), num_envs=4, noise=0.1), 3)[3].position
    np.testing.assert_array_equal(every[2:3], alone)
    assert len(np.unique(every[:, 1])) == 4
    np.testing.assert_array_equal(every[:, 0], ANGLES[0, 0])
    # Isaac Lab: the same member in another env and cell, after any number of resets
    case = {"scenario": "noise", "onset": 2, "num_joints": (1, 1), "joint_names": ["b"], "severity": {"noise": 0.1}}
    cases = FaultCases(NAMES, [{**case, "seed": 8}, {**case, "seed": 3}], 1)
    cases.assign(torch.tensor([1]), torch.tensor([2]))
    state = FaultState(cases, 1)
    for _ in range(3):
        state.reset(torch.tensor([0]))
    state.advance(torch.tensor([3]), torch.zeros(1, 3))
    assert alone[0, 1] - ANGLES[0, 1] == pytest.approx(0.1 * float(state.normal("noise of position")[0, 1]))


def test_limits_follow_and_healthy_figures_stay_to_the_bit():
    faults = faults_of("rom+effort+velocity", onset=1, rom=0.1, effort=8.0, velocity=3.0)
    assert not faults.advance(0, ANGLES)
    assert faults.advance(1, ANGLES)
    (bounds,) = faults.bounds()
    for name in ("lower", "upper", "effort", "velocity"):
        values, before = getattr(bounds, name), getattr(HEALTHY, name)
        assert (values[[0, 2]] == before[[0, 2]]).all()
        assert values[1] != before[1]
    assert bounds.upper[1] - bounds.lower[1] == pytest.approx(0.1 * 2 * np.pi / 3, rel=1e-5)
    assert bounds.lower[1] <= 0.5 <= bounds.upper[1]
    assert (bounds.effort[1], bounds.velocity[1]) == (8.0, 3.0)
    assert not faults.advance(2, ANGLES)


def test_a_motor_that_overheats_is_derated_by_the_torques_it_gave():
    faults = faults_of("derating", onset=1, derating=10.0, step_dt=1.0)
    torque, efforts = np.array([[24.0, 24.0, 24.0]]), []
    for step in range(60):
        faults.advance(step, ANGLES)
        assert faults.update_memory(np.minimum(torque, faults.bounds()[0].effort)) == (step >= 1)
        efforts.append(faults.bounds()[0].effort)
    assert {row[0] for row in efforts} == {row[2] for row in efforts} == {25.0}
    assert efforts[1][1] == 25.0
    assert efforts[-1][1] == pytest.approx(10.0, rel=0.05)
    assert not faults_of("effort", effort=5.0).update_memory(torque)


def sent_and_arrived(faults, steps):
    """Targets that arrive when those sent are the number of the step."""
    arrived = []
    for step in range(steps):
        faults.advance(step, ANGLES)
        arrived.append(faults.deliver(np.full((1, 3), float(step)))[0].tolist())
    return arrived


def test_delayed_and_lost_commands_leave_the_last_that_arrived():
    # the observation of step 2 shows the fault; the target that answers it is the first that fails
    late = sent_and_arrived(faults_of("delayed", delayed=3.0), 7)
    assert [row[1] for row in late] == [0, 1, 1, 1, 1, 2, 3]
    assert [row[0] for row in late] == [0, 1, 2, 3, 4, 5, 6]
    assert [row[1] for row in sent_and_arrived(faults_of("dropped", dropped=1.0), 5)] == [0, 1, 1, 1, 1]
    some = np.array([row[1] for row in sent_and_arrived(faults_of("dropped", dropped=0.5), 60)])
    assert 15 < (some != np.arange(60)).sum() < 45
    assert (some <= np.arange(60)).all()


def test_backlash_acts_in_physics_steps_from_the_onset_on():
    """Two robots, of which the second alone stands for an env with the fault."""
    faults = faults_of("backlash", envs=(2, 0), num_envs=3, backlash=0.4)
    angles, found = np.tile(ANGLES, (2, 1)), []
    for step in range(3):
        faults.advance(step, angles)
        faults.state.live[2] = False
        assert (faults.deliver(angles + 0.5) == angles + 0.5).all()
        transmit = [faults.transmission(robot) for robot in range(2)]
        found.append([one(ANGLES[0] + error, ANGLES[0], SPEEDS[0]) for one in transmit for error in (0.5, 0.1)])
    for position, speed in (*found[1], *found[2][:2]):
        np.testing.assert_allclose(position - ANGLES[0], np.full(3, position[0] - ANGLES[0, 0]))
        np.testing.assert_allclose(speed, 0.0)
    np.testing.assert_allclose(found[2][2][0] - ANGLES[0], [0.5, 0.3, 0.5])
    np.testing.assert_allclose(found[2][3][0] - ANGLES[0], [0.1, 0.0, 0.1])
    np.testing.assert_allclose(found[2][3][1], [0.0, SPEEDS[0, 1], 0.0])
    assert faults_of("dropped", dropped=1.0).transmission(0) is None


def test_a_new_episode_forgets_the_last():
    faults = faults_of("dropped", dropped=1.0, onset=1)
    sent_and_arrived(faults, 5)
    faults.reset(0)
    assert sent_and_arrived(faults, 3)[1][1] == 0.0
    frozen = faults_of("frozen", onset=1)
    read(frozen, 3)
    frozen.reset(0)
    np.testing.assert_allclose(read(frozen, 2, lambda _: ANGLES + 5.0)[2].position, ANGLES + 5.0)


def test_each_episode_has_its_faults_of_the_ledger(tmp_path):
    schedule = FaultSchedule(
        NAMES,
        ratios={"effort": 1.0},
        severity={"effort": {"uniform": [1.0, 9.0]}},
        num_joints=(1, 2),
        onset_range=(1, 5),
    )
    state = FaultState(schedule, 3)
    writer = LedgerWriter(tmp_path / "faults.jsonl", state, schedule, robot="toy", step_dt=0.02)
    for _ in range(2):
        state.reset(torch.arange(3))
        writer.record_plans(torch.arange(3), torch.full((3,), 9))
    replay = FaultReplay(tmp_path / "faults.jsonl", NAMES, step_dt=0.02)
    faults = Faults(replay, np.array([2]), 3, POSE, HEALTHY, 0.02)
    seen = {}
    for episode in (1, 0, 1):
        faults.reset(episode)
        faults.advance(9, ANGLES)
        seen[episode] = dict(zip(NAMES, faults.bounds()[0].effort, strict=True))
        recorded = replay.ledger.episodes[2, episode].faults[0].severity["effort"]
        assert seen[episode] == pytest.approx({**dict.fromkeys(NAMES, 25.0), **recorded})
    assert seen[0] != seen[1]
