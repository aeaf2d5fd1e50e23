# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps of evaluations: grids of severity, joint and onset, and the policies of an ablation (``config/sweeps``)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from umc.evaluation.protocol import Protocol, Setting
from umc.training.sweep_file import EACH, SweepFile, SweepGrid
from umc.utils.cli import unknown
from umc.utils.errors import UmcError
from umc.utils.process import command_line


def apply_grid(sweep: SweepFile, protocol: Protocol, joint_names: Sequence[str], quick: bool = False) -> Protocol:
    """Return a protocol under the sweep's name, with a setting for every combination of its grid; as it is without one.

    The protocol's first setting holds what the grid does not vary; ``quick`` keeps its onset, and two values of
    everything else. Raises UmcError if the robot has no such joint.
    """
    if sweep.grid is None:
        return protocol
    first, grid = protocol.settings[0], sweep.grid
    onsets = [first.onset] if quick or grid.onset is None else grid.onset
    axes = [
        grid.seed or [first.seed],
        onsets,
        grid.severity or [first.severity],
        _joints(sweep.name, grid, joint_names),
    ]
    settings = [
        Setting(seed, onset, first.perlin_seed, joints, severity)
        for seed, onset, severity, joints in itertools.product(*(axis[:2] if quick else axis for axis in axes))
    ]
    return replace(protocol, name=sweep.name, settings=tuple(settings))


def _joints(name: str, grid: SweepGrid, joint_names: Sequence[str]) -> list[tuple[str, ...] | None]:
    """Return groups of joints that fail together."""
    if grid.joints is None:
        return [None]
    values = joint_names if grid.joints == EACH else grid.joints
    groups = [(value,) if isinstance(value, str) else tuple(value) for value in values]
    for joint in itertools.chain.from_iterable(groups):
        if joint not in joint_names:
            raise UmcError(f"sweep {name}: grid.joints: no joint {joint}; it has {', '.join(joint_names)}")
    return [*groups]


def trained_policies(sweep: SweepFile, robot: str, logs: Path) -> list[str]:
    """Return checkpoints of a sweep's agents: of each training seed the last one of the newest run."""
    return [str(path) for agent in sweep.agent_names for path in _trained(agent, robot, logs)]


def _trained(agent: str, robot: str, logs: Path) -> list[Path]:
    from umc.rl.agents import AGENTS
    from umc.rl.checkpoint import checkpoint_info, checkpoints_in, read_checkpoint
    from umc.tasks.registry import task_id
    from umc.utils.naming import LIBRARIES, experiment_folder, experiment_name

    if agent not in AGENTS:
        raise UmcError(f"the sweep: {unknown('agent', agent, AGENTS)}")
    stage = AGENTS[agent].stages[-1]
    experiments = (experiment_folder(logs, experiment_name(robot, agent, stage), library) for library in LIBRARIES)
    runs = [run for experiment in experiments for run in sorted(experiment.glob("*"))]
    last = [found[-1] for run in runs if (found := checkpoints_in(run))]
    newest: dict[int, Path] = {}
    for path in sorted(last, key=lambda path: path.stat().st_mtime_ns):
        newest[checkpoint_info(read_checkpoint(path), path).seed] = path
    if not newest:
        command = command_line("train", ["--task", task_id(robot, stage), "--agent", agent])
        fix = f"train it with {command}, or leave it out with sweep.agents=[...]"
        raise UmcError(f"no trained {agent} of {robot} under {logs}; {fix}")
    return [newest[seed] for seed in sorted(newest)]
