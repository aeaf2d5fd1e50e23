# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What an exported detector says of robots in plain MuJoCo, as :mod:`umc.diagnosis` records it in Isaac Lab."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from umc.detection.labels import Labeller
from umc.diagnosis.effects import limits_act
from umc.diagnosis.faults import PUSH, PUSH_EVERY, RandomFaults, random_settings
from umc.diagnosis.recording import Recording
from umc.evaluation.protocol import protocol_for
from umc.faults import FaultState
from umc.faults.detection import SECONDS_PER_MINUTE
from umc.sim2sim.faults import Faults, joint_limits
from umc.sim2sim.rollout import GROUP, RolloutCfg, Simulation, simulate
from umc.utils.description import read_description
from umc.utils.errors import UmcError

EPISODE_S = 20.0
"""Length of an episode [s], as of UMC's tasks."""

Columns = dict[str, NDArray[Any]]
"""Fields of a :class:`Recording` by name, of one robot for as long as it is up."""


@dataclass(frozen=True)
class DiagnosisCfg(RolloutCfg):
    """Configuration of a rollout under random faults."""

    policy: Path
    push: bool = True
    """Whether the robots are pushed, as often and as hard as where detectors are trained."""


def diagnosis_rollout(policy: Path, minutes: float, faults: RandomFaults, seed: int) -> DiagnosisCfg:
    """Configure about so many robot-minutes of an exported policy and its detector, with the protocol's command.

    Raises:
        UmcError: If it was exported without a detector, or the faults are invalid.
    """
    description = read_description(policy)
    if "detector" not in description:
        raise UmcError(f"{policy} has no detector; export the policy again with --detector FILE")
    steps = round(EPISODE_S / description["control"]["policy_dt_s"])
    count = max(round(SECONDS_PER_MINUTE * minutes / EPISODE_S), 1)
    rows, zero = np.arange(count), np.zeros(count, dtype=np.int64)
    return DiagnosisCfg(
        policy=policy,
        command=protocol_for(description["trained"]["robot"].lower()).command,
        steps=steps,
        env=rows % GROUP,
        episode=rows // GROUP,
        seed=zero + seed,
        member=rows,
        cell=zero,
        random=random_settings(faults, seed, steps, len(description["joints"])),
        oracle=False,
        noise=True,
    )


class DiagnosisSimulation:
    """Policies, detectors, robots and faults of one process."""

    def __init__(self, cfg: DiagnosisCfg) -> None:
        self.cfg = cfg
        self.simulation = Simulation(cfg)

    def run(self, rows: NDArray[np.int64]) -> list[Columns]:
        """Simulate the robots of some rows of the cfg, all in the same of their episodes; return what was recorded."""
        watch = _Record(self.simulation, self.cfg, rows)
        self.simulation.run(rows, watch)
        return [
            {name: values[:steps, robot] for name, values in watch.columns.items()}
            for robot, steps in enumerate(watch.lengths)
        ]


class _Record:
    """Records what detectors predict of R robots, and pushes these."""

    def __init__(self, simulation: Simulation, cfg: DiagnosisCfg, rows: NDArray[np.int64]) -> None:
        self._simulation, self._push = simulation, cfg.push
        self._random = [np.random.default_rng((int(cfg.seed[row]), int(row))) for row in rows]
        self._next_push = [random.uniform(*PUSH_EVERY) for random in self._random]
        self._nominal = joint_limits(simulation.kind.bounds)
        self._labeller: Labeller | None = None
        robots, joints = (cfg.steps, len(rows)), len(simulation.kind.motors.names)
        pairs = (*robots, joints, 2)
        self.columns = {
            "starts": np.zeros(robots, dtype=np.bool_),
            "label": np.zeros(pairs, dtype=np.int8),
            "severity": np.zeros(pairs, dtype=np.float16),
            "faulty": np.zeros(pairs, dtype=np.float16),
            "kind": np.zeros(pairs, dtype=np.int8),
            "reported": np.zeros(pairs, dtype=np.bool_),
            "hinders": np.zeros(pairs[:-1], dtype=np.bool_),
            "speed": np.zeros(robots, dtype=np.float16),
        }
        """Fields of a :class:`Recording`. Shapes are (T, R, ...)."""
        self.columns["starts"][0] = True
        self.lengths = np.zeros(len(rows), dtype=np.int64)
        """Env steps for which each robot was up."""

    def before_step(self, step: int, faults: Faults, up: NDArray[np.bool_]) -> None:
        """See :class:`umc.sim2sim.rollout.Watch`."""
        if self._labeller is None:
            self._labeller = Labeller(faults.state, self._nominal)
        labels, robots = self._labeller(), range(len(up))
        detectors = [self._simulation.runners[robot].detector for robot in robots]
        self._step = step
        self.lengths[up] = step + 1
        row = {name: values[step] for name, values in self.columns.items()}
        row["label"][:] = torch.stack((labels.sensor, labels.joint), -1)[faults.envs]
        row["severity"][:] = labels.severity[faults.envs]
        for robot, detector in zip(robots, detectors, strict=True):
            assert detector is not None
            row["faulty"][robot] = np.stack([1.0 - one[:, 0] for one in detector.probabilities], -1)
            row["kind"][robot] = np.stack([one[:, 1:].argmax(1) + 1 for one in detector.probabilities], -1)
            row["reported"][robot] = detector.reported
        if self._push:
            for robot in np.flatnonzero(up):
                self._push_robot(int(robot), step * self._simulation.step_dt)

    def _push_robot(self, index: int, time: float) -> None:
        """Change the speed of a robot's trunk, as Isaac Lab's ``push_by_setting_velocity`` does, if it is time."""
        if time >= self._next_push[index]:
            random = self._random[index]
            self._simulation.robots[index].data.qvel[:2] += random.uniform(-PUSH, PUSH, 2)
            self._next_push[index] += random.uniform(*PUSH_EVERY)

    def after_step(self, faults: Faults, up: NDArray[np.bool_]) -> None:
        """See :class:`umc.sim2sim.rollout.Watch`."""
        assert self._labeller is not None
        robots = self._simulation.robots[: len(up)]
        names = ("joint_position", "joint_velocity", "demanded")
        measured = (torch.as_tensor(np.array([getattr(robot, name) for robot in robots])) for name in names)
        acts = limits_act(faults.limits(), self._nominal, *measured).numpy()
        joint = self.columns["label"][self._step, ..., 1]
        hinders = (acts & (joint > 0)) | (joint > self._labeller.limiting)
        self.columns["hinders"][self._step] = hinders & up[:, None]
        self.columns["speed"][self._step] = [np.linalg.norm(robot.velocity[:2]) for robot in robots]


def record(cfg: DiagnosisCfg, workers: int | None = None) -> Recording:
    """Simulate all robots of the cfg, and record what their detectors predict: one episode after another.

    Raises:
        UmcError: If no robot walks a single step.
    """
    runner = DiagnosisSimulation(cfg)  # refuses here what each process would refuse
    found: dict[int, Columns] = {}
    for rows, columns in simulate(runner, workers):
        found |= dict(zip(rows.tolist(), columns, strict=True))
    simulation = runner.simulation
    labeller = Labeller(FaultState(simulation.source, 1), joint_limits(simulation.kind.bounds))
    whole = {name: np.concatenate([found[row][name] for row in sorted(found)])[:, None] for name in found[0]}
    if not len(whole["starts"]):
        raise UmcError(f"the policy {cfg.policy} refuses what the simulation measures; export it again")
    return Recording(simulation.step_dt, simulation.kind.motors.names, kinds=labeller.kinds, **whole)
