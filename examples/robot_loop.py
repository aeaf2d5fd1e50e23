# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Walk a robot with an exported policy; needs Python 3.8, NumPy and ONNX Runtime, neither torch nor Isaac Lab.

``./isaaclab.sh -p examples/robot_loop.py --policy exported/policy.json`` drives a stand-in, whose joints reach each
target at once; so does ``PYTHONPATH=exported/umc_runner.zip python3 robot_loop.py --policy exported/policy.json`` on a
robot's computer. Replace :class:`StandIn` by the driver of a robot.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from umc.deploy.policy_runner import PolicyRunner, RunnerError
from umc.utils.errors import UmcError

RAMP_S = 3.0
"""Time to move to the default pose before the policy starts [s]."""

MAX_TILT_RAD = 0.8
"""Tilt of the trunk that ends the walk [rad]."""

MAX_LATE_STEPS = 3
"""Consecutive steps that may miss their deadline."""

MAX_REFUSED_STEPS = 2
"""Consecutive steps that the runner may refuse; the last target holds meanwhile."""


@dataclass
class Reading:
    """What the robot measures; joints in the order given to :class:`PolicyRunner`."""

    position: np.ndarray
    """Joint angles [rad]. Shape is (J,)."""
    velocity: np.ndarray
    """Joint speeds [rad/s]. Shape is (J,)."""
    gyro: np.ndarray
    """Angular velocity of the trunk in its own frame [rad/s]. Shape is (3,)."""
    orientation: np.ndarray
    """Rotation from the trunk's frame to the world's, unit quaternion (w, x, y, z). Shape is (4,)."""
    dead: list[str] = field(default_factory=list)
    """Joints whose sensors are dead: no packet for two steps, or a reading that cannot be true."""
    detected: bool = False
    """Whether a joint in ``dead`` can also do less than it should (docs/deploy.md)."""


class StandIn:
    """A robot whose joints reach each target at once and whose trunk stays level."""

    def __init__(self, runner: PolicyRunner) -> None:
        self.position = np.clip(np.zeros(len(runner.joint_names)), runner.lower_limit, runner.upper_limit)
        self.velocity = np.zeros(len(runner.joint_names))

    def read(self) -> Reading:
        """Return the latest measurements."""
        return Reading(self.position, self.velocity, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))

    def send(self, targets: np.ndarray, kp: np.ndarray, kd: np.ndarray) -> None:
        """Let the motors hold targets [rad] with stiffness [N*m/rad] and damping [N*m*s/rad] until the next call."""
        self.position = targets

    def damp(self) -> None:
        """Let the motors brake without stiffness: the robot sinks to the ground."""


def gravity_in_trunk(orientation: np.ndarray) -> np.ndarray:
    """Return the direction of gravity in the trunk's frame, (0, 0, -1) when level. Shape is (3,).

    Its length is 1 only if the quaternion's is: the runner refuses what an IMU reads that has not started.
    """
    w, x, y, z = orientation
    return np.array([2.0 * (w * y - x * z), -2.0 * (y * z + w * x), x * x + y * y - z * z - w * w])


def ramp(robot: StandIn, runner: PolicyRunner, seconds: float = RAMP_S) -> None:
    """Move the joints to the default pose along a straight line; those without a reading go there at once."""
    reading = robot.read()
    joints = zip(runner.joint_names, reading.position)
    dead = [name for name, angle in joints if name in reading.dead or not np.isfinite(angle)]
    if dead:
        print(f"no reading of {', '.join(dead)}: moved to the default pose at once")
    runner.check_position(reading.position, dead)  # refuses angles that cannot be true, such as degrees
    begin = np.where(np.isin(runner.joint_names, dead), runner.default_position, reading.position)
    for share in np.linspace(0.0, 1.0, max(2, round(seconds / runner.policy_dt))):
        robot.send((1.0 - share) * begin + share * runner.default_position, runner.kp, runner.kd)
        time.sleep(runner.policy_dt)


def walk(robot: StandIn, runner: PolicyRunner, command: tuple[float, float, float], steps: int) -> str:
    """Walk for a number of steps; return why the walk ended."""
    runner.reset()
    late, refused, deadline = 0, 0, time.monotonic()
    for _ in range(steps):
        reading = robot.read()
        gravity = gravity_in_trunk(reading.orientation)
        if -gravity[2] < np.cos(MAX_TILT_RAD) * np.linalg.norm(gravity):
            return "the trunk tilts too far"
        try:
            targets, refused = (
                runner(
                    reading.position, reading.velocity, reading.gyro, gravity, command, reading.dead, reading.detected
                ),
                0,
            )
        except RunnerError as error:  # a reading that cannot be true
            targets, refused = runner.last_target, refused + 1
            if refused > MAX_REFUSED_STEPS:
                return str(error)
        robot.send(targets, runner.kp, runner.kd)
        deadline += runner.policy_dt
        now = time.monotonic()
        rest = deadline - now
        late = 0 if rest > 0.0 else late + 1
        deadline = max(deadline, now)  # the steps after a late one keep their rate
        if late > MAX_LATE_STEPS:
            return "the loop is too slow"
        time.sleep(max(0.0, rest))
    return "all steps are done"


def stop(signum: int, _: Any) -> None:
    """End the program as an error does: the motors damp."""
    sys.exit(128 + signum)


def main(arguments: list[str] | None = None) -> int:
    """Run the loop; return the exit status."""
    parser = argparse.ArgumentParser(description="Walk with an exported policy.")
    parser.add_argument("--policy", default="exported/policy.json", help="policy.json that umc export wrote")
    parser.add_argument("--steps", type=int, default=500, help="policy steps; 500 are 10 s")
    parser.add_argument("--speed", type=float, default=0.5, help="forward velocity command [m/s]")
    options = parser.parse_args(arguments)
    try:
        runner = PolicyRunner(options.policy)  # joint_names=: your driver's order
        robot = StandIn(runner)
        for one in (signal.SIGTERM, signal.SIGHUP):  # of systemctl stop, and of a terminal that closes
            if signal.getsignal(one) is signal.SIG_DFL:
                signal.signal(one, stop)
        try:
            ramp(robot, runner)
            ended = walk(robot, runner, (options.speed, 0.0, 0.0), options.steps)
        finally:
            robot.damp()  # after an error, Ctrl-C or a signal, too
    except UmcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{ended}; the motors damp now")
    return 0


if __name__ == "__main__":
    sys.exit(main())
