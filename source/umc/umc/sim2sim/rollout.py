# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Rollouts of a policy under faults in plain MuJoCo, on all cores, without Isaac Lab.

What a robot does depends on its seed, its member and its faults alone: not on the number of processes, nor on the other
robots of its process.

Processes and not threads: most of the time is spent in Python, under its lock.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cached_property, partial
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from umc.deploy.policy_runner import PolicyRunner, RunnerError
from umc.evaluation.pushes import pushes
from umc.faults import FaultCases, FaultReplay, FaultSchedule
from umc.faults.state import PlanSource
from umc.sim2sim.conditions import Conditions, SensorNoise, draw_start
from umc.sim2sim.external import ExternalRobotPolicy, ExternalRunner
from umc.sim2sim.faults import Faults, joint_limits
from umc.sim2sim.robot import Motors, Robot, RobotType, SolverCfg, robot_mjcf
from umc.utils.console import progress_bar
from umc.utils.description import read_description
from umc.utils.errors import UmcError
from umc.utils.process import environment
from umc.utils.threads import cores

GROUP = 8
"""Robots that a process simulates at once: few enough for a progress bar to move."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""What limits a worker to one core."""


@dataclass(frozen=True)
class RolloutCfg:
    """Configuration of a rollout: one row per robot; shapes are (R,)."""

    policy: Path | ExternalRobotPolicy
    """``policy.json`` of an exported policy, or a policy that UMC did not train."""
    command: tuple[float, float, float]
    """Velocity x [m/s], y [m/s], yaw [rad/s]."""
    steps: int
    """Longest episode [env steps]."""
    env: NDArray[np.int64]
    """Env whose faults each robot has."""
    episode: NDArray[np.int64]
    """Which of its episodes, counted from 0."""
    seed: NDArray[np.int64]
    """Seed of each robot's start."""
    member: NDArray[np.int64]
    """Which robot of this seed it is."""
    cell: NDArray[np.int64]
    """Cell of the protocol that each robot belongs to."""
    cases: Sequence[dict[str, Any]] = ()
    """Faults of each cell, for :class:`umc.faults.FaultCases`; empty where a ledger is replayed."""
    ledger: Path | None = None
    """Ledger that is replayed."""
    random: Mapping[str, Any] | None = None
    """Fields of :class:`umc.faults.FaultsCfg` by which faults are drawn instead."""
    oracle: bool = True
    """Whether the policy is told by the simulator what is broken, not by the detector that was exported with it."""
    noise: bool = False
    """Whether sensors are as noisy as in the task."""
    push_speed: float = 0.0
    """As :attr:`umc.evaluation.protocol.Protocol.push`."""
    solver: SolverCfg = field(default_factory=SolverCfg)
    clamp: bool = False
    """Whether targets are clamped to the joint limits, as on a robot; in the training they are not."""
    mjcf: Path | None = None
    """Model of a robot that is none of this package's; the package's own if None."""

    @property
    def num_envs(self) -> int:
        """Number of envs that faults are planned for."""
        return int(self.env.max()) + 1

    @cached_property
    def description(self) -> dict[str, Any]:
        """Content of the exported policy's ``policy.json``, or what of it describes another policy's task."""
        if isinstance(self.policy, ExternalRobotPolicy):
            return dict(self.policy.task)
        return read_description(self.policy)

    def runner(self) -> PolicyRunner:
        """Load the policy for one robot."""
        if isinstance(self.policy, ExternalRobotPolicy):
            return ExternalRunner(self.policy, self.clamp)
        runner = PolicyRunner(self.policy, clamp=self.clamp, simulated=True)
        runner.uses_detector = not self.oracle
        return runner


@dataclass(frozen=True)
class Trace:
    """What robots did, step by step; T steps, R robots, F feet. Rows are 0 after an episode has ended."""

    position: NDArray[np.float32]
    """Horizontal position [m]. Shape is (T, R, 2)."""
    forward_velocity: NDArray[np.float32]
    """Along the robot's own forward axis [m/s]. Shape is (T, R)."""
    sideward_velocity: NDArray[np.float32]
    """To its own left [m/s]. Shape is (T, R)."""
    turning_rate: NDArray[np.float32]
    """About its own upward axis [rad/s]. Shape is (T, R)."""
    height: NDArray[np.float32]
    """Of the base [m]. Shape is (T, R)."""
    velocity_error: NDArray[np.float32]
    """Error of the planar velocity [m/s]. Shape is (T, R)."""
    work: NDArray[np.float32]
    """Positive work of the motors in this step [J]. Shape is (T, R)."""
    fell: NDArray[np.bool_]
    """Robots that fell in this step. Shape is (T, R)."""
    non_finite: NDArray[np.bool_]
    """Robots whose state is not finite in this step. Shape is (T, R)."""
    contact: NDArray[np.bool_]
    """Feet on the ground. Shape is (T, R, F)."""

    @classmethod
    def empty(cls, steps: int, robots: int, feet: int) -> Trace:
        """Return a trace in which nothing has happened."""
        zeros = partial(np.zeros, dtype=np.float32)
        flags = partial(np.zeros, dtype=np.bool_)
        one = (steps, robots)
        return cls(zeros((*one, 2)), *(zeros(one) for _ in range(6)), flags(one), flags(one), flags((*one, feet)))


class Watch(Protocol):
    """What looks at robots as they are simulated; ``up`` are those whose episode goes on, shape (R,)."""

    def before_step(self, step: int, faults: Faults, up: NDArray[np.bool_]) -> None:
        """Look at what the policies have made of a step's readings, before the robots move."""

    def after_step(self, faults: Faults, up: NDArray[np.bool_]) -> None:
        """Look at robots that have moved, before faults are switched."""


class Runner[Result](Protocol):
    """What simulates groups of robots in processes; made anew from its cfg in each."""

    @property
    def cfg(self) -> RolloutCfg:
        """Configuration of the rollout."""
        ...

    def run(self, rows: NDArray[np.int64]) -> Result:
        """Simulate the robots of some rows of the cfg; all rows are of the same episode."""
        ...


class Simulation:
    """Policy, robots and faults of one process.

    Raises:
        UmcError: If the policy cannot be read, or the faults are invalid.
    """

    def __init__(self, cfg: RolloutCfg) -> None:
        self.cfg = cfg
        self.runners = [cfg.runner()]
        self._noise = SensorNoise(cfg.description) if cfg.noise else None
        self._noisy: list[Callable[..., list[NDArray[np.float64]]]] = []
        motors, conditions = Motors.from_description(cfg.description), Conditions.from_description(cfg.description)
        mjcf = cfg.mjcf or robot_mjcf(cfg.description["trained"]["robot"])
        self.kind = RobotType(mjcf, motors, conditions, cfg.solver)
        self.robots = [Robot(self.kind)]
        self.step_dt = motors.physics_dt * motors.decimation
        self.source: PlanSource
        if cfg.ledger is not None:
            self.source = FaultReplay(cfg.ledger, motors.names, step_dt=self.step_dt)
            return
        nominal = joint_limits(self.kind.bounds)
        if cfg.random is not None:
            self.source = FaultSchedule(motors.names, nominal=nominal, **cfg.random)
        else:
            self.source = FaultCases(motors.names, cfg.cases, cfg.num_envs, episode_length=cfg.steps, nominal=nominal)
            self.source.assign(torch.as_tensor(cfg.cell), torch.as_tensor(cfg.member))

    def run(self, rows: NDArray[np.int64], watch: Watch | None = None) -> Trace:
        """Simulate the robots of some rows of the cfg, all in the same of their episodes."""
        cfg, kind, count = self.cfg, self.kind, len(rows)
        while len(self.robots) < count:
            self.robots.append(Robot(kind))
            self.runners.append(cfg.runner())
        robots, runners, names = self.robots[:count], self.runners[:count], kind.motors.names
        for robot, runner, row in zip(robots, runners, rows, strict=True):
            robot.reset(draw_start(kind.conditions, int(cfg.seed[row]), int(cfg.member[row]), len(names)))
            runner.reset()
        if self._noise is not None:
            self._noisy = [self._noise.draw(int(cfg.seed[row]), int(cfg.member[row])) for row in rows]
        faults = Faults(self.source, cfg.env[rows], cfg.num_envs, kind.motors.pose, kind.bounds, self.step_dt)
        faults.reset(int(cfg.episode[rows[0]]))
        trace = Trace.empty(cfg.steps, count, len(kind.feet))
        up = np.ones(count, dtype=bool)
        self._switch(faults, 0)
        for step in range(cfg.steps):
            self._push(rows, step, up)
            targets = self._act(faults, trace, step, up)
            if watch is not None:
                watch.before_step(step, faults, up)
            arriving = faults.deliver(targets)
            for index in np.flatnonzero(up):
                robots[index].step(arriving[index], faults.transmission(int(index)))
                up[index] = self._record(trace, step, int(index))
            if watch is not None:
                watch.after_step(faults, up)
            if not up.any():
                break
            self._switch(faults, step + 1)
        return trace

    def _act(self, faults: Faults, trace: Trace, step: int, up: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the targets of all policies; robots whose readings are refused are no longer up."""
        cfg, motors, robots = self.cfg, self.kind.motors, self.robots[: faults.count]
        signals = (
            _joint_values(robot.joint_position for robot in robots),
            _joint_values(robot.joint_velocity for robot in robots),
            np.stack([robot.angular_velocity for robot in robots]),
            np.stack([robot.gravity for robot in robots]),
        )
        if self._noisy:
            every = [noisy(*own) for noisy, *own in zip(self._noisy, *signals, strict=True)]
            signals = tuple(map(np.stack, zip(*every, strict=True)))
        senses = faults.sense(*signals[:2])
        turning, gravity = faults.sense_base(*signals[2:])
        targets = np.tile(motors.pose, (len(robots), 1))
        for index in np.flatnonzero(up):
            robot, runner, dead = robots[index], self.runners[index], senses.dead[index]
            if isinstance(runner, ExternalRunner):
                runner.linear_velocity = robot.velocity
            position, velocity = senses.position[index], senses.velocity[index]
            known: dict[str, Any] = {}
            if cfg.oracle:
                known["dead"] = [name for name, is_dead in zip(motors.names, dead, strict=True) if is_dead]
                known["detected"] = bool(senses.detected[index])
            else:  # no message of the joint arrives
                position, velocity = (np.where(dead, np.nan, values) for values in (position, velocity))
            try:
                targets[index] = runner(position, velocity, turning[index], gravity[index], cfg.command, **known)
            except RunnerError:  # the simulation of this robot has diverged
                trace.non_finite[step, index], up[index] = True, False
        return targets

    def _push(self, rows: NDArray[np.int64], step: int, up: NDArray[np.bool_]) -> None:
        """Push the robots whose turn it is, as evaluations in Isaac Lab do."""
        if not self.cfg.push_speed:
            return
        seed, member = (torch.as_tensor(values[rows]) for values in (self.cfg.seed, self.cfg.member))
        pushed, change = pushes(seed, member, torch.full_like(seed, step), self.cfg.push_speed)
        for index in np.flatnonzero(pushed.numpy() & up):
            self.robots[index].data.qvel[:2] += change[index].numpy()

    def _switch(self, faults: Faults, step: int) -> None:
        robots = self.robots[: faults.count]
        switched = faults.advance(step, _joint_values(robot.joint_position for robot in robots))
        if faults.update_memory(_joint_values(robot.torque for robot in robots)) or switched:
            for robot, bounds in zip(robots, faults.bounds(), strict=True):
                robot.limit(bounds)

    def _record(self, trace: Trace, step: int, index: int) -> bool:
        """Record a robot's step; return whether its episode continues."""
        robot = self.robots[index]
        if not robot.finite or robot.fallen:
            (trace.fell if robot.finite else trace.non_finite)[step, index] = True
            return False
        velocity = robot.velocity
        trace.position[step, index] = robot.data.qpos[:2]
        trace.forward_velocity[step, index], trace.sideward_velocity[step, index] = velocity[:2]
        trace.turning_rate[step, index] = robot.angular_velocity[2]
        trace.height[step, index] = robot.data.qpos[2]
        trace.velocity_error[step, index] = np.linalg.norm(np.array(self.cfg.command[:2]) - velocity[:2])
        trace.work[step, index] = robot.power * self.step_dt
        trace.contact[step, index] = robot.stance
        return True


def _joint_values(rows: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return values of all robots' joints, of a row each; 0 where they are not finite."""
    return np.nan_to_num(np.stack(list(rows)))


def run_rollout(cfg: RolloutCfg, workers: int | None = None) -> Trace:
    """Simulate all robots of the cfg."""
    simulation = Simulation(cfg)  # refuses here what each process would refuse
    every = Trace.empty(cfg.steps, len(cfg.env), len(simulation.kind.feet))
    for rows, trace in simulate(simulation, workers):
        for name, values in vars(trace).items():
            getattr(every, name)[:, rows] = values
    return every


def simulate[Result](runner: Runner[Result], workers: int | None = None) -> Iterator[tuple[NDArray[np.int64], Result]]:
    """Yield rows of the runner's cfg and what it returns for them, as they finish."""
    cfg = runner.cfg
    groups: list[NDArray[np.int64]] = []
    for episode in np.unique(cfg.episode):
        rows = np.flatnonzero(cfg.episode == episode)
        groups += np.array_split(rows, -(-len(rows) // GROUP))
    count = min(workers or cores(), len(groups))
    with progress_bar(len(cfg.env), "MuJoCo", "robot") as bar:
        for rows, result in _results(runner, groups, count):
            yield rows, result
            bar.update(len(rows))


def _results[Result](
    runner: Runner[Result], groups: Sequence[NDArray[np.int64]], workers: int
) -> Iterator[tuple[NDArray[np.int64], Result]]:
    if workers == 1:
        yield from ((rows, runner.run(rows)) for rows in groups)
        return
    # spawned: torch and ONNX Runtime have threads, which a fork would not copy; each inherits the limit of one core
    with (
        environment(**dict.fromkeys(THREAD_VARIABLES, "1")),
        ProcessPoolExecutor(workers, get_context("spawn"), _begin_worker, (type(runner), runner.cfg)) as pool,
    ):
        try:
            # the workers, which start here, leave Ctrl-C to this process
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                waiting = {pool.submit(_work, rows): rows for rows in groups}
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BrokenProcessPool as error:
            raise UmcError(
                "a process was killed, perhaps because memory ran out (each takes 0.7 GB); start again with fewer"
                f" --workers than {workers}"
            ) from error
        except KeyboardInterrupt:
            for process in active_children():
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


_runner: Runner[Any] | None = None


def _begin_worker(kind: Callable[[RolloutCfg], Runner[Any]], cfg: RolloutCfg) -> None:
    global _runner
    torch.set_num_threads(1)
    _runner = kind(cfg)


def _work(rows: NDArray[np.int64]) -> Any:
    assert _runner is not None
    return _runner.run(rows)
