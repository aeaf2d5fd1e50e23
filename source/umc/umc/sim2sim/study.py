# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Rollouts of protocols and ledgers in plain MuJoCo, and their results in the form that reports read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from umc.evaluation.gait import GaitRecorder, GaitReport
from umc.evaluation.metrics import EpisodeRecorder, Step
from umc.evaluation.protocol import Protocol, Setting, protocol_for
from umc.evaluation.study import EpisodeBatch, PolicyResult, Study, severities
from umc.faults import FaultState, Ledger, find_scenario
from umc.faults.plan import NEVER
from umc.sim2sim.rollout import RolloutCfg, Simulation, Trace
from umc.utils.errors import UmcError


def protocol_rollout(protocol: Protocol, description: Path, episodes: int, substeps: int = 1) -> RolloutCfg:
    """Configure the cells and members of a protocol, with the same faults as in Isaac Lab."""
    cell, member = protocol.deal(episodes * len(protocol.cells))
    seeds = np.array([setting.seed for setting, _ in protocol.cells])
    count = len(cell)
    return RolloutCfg(
        description=description,
        robot=protocol.robot,
        command=protocol.command,
        steps=protocol.steps,
        env=np.arange(count),
        episode=np.zeros(count, dtype=np.int64),
        seed=seeds[cell.numpy()],
        member=member.numpy(),
        cases=protocol.cases(),
        case=cell.numpy(),
        substeps=substeps,
    )


def ledger_protocol(
    ledger: Ledger,
    robot: str,
    base: str,
    steps: int | None = None,
    radii: Sequence[float] | None = None,
    episodes: int | None = None,
) -> tuple[Protocol, list[str]]:
    """Describe a ledger as a protocol with one setting, and name the scenario of each of its episodes.

    Command and radii are those of the protocol ``base``, unless ``radii`` [m] are given; ``steps`` [env steps] is the
    length of the longest recorded episode if None, ``episodes`` of each env are all if None.
    """
    kept = [one for key, one in ledger.episodes.items() if episodes is None or key[1] < episodes]
    if not kept:
        raise UmcError(f"the ledger {ledger.path} holds no episode; record it again")
    longest = max((one.length or 0 for one in kept), default=0)
    if steps is None and longest == 0:
        raise UmcError(f"no episode of the ledger {ledger.path} has ended; say how long they are with --steps")
    # a user's own scenario is described by its kinds
    names = [one.faults[0].scenario.name for one in kept]
    scenarios = {one.faults[0].scenario.name: one.faults[0].scenario for one in kept}
    known = {name: _known(name, scenario.kinds) for name, scenario in scenarios.items()}
    onsets = [fault.onset for one in kept for fault in one.faults if fault.onset is not None]
    setting = Setting(seed=ledger.header.seed, onset=max(1, int(np.median(onsets))) if onsets else 1)
    protocol = replace(
        protocol_for(robot, radii=radii, name=base),
        name=f"ledger {ledger.path.name}",
        num_envs=ledger.header.num_envs,
        steps=steps or longest,
        num_joints=(1, len(ledger.header.joint_names)),
        severity={},
        settings=(setting,),
        scenarios=tuple(dict.fromkeys(known.values())),
        track={},
    )
    return protocol, [known[name] for name in names]


def ledger_rollout(
    ledger: Ledger, protocol: Protocol, description: Path, episodes: int | None = None, substeps: int = 1
) -> RolloutCfg:
    """Configure the robots of a ledger, one for each episode (of the first ``episodes`` of each env)."""
    keys = np.array([key for key in ledger.episodes if episodes is None or key[1] < episodes])
    env, episode = keys[:, 0], keys[:, 1]
    return RolloutCfg(
        description=description,
        robot=protocol.robot,
        command=protocol.command,
        steps=protocol.steps,
        env=env,
        episode=episode,
        seed=np.full(len(keys), ledger.header.seed),
        member=episode * ledger.header.num_envs + env,
        ledger=ledger.path,
        substeps=substeps,
    )


def episode_batch(
    cfg: RolloutCfg, trace: Trace, protocol: Protocol, scenarios: Sequence[str] | None = None
) -> EpisodeBatch:
    """Evaluate a trace by the recorder that evaluates Isaac Lab's robots."""
    count = len(cfg.env)
    source = Simulation(cfg).source
    state = FaultState(source, cfg.num_envs)
    joints = torch.zeros(count, len(source.joint_names), dtype=torch.bool)
    severity = {kind.name: torch.full((count,), torch.nan) for kind in source.kinds}
    onset = torch.full((count,), NEVER)
    for episode in np.unique(cfg.episode):
        rows = np.flatnonzero(cfg.episode == episode)
        envs, at = torch.as_tensor(cfg.env[rows]), torch.as_tensor(rows)
        state.episode[envs] = int(episode) - 1
        state.reset(envs)
        joints[at], onset[at] = state.joints[envs], state.onset[envs]
        for kind, values in severities(state).items():
            severity[kind][at] = values[envs].to(severity[kind].dtype)
    setting = protocol.settings[0]
    if scenarios is None:
        cell = torch.as_tensor(cfg.case)
        onset = torch.tensor([one.onset for one, _ in protocol.cells])[cell]
        member = torch.as_tensor(cfg.member)
    else:
        cell = torch.tensor([protocol.scenarios.index(name) for name in scenarios])
        onset = torch.where(onset == NEVER, setting.onset, onset)
        member = torch.stack([(cell[:row] == cell[row]).sum() for row in range(count)])
    recorder = EpisodeRecorder(onset)
    for number in range(cfg.steps):
        recorder.record(_step(trace, number))
    contact = torch.as_tensor(trace.contact)
    stance = contact[(onset - 1).clamp(0, cfg.steps - 1), torch.arange(count)]
    return EpisodeBatch(recorder.episodes(), cell, member, onset, joints, severity, stance)


def gait_of(trace: Trace, feet: Sequence[str], command: float, step_dt: float) -> GaitReport:
    """Measure the gait of healthy robots; command is the forward speed [m/s], step_dt an env step [s]."""
    steps, count = trace.fell.shape
    recorder = GaitRecorder(count, feet)
    for number in range(steps):
        recorder.record(_step(trace, number), torch.as_tensor(trace.contact[number]))
    return recorder.report(command, step_dt, steps)


def _step(trace: Trace, number: int) -> Step:
    """State after env step ``number``, counted from 0."""
    names = ("position", "forward_velocity", "height", "fell", "non_finite", "velocity_error", "work")
    values = {name: torch.as_tensor(getattr(trace, name)[number]) for name in names}
    return Step(**values, timed_out=torch.zeros_like(values["fell"]), number=number + 1)


def study_of(protocol: Protocol, run: EpisodeBatch, sheet: Mapping[str, Any], about: Mapping[str, Any]) -> Study:
    """Make a study of one policy, as scripts/evaluate.py does."""
    name = Path(sheet["checkpoint"]["file"]).stem
    policy = {"path": sheet["checkpoint"]["file"], "sha256": sheet["checkpoint"]["sha256"], **sheet["trained"]}
    return Study(
        protocol=protocol,
        step_dt=sheet["control"]["policy_dt_s"],
        joint_names=tuple(joint["name"] for joint in sheet["joints"]),
        about=about,
        policies=(PolicyResult(name, name, policy, run),),
        feet=tuple(sheet["feet"]),
    )


def _known(name: str, kinds: Sequence[str]) -> str:
    """Return a scenario's name as a protocol reads it."""
    try:
        find_scenario(name)
    except UmcError:
        return "+".join(kinds)
    return name
