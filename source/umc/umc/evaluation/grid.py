# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps as data: grids of severity, joint and onset, and the policies of an ablation; files in ``config/sweeps``."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from umc.evaluation.protocol import DEFAULT_PROTOCOL, Protocol, Setting
from umc.utils.config import read_sweep_file
from umc.utils.errors import UmcError

EACH = "each"
"""Stands in ``grid.joints`` for every joint of the robot, one at a time."""

_GRID_KEYS = {"seed", "onset", "joints", "severity"}


@dataclass(frozen=True)
class Sweep:
    """What a sweep changes of a protocol, and which policies it compares."""

    name: str
    protocol: str = DEFAULT_PROTOCOL
    """Name or path of the protocol that holds everything else."""
    scenarios: tuple[int | str, ...] | None = None
    """Scenarios of the grid; the protocol's if None."""
    episodes: int | None = None
    """Robots of each cell; as many as fit if None."""
    grid: Mapping[str, Any] | None = None
    """Lists ``seed``, ``onset``, ``joints`` and ``severity``; every combination is a setting. None: the protocol's."""
    agents: tuple[str, ...] = ()
    """Agents whose trained policies are compared where no checkpoint is given."""

    def apply(self, protocol: Protocol, joint_names: Sequence[str], quick: bool = False) -> Protocol:
        """Put the grid into a protocol."""
        named = replace(protocol, name=self.name)
        if self.grid is None:
            return named
        first = protocol.settings[0]
        axes = [
            self._axis("seed", [first.seed]),
            self._axis("onset", [first.onset]),
            self._axis("severity", [{}]),
            self._joints(joint_names),
        ]
        if quick:
            axes[1] = [first.onset]
            axes = [axis[:2] for axis in axes]
        settings = tuple(
            Setting(seed, onset, first.perlin_seed, joints, severity)
            for seed, onset, severity, joints in itertools.product(*axes)
        )
        return replace(named, settings=settings)

    def _axis(self, name: str, default: list[Any]) -> list[Any]:
        values = (self.grid or {}).get(name, default)
        kind = Mapping if name == "severity" else int
        if not isinstance(values, list) or not values or not all(isinstance(value, kind) for value in values):
            wanted = "mappings such as {rom: 0.3}" if name == "severity" else "numbers"
            raise UmcError(f"grid.{name} of sweep {self.name} must be a list of {wanted}")
        return values

    def _joints(self, joint_names: Sequence[str]) -> list[tuple[str, ...] | None]:
        values = (self.grid or {}).get("joints")
        if values is None:
            return [None]
        if values == EACH:
            return [(name,) for name in joint_names]
        if not isinstance(values, list) or not values:
            raise UmcError(f"grid.joints of sweep {self.name} must be '{EACH}' or a list of joints or lists of joints")
        groups = [(value,) if isinstance(value, str) else tuple(value) for value in values]
        for name in itertools.chain.from_iterable(groups):
            if name not in joint_names:
                raise UmcError(f"grid.joints of sweep {self.name}: no joint {name}; it has {', '.join(joint_names)}")
        return list(groups)

    def checkpoints(self, robot: str, logs: Path) -> list[str]:
        """Trained policies of the sweep's agents: of each training seed the run that was written last."""
        if not self.agents:
            raise UmcError("--checkpoint is missing; give a model_<iteration>.pt or a run folder")
        return [str(path) for agent in self.agents for path in _trained(agent, robot, logs)]


def _trained(agent: str, robot: str, logs: Path) -> list[Path]:
    from umc.rl.agents import AGENTS
    from umc.rl.checkpoint import checkpoint_info, checkpoints_in, read_checkpoint
    from umc.utils.naming import LIBRARIES, experiment_folder, experiment_name

    if agent not in AGENTS:
        raise UmcError(f"unknown agent {agent} in the sweep; choose of {', '.join(AGENTS)}")
    stage = AGENTS[agent].stages[-1]
    newest: dict[int, Path] = {}
    for library in LIBRARIES:
        experiment = experiment_folder(logs, experiment_name(robot, agent, stage), library)
        last = [found[-1] for run in sorted(experiment.glob("*")) if (found := checkpoints_in(run))]
        for path in sorted(last, key=lambda path: path.stat().st_mtime_ns):
            newest[checkpoint_info(read_checkpoint(path), path).seed] = path
    if not newest:
        task = f"UMC-{robot.upper() if len(robot) == 2 else robot.capitalize()}-Stage{stage}"
        raise UmcError(
            f"no trained {agent} of {robot} under {logs}; train it with scripts/train.py --task {task} --agent {agent},"
            " or leave it out with sweep.agents=[...]"
        )
    return [newest[seed] for seed in sorted(newest)]


def read_sweep(name: str, overrides: Mapping[str, Any] | None = None) -> Sweep:
    """Read a sweep for evaluation."""
    file = read_sweep_file(name, overrides or {})
    if wrong := sorted(set(file.grid or {}) - _GRID_KEYS):
        known = ", ".join(sorted(_GRID_KEYS))
        raise UmcError(f"sweep {file.name}: unknown grid.{', grid.'.join(wrong)}; its grid can have {known}")
    return Sweep(
        name=file.name,
        protocol=file.protocol or DEFAULT_PROTOCOL,
        scenarios=None if file.scenarios is None else tuple(file.scenarios),
        episodes=file.episodes,
        grid=file.grid,
        agents=tuple(file.agent_names),
    )
