# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Walks robots through faults in plain MuJoCo, over all cores; no Isaac Lab is imported here.

What a robot does depends on its seed, its member and its faults alone: not on the number of processes, nor on who
shares one with it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from umc.deploy.policy_runner import PolicyRunner
from umc.faults import FaultCases, FaultReplay, JointLimits
from umc.faults.state import PlanSource
from umc.sim2sim.conditions import Conditions, draw_start
from umc.sim2sim.faults import Faults, joint_limits
from umc.sim2sim.robot import Motors, Robot, RobotType, robot_mjcf
from umc.utils.errors import UmcError

GROUP = 8
"""Robots that walk side by side in one process: few enough for a progress bar to move."""

HEARTBEAT = 10.0
"""Seconds between progress lines where there is no terminal."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""What keeps a worker to one core."""


@dataclass(frozen=True)
class Walk:
    """All that is walked: one row per robot."""

    description: Path
    """The exported policy's JSON."""
    robot: str
    """Name of the robot."""
    command: tuple[float, float, float]
    """Velocity x [m/s], y [m/s], yaw [rad/s]."""
    steps: int
    """Longest episode [env steps]."""
    env: NDArray[np.int64]
    """Env whose faults each robot meets. Shape is (R,)."""
    episode: NDArray[np.int64]
    """Which of its episodes, counted from 0. Shape is (R,)."""
    seed: NDArray[np.int64]
    """Seed of each robot's start. Shape is (R,)."""
    member: NDArray[np.int64]
    """Which robot of this seed it is. Shape is (R,)."""
    cases: Sequence[dict[str, Any]] = field(default_factory=tuple)
    """What :class:`umc.faults.FaultCases` deals out; empty where a ledger is replayed."""
    case: NDArray[np.int64] | None = None
    """Case of each env. Shape is (R,)."""
    ledger: Path | None = None
    """Ledger whose faults are met."""
    substeps: int = 1
    """MuJoCo's steps in the time that a torque is held."""
    contact_time: float | None = None
    """Time constant of contacts [s]; MuJoCo's own without it."""

    @property
    def num_envs(self) -> int:
        """Envs that the plans are for."""
        return int(self.env.max()) + 1


@dataclass(frozen=True)
class Trace:
    """What robots did, step by step; T steps, R robots, F feet. A robot that has ended stays at 0."""

    position: NDArray[np.float32]
    """Horizontal position [m]. Shape is (T, R, 2)."""
    forward_velocity: NDArray[np.float32]
    """Along the robot's own forward axis [m/s]. Shape is (T, R)."""
    height: NDArray[np.float32]
    """Of the base [m]. Shape is (T, R)."""
    velocity_error: NDArray[np.float32]
    """Error of the planar velocity [m/s]. Shape is (T, R)."""
    work: NDArray[np.float32]
    """Of the motors in this step, negative power left out [J]. Shape is (T, R)."""
    fell: NDArray[np.bool_]
    """Robots that fell in this step. Shape is (T, R)."""
    non_finite: NDArray[np.bool_]
    """Robots whose physics broke in this step. Shape is (T, R)."""
    contact: NDArray[np.bool_]
    """Feet on the ground. Shape is (T, R, F)."""

    @classmethod
    def empty(cls, steps: int, robots: int, feet: int) -> Trace:
        """A trace in which nothing has happened.

        Args:
            steps: Number of steps.
            robots: Number of robots.
            feet: Number of feet.

        Returns:
            The trace.
        """
        return cls(
            position=np.zeros((steps, robots, 2), dtype=np.float32),
            forward_velocity=np.zeros((steps, robots), dtype=np.float32),
            height=np.zeros((steps, robots), dtype=np.float32),
            velocity_error=np.zeros((steps, robots), dtype=np.float32),
            work=np.zeros((steps, robots), dtype=np.float32),
            fell=np.zeros((steps, robots), dtype=np.bool_),
            non_finite=np.zeros((steps, robots), dtype=np.bool_),
            contact=np.zeros((steps, robots, feet), dtype=np.bool_),
        )


class World:
    """What the robots of a walk share.

    Args:
        walk: The walk.

    Raises:
        UmcError: If the policy cannot be read or belongs to another robot, or the faults make no sense.
    """

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.runner = PolicyRunner(walk.description)
        description = json.loads(walk.description.read_text(encoding="utf-8"))
        trained = description["trained"]["robot"]
        if trained.lower() != walk.robot.lower():
            raise UmcError(f"{walk.description} was trained for robot {trained}, not {walk.robot}")
        motors, conditions = Motors.from_description(description), Conditions.from_description(description)
        self.kind = RobotType(robot_mjcf(walk.robot), motors, conditions, walk.substeps, walk.contact_time)
        self.step_dt = motors.physics_dt * motors.decimation
        self.source = self._plans()
        self.robots: list[Robot] = []
        self.runners: list[PolicyRunner] = [self.runner]

    def _plans(self) -> PlanSource:
        walk, names = self.walk, self.kind.motors.names
        if walk.ledger is not None:
            # an onset beyond the walk does not come; robots that fell early had theirs planned later
            return FaultReplay(walk.ledger, names, step_dt=self.step_dt)
        nominal = JointLimits(*(value[0] for value in vars(joint_limits(self.kind.bounds)).values()))
        source = FaultCases(names, walk.cases, walk.num_envs, episode_length=walk.steps, nominal=nominal)
        case = np.zeros_like(walk.env) if walk.case is None else walk.case
        source.assign(torch.as_tensor(case), torch.as_tensor(walk.member))
        return source

    def run(self, rows: NDArray[np.int64]) -> Trace:
        """Walks some robots, all in the same of their episodes.

        Args:
            rows: Their rows in the walk. Shape is (R,).

        Returns:
            What they did.
        """
        walk, kind = self.walk, self.kind
        while len(self.robots) < len(rows):
            self.robots.append(Robot(kind))
        while len(self.runners) < len(rows):
            self.runners.append(PolicyRunner(walk.description))
        robots, runners = self.robots[: len(rows)], self.runners[: len(rows)]
        joints = len(kind.motors.names)
        for robot, runner, row in zip(robots, runners, rows, strict=True):
            robot.reset(draw_start(kind.conditions, int(walk.seed[row]), int(walk.member[row]), joints))
            runner.reset()
        faults = Faults(self.source, walk.env[rows], walk.num_envs, kind.motors.pose, kind.bounds, self.step_dt)
        faults.begin(int(walk.episode[rows[0]]))
        trace = Trace.empty(walk.steps, len(rows), len(kind.feet))
        up = np.ones(len(rows), dtype=bool)
        self._switch(faults, 0)
        for number in range(walk.steps):
            senses = faults.sense(*self._joints(len(rows)))
            targets = np.tile(kind.motors.pose, (len(rows), 1))
            for index in np.flatnonzero(up):
                robot, dead = robots[index], senses.dead[index]
                targets[index] = runners[index](
                    senses.position[index],
                    senses.velocity[index],
                    robot.angular_velocity,
                    robot.gravity,
                    walk.command,
                    dead=[name for name, is_dead in zip(kind.motors.names, dead, strict=True) if is_dead],
                    detected=bool(senses.detected[index]),
                )
            arriving = faults.deliver(targets)
            for index in np.flatnonzero(up):
                robots[index].step(arriving[index])
                up[index] = self._note(trace, number, int(index), robots[index])
            if not up.any():
                break
            self._switch(faults, number + 1)
        return trace

    def _joints(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Angles and speeds of all joints; those of a robot that has ended are its last finite ones, or 0."""
        robots = self.robots[:count]
        position = np.stack([robot.joint_position for robot in robots])
        velocity = np.stack([robot.joint_velocity for robot in robots])
        return np.nan_to_num(position), np.nan_to_num(velocity)

    def _switch(self, faults: Faults, step: int) -> None:
        robots = self.robots[: faults.count]
        position, _ = self._joints(faults.count)
        if faults.advance(step, position):
            for robot, bounds in zip(robots, faults.bounds(), strict=True):
                robot.limit(bounds)

    def _note(self, trace: Trace, number: int, index: int, robot: Robot) -> bool:
        """Writes down what a robot has done; returns whether it goes on."""
        if not robot.finite:
            trace.non_finite[number, index] = True
            return False
        if robot.fallen:
            trace.fell[number, index] = True
            return False
        velocity = robot.velocity
        trace.position[number, index] = robot.data.qpos[:2]
        trace.forward_velocity[number, index] = velocity[0]
        trace.height[number, index] = robot.data.qpos[2]
        trace.velocity_error[number, index] = np.linalg.norm(np.array(self.walk.command[:2]) - velocity[:2])
        trace.work[number, index] = robot.power * self.step_dt
        trace.contact[number, index] = robot.stance
        return True


def run_walk(walk: Walk, workers: int | None = None, title: str | None = "MuJoCo") -> Trace:
    """Walks all robots.

    Args:
        walk: The walk.
        workers: Number of processes; as many as there are cores without it, and this one alone for 1.
        title: What the progress bar says; None for no bar.

    Returns:
        What they did.

    Raises:
        UmcError: If the policy cannot be read or belongs to another robot, the faults make no sense, or a process dies.
    """
    world = World(walk)  # refuses in this process what the others would refuse one by one
    groups = [
        chunk
        for episode in np.unique(walk.episode)
        for rows in [np.flatnonzero(walk.episode == episode)]
        for chunk in np.array_split(rows, -(-len(rows) // GROUP))
    ]
    whole = Trace.empty(walk.steps, len(walk.env), len(world.kind.feet))
    count = min(workers or os.cpu_count() or 1, len(groups))
    with _progress(len(walk.env), title) as bar:
        for rows, trace in _results(world, groups, count):
            for one in fields(Trace):
                getattr(whole, one.name)[:, rows] = getattr(trace, one.name)
            bar.update(len(rows))
    return whole


def _results(
    world: World, groups: Sequence[NDArray[np.int64]], workers: int
) -> Iterator[tuple[NDArray[np.int64], Trace]]:
    """Groups of robots as they come home."""
    if workers == 1:
        for rows in groups:
            yield rows, world.run(rows)
        return
    # fresh processes: torch and ONNX Runtime have threads, which a fork would not copy
    with (
        _single_threaded(),
        ProcessPoolExecutor(workers, get_context("spawn"), _begin_worker, (world.walk,)) as pool,
    ):
        waiting = {pool.submit(_work, rows): rows for rows in groups}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BrokenProcessPool as error:
            raise UmcError(
                "a process of the walk was killed, perhaps for want of memory (each takes 0.7 GB); start again with"
                f" fewer --workers than {workers}"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


_world: World | None = None


def _begin_worker(walk: Walk) -> None:
    global _world
    torch.set_num_threads(1)
    _world = World(walk)


def _work(rows: NDArray[np.int64]) -> Trace:
    assert _world is not None
    return _world.run(rows)


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Lets processes that are started here use one core each."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _progress(robots: int, title: str | None) -> tqdm:
    interval = 0.2 if sys.stderr.isatty() else HEARTBEAT
    return tqdm(
        total=robots, desc=title, unit="robot", mininterval=interval, maxinterval=HEARTBEAT, dynamic_ncols=True,
        disable=title is None,
    )  # fmt: skip
