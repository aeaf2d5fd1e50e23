# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The loop of 'Deploy on a robot' feeds an exported policy, and ends safely."""

import signal
import sys
from dataclasses import replace

import numpy as np
import pytest
from fresh_policy import write_fresh
from isaaclab_tasks.utils import load_cfg_from_registry
from scipy.spatial.transform import Rotation
from umc.deploy.export import export_checkpoint
from umc.deploy.policy_runner import PolicyRunner

from examples import robot_loop


@pytest.fixture(scope="module")
def description(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    task = "UMC-A1-Stage2"
    return export_checkpoint(
        write_fresh(folder, task=task), folder, load_cfg_from_registry(task, "env_cfg_entry_point")
    ).description


@pytest.fixture
def robot(monkeypatch):
    """Record what the stand-in is told; the clock stands still unless a test lets it run."""
    told = []
    monkeypatch.setattr(robot_loop.StandIn, "damp", lambda self: told.append("damp"))
    send = robot_loop.StandIn.send

    def record(self, targets, kp, kd):
        told.append(targets)
        send(self, targets, kp, kd)

    monkeypatch.setattr(robot_loop.StandIn, "send", record)
    monkeypatch.setattr(robot_loop.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(robot_loop.time, "monotonic", lambda: 0.0)
    return told


def test_gravity_has_the_frame_of_the_training():
    for rotation in Rotation.from_quat(np.random.default_rng(0).normal(size=(5, 4))):
        x, y, z, w = rotation.as_quat()
        expected = rotation.inv().apply([0.0, 0.0, -1.0])
        np.testing.assert_allclose(robot_loop.gravity_in_trunk(np.array([w, x, y, z])), expected, atol=1e-12)


def test_an_imu_that_has_not_started_is_not_level(description, robot, capsys, monkeypatch):
    read = robot_loop.StandIn.read
    monkeypatch.setattr(robot_loop.StandIn, "read", lambda self: replace(read(self), orientation=np.zeros(4)))
    assert robot_loop.main(["--policy", str(description)]) == 0
    assert "gravity has length 0" in capsys.readouterr().out


def test_it_moves_to_the_default_pose_walks_and_damps(description, robot, capsys):
    assert robot_loop.main(["--policy", str(description), "--steps", "10"]) == 0
    np.testing.assert_allclose(robot[149], PolicyRunner(description).default_position)  # 3 s of 0.02 s
    assert len(robot) == 150 + 10 + 1
    assert robot[-1] == "damp"
    assert "all steps are done" in capsys.readouterr().out


def test_the_ramp_sends_no_value_that_was_not_read(description, robot, capsys):
    """One joint reads NaN, one is dead: they go to the default pose, the others along a line."""
    runner = PolicyRunner(description)
    driver = robot_loop.StandIn(runner)
    driver.position[2], driver.position[4] = np.nan, 900.0
    begin = driver.position.copy()
    driver.read = lambda: robot_loop.Reading(begin, np.zeros(12), np.zeros(3), np.eye(4)[0], ["FR_thigh_joint"])
    robot_loop.ramp(driver, runner)
    names = runner.joint_names
    assert (names[2], names[4]) == ("FL_calf_joint", "FR_thigh_joint")
    assert "no reading of FL_calf_joint, FR_thigh_joint: moved to the default pose" in capsys.readouterr().out
    known = np.delete(np.arange(12), [2, 4])
    np.testing.assert_array_equal(robot[0][known], begin[known])
    for sent in robot:
        np.testing.assert_allclose(sent[[2, 4]], runner.default_position[[2, 4]])
    np.testing.assert_allclose(robot[-1], runner.default_position)


def test_the_ramp_refuses_degrees_before_the_first_target(description, robot, capsys, monkeypatch):
    lying = robot_loop.Reading(np.full(12, 45.8), np.zeros(12), np.zeros(3), np.eye(4)[0])
    monkeypatch.setattr(robot_loop.StandIn, "read", lambda self: lying)
    assert robot_loop.main(["--policy", str(description)]) == 2
    assert "joint_position of FL_hip_joint is 45.8" in capsys.readouterr().err
    assert robot == ["damp"]


def test_it_holds_the_last_target_for_readings_that_cannot_be_true_and_then_damps(
    description, robot, capsys, monkeypatch
):
    numbers, read = iter(range(1000)), robot_loop.StandIn.read

    def broken(self):
        reading = read(self)
        if next(numbers) > 3:
            reading.gyro = np.full(3, np.nan)
        return reading

    monkeypatch.setattr(robot_loop.StandIn, "read", broken)
    robot_loop.main(["--policy", str(description)])
    assert "angular_velocity is not finite" in capsys.readouterr().out
    *_, walked, held, held_again, end = robot
    assert (walked == held).all()
    assert (walked == held_again).all()
    assert end == "damp"


def test_it_damps_when_the_robot_falls_or_the_loop_is_slow_or_it_is_stopped(description, robot, capsys, monkeypatch):
    pose = PolicyRunner(description).default_position
    lying = robot_loop.Reading(pose, np.zeros(12), np.zeros(3), np.array([np.cos(0.7), np.sin(0.7), 0, 0]))
    with monkeypatch.context() as patch:
        patch.setattr(robot_loop.StandIn, "read", lambda self: lying)
        robot_loop.main(["--policy", str(description)])
    assert "tilts" in capsys.readouterr().out
    assert robot[-1] == "damp"

    with monkeypatch.context() as patch:
        patch.setattr(robot_loop.time, "monotonic", iter(np.arange(0.0, 100.0, 0.1)).__next__)
        robot_loop.main(["--policy", str(description)])
    assert "too slow" in capsys.readouterr().out

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(robot_loop.StandIn, "read", interrupt)
    robot.clear()
    with pytest.raises(KeyboardInterrupt):
        robot_loop.main(["--policy", str(description)])
    assert robot == ["damp"]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_it_damps_when_a_signal_ends_it(description, robot, monkeypatch, signum):
    handlers = {}
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_DFL)
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    monkeypatch.setattr(robot_loop.StandIn, "read", lambda self: handlers[signum](signum, None))
    with pytest.raises(SystemExit) as ended:
        robot_loop.main(["--policy", str(description)])
    assert (ended.value.code, robot) == (128 + signum, ["damp"])
    handlers.clear()
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_IGN)  # nohup
    monkeypatch.setattr(robot_loop.StandIn, "read", lambda self: sys.exit(5))
    with pytest.raises(SystemExit):
        robot_loop.main(["--policy", str(description)])
    assert not handlers


def test_a_stall_ends_no_walk_and_the_steps_after_it_keep_their_rate(description, robot, monkeypatch):
    """The clock is made up: reading takes 1 ms, the tenth time 0.1 s, which is five steps."""
    runner = PolicyRunner(description)
    clock, reads, sent, read = [0.0], iter(range(1000)), [], robot_loop.StandIn.read

    def wait(seconds):
        clock[0] += seconds

    def slow(self):
        wait(0.1 if next(reads) == 10 else 0.001)
        return read(self)

    monkeypatch.setattr(robot_loop.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(robot_loop.time, "sleep", wait)
    monkeypatch.setattr(robot_loop.StandIn, "read", slow)
    monkeypatch.setattr(robot_loop.StandIn, "send", lambda *_: sent.append(clock[0]))
    assert robot_loop.walk(robot_loop.StandIn(runner), runner, (0.5, 0.0, 0.0), 20) == "all steps are done"
    waits = np.diff(sent)
    np.testing.assert_allclose(np.delete(waits, [9, 10]), runner.policy_dt)
    assert waits[9] > 5 * runner.policy_dt - 0.01
    assert waits[10] == pytest.approx(0.001)  # at once
