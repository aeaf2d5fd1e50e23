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

from umc.deploy.description import read_description
from umc.detection.labels import Labeller
from umc.diagnosis.faults import PUSH, PUSH_EVERY, RandomFaults, random_settings
from umc.diagnosis.recording import Recording
from umc.diagnosis.rollout import limits_act
from umc.faults import FaultState, JointLimits
from umc.sim2sim.faults import Faults, joint_limits
from umc.sim2sim.rollout import GROUP, RolloutCfg, Simulation, simulate
from umc.utils.errors import UmcError

EPISODE_S = 20.0
"""Length of an episode [s], as of UMC's tasks."""

Columns = dict[str, NDArray[Any]]
"""Fields of a :class:`Recording` by name, of one robot, for as long as it is up."""


@dataclass(frozen=True)
class DiagnosisCfg(RolloutCfg):
    """Configuration of a rollout under random faults."""

    push: bool = True
    """Whether the robots are pushed, as often and as hard as where detectors are trained."""


def diagnosis_rollout(  # noqa: PLR0913  (what umc diagnose asks for, one value each)
    policy: Path,
    command: tuple[float, float, float],
    minutes: float,
    faults: RandomFaults,
    seed: int,
    oracle: bool,
    push: bool,
) -> DiagnosisCfg:
    """Configure about so many robot-minutes of an exported policy and its detector.

    Raises:
        UmcError: If it was exported without a detector.
    """
    description = read_description(policy)
    if "detector" not in description:
        raise UmcError(f"{policy} has no detector; export the policy again with --detector FILE")
    names, dt = [joint["name"] for joint in description["joints"]], description["control"]["policy_dt_s"]
    steps = round(EPISODE_S / dt)
    count = max(round(60.0 * minutes / EPISODE_S), 1)
    rows, zero = np.arange(count), np.zeros(count, dtype=np.int64)
    return DiagnosisCfg(
        policy=policy,
        command=command,
        steps=steps,
        env=rows % GROUP,
        episode=rows // GROUP,
        seed=zero + seed,
        member=rows,
        cell=zero,
        random=random_settings(faults, seed, steps, len(names)),
        oracle=oracle,
        push=push,
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
        return [{name: np.array(values) for name, values in columns.items()} for columns in watch.columns]


class _Record:
    """Records what detectors predict of robots, and pushes these."""

    def __init__(self, simulation: Simulation, cfg: DiagnosisCfg, rows: NDArray[np.int64]) -> None:
        self._simulation, self._push = simulation, cfg.push
        self._random = [np.random.default_rng((int(cfg.seed[row]), int(row))) for row in rows]
        self._next_push = [random.uniform(*PUSH_EVERY) for random in self._random]
        self._nominal = joint_limits(simulation.kind.bounds)
        self._labeller: Labeller | None = None
        self.columns: list[dict[str, list[Any]]] = [{} for _ in rows]

    def before_step(self, step: int, faults: Faults, up: NDArray[np.bool_]) -> None:
        """See :class:`umc.sim2sim.rollout.Watch`."""
        if self._labeller is None:
            self._labeller = Labeller(faults.state, self._nominal)
        labels = self._labeller()
        self._label, self._joint = (
            torch.stack((labels.sensor, labels.joint), -1)[faults.envs],
            labels.joint[faults.envs],
        )
        self._severity, self._step, self._up = labels.severity[faults.envs], step, up.copy()
        if self._push:
            for index in np.flatnonzero(up):
                self._push_robot(int(index), step * self._simulation.step_dt)

    def _push_robot(self, index: int, time: float) -> None:
        """Change the speed of a robot's trunk, as Isaac Lab's ``push_by_setting_velocity`` does, if it is time."""
        if time >= self._next_push[index]:
            random = self._random[index]
            self._simulation.robots[index].data.qvel[:2] += random.uniform(-PUSH, PUSH, 2)
            self._next_push[index] += random.uniform(*PUSH_EVERY)

    def after_step(self, faults: Faults, up: NDArray[np.bool_]) -> None:
        """See :class:`umc.sim2sim.rollout.Watch`."""
        assert self._labeller is not None
        robots, runners = (many[: len(up)] for many in (self._simulation.robots, self._simulation.runners))
        columns = (
            [getattr(robot, name) for robot in robots] for name in ("joint_position", "joint_velocity", "demanded")
        )
        limits = JointLimits(
            *(
                value.expand(faults.state.num_envs, -1)[faults.envs]
                for value in vars(faults.state.limits(self._nominal)).values()
            )
        )
        acts = limits_act(limits, self._nominal, *(torch.as_tensor(np.array(column)) for column in columns))
        hinders = ((acts & (self._joint > 0)) | (self._joint > self._labeller.limiting)) & torch.as_tensor(up)[:, None]
        for index in np.flatnonzero(self._up):
            detector = runners[index].detector
            assert detector is not None
            values = {
                "starts": self._step == 0,
                "label": self._label[index].to(torch.int8).numpy(),
                "severity": self._severity[index].half().numpy(),
                "faulty": np.stack([1.0 - one[:, 0] for one in detector.probabilities], -1).astype(np.float16),
                "kind": np.stack([one[:, 1:].argmax(1) + 1 for one in detector.probabilities], -1).astype(np.int8),
                "reported": detector.reported,
                "hinders": hinders[index].numpy(),
                "speed": np.float16(np.linalg.norm(robots[index].velocity[:2])),
            }
            for name, value in values.items():
                self.columns[index].setdefault(name, []).append(value)


def record(cfg: DiagnosisCfg, workers: int | None = None) -> Recording:
    """Simulate all robots of the cfg, and record what their detectors predict: one episode after another."""
    runner = DiagnosisSimulation(cfg)  # refuses here what each process would refuse
    found: dict[int, Columns] = {}
    for rows, columns in simulate(runner, workers):
        found |= dict(zip(rows.tolist(), columns, strict=True))
    kind, names = runner.simulation.kind, runner.simulation.kind.motors.names
    labeller = Labeller(FaultState(runner.simulation.source, 1), joint_limits(kind.bounds))
    whole = {name: np.concatenate([found[row][name] for row in sorted(found)])[:, None] for name in found[0]}
    return Recording(runner.simulation.step_dt, names, kinds=labeller.kinds, **whole)
