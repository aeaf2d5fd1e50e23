# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Rollouts of protocols and ledgers in plain MuJoCo, and their results in the form that reports read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from umc.evaluation.gait import GaitRecorder, GaitReport
from umc.evaluation.metrics import EpisodeRecorder, Step
from umc.evaluation.protocol import Protocol, Setting, disturbances
from umc.evaluation.session import AS_EVALUATED
from umc.evaluation.study import EpisodeBatch, PolicyResult, Study, assign_envs, faulty_joints, severities
from umc.faults import FaultState, Ledger, Scenario, find_scenario
from umc.faults.plan import NEVER
from umc.sim2sim.external import ExternalRobotPolicy
from umc.sim2sim.robot import SolverCfg
from umc.sim2sim.rollout import RolloutCfg, Simulation, Trace, run_rollout
from umc.utils.errors import UmcError
from umc.utils.provenance import git_state, now, versions


def protocol_rollout(
    protocol: Protocol, policy: Path | ExternalRobotPolicy, episodes: int, solver: SolverCfg
) -> RolloutCfg:
    """Configure ``episodes`` robots of each cell of a protocol, with the same faults as in Isaac Lab."""
    assignment = assign_envs(protocol, episodes * len(protocol.cells))
    cell, member = assignment.cell.numpy(), assignment.member.numpy()
    return RolloutCfg(
        policy=policy,
        command=protocol.command,
        steps=protocol.steps,
        env=np.arange(len(cell)),
        episode=np.zeros(len(cell), dtype=np.int64),
        seed=np.array([setting.seed for setting, _ in protocol.cells])[cell],
        member=member,
        cell=cell,
        cases=protocol.cases(),
        noise=protocol.noise,
        push_speed=protocol.push,
        solver=solver,
    )


def ledger_rollout(
    ledger: Ledger,
    base: Protocol,
    policy: Path | ExternalRobotPolicy,
    steps: int | None,
    episodes: int | None,
    solver: SolverCfg,
) -> tuple[Protocol, RolloutCfg]:
    """Configure a robot for each episode of a ledger, and describe the ledger as a protocol with one setting.

    ``base`` is a protocol of the same robot, whose command and radii are taken over. An episode has ``steps`` env
    steps, by default those of the longest recorded one; of each env ``episodes`` are taken, by default all.
    """
    first: dict[int, int] = {}  # of a resumed training not 0
    for env, number in ledger.episodes:
        first[env] = min(number, first.get(env, number))
    kept = {key: one for key, one in ledger.episodes.items() if episodes is None or key[1] < first[key[0]] + episodes}
    if not kept:
        raise UmcError(f"the ledger {ledger.path} holds no episode; record it again")
    steps = steps or max(one.length or 0 for one in kept.values())
    if not steps:
        raise UmcError(f"no episode of the ledger {ledger.path} has ended; say how long they are with --steps")
    names = [_known(one.faults[0].scenario) for one in kept.values()]
    scenarios = tuple(dict.fromkeys(names))
    onsets = [fault.onset for one in kept.values() for fault in one.faults if fault.onset is not None]
    onset = int(np.median(onsets)) if onsets else 1  # of healthy episodes: the others have their own
    setting = Setting(seed=ledger.header.seed, onset=min(max(1, onset), steps - 1))
    protocol = replace(
        base,
        name=f"ledger {ledger.path.name}",
        num_envs=ledger.header.num_envs,
        steps=steps,
        num_joints=(1, len(ledger.header.joint_names)),
        severity={},
        settings=(setting,),
        scenarios=scenarios,
        track={},
    )
    env, episode = np.array(list(kept)).T
    return protocol, RolloutCfg(
        policy=policy,
        command=protocol.command,
        steps=steps,
        env=env,
        episode=episode,
        seed=np.full(len(env), ledger.header.seed),
        member=episode * ledger.header.num_envs + env,
        cell=np.array([scenarios.index(name) for name in names]),
        ledger=ledger.path,
        noise=protocol.noise,
        push_speed=protocol.push,
        solver=solver,
    )


def _known(scenario: Scenario) -> str:
    """Return a scenario's name as protocols read it; a user's own is described by its kinds."""
    try:
        find_scenario(scenario.name)
    except UmcError:
        return "+".join(scenario.kinds) or "normal"
    return scenario.name


def evaluate(cfg: RolloutCfg, protocol: Protocol, command_line: str, workers: int | None = None) -> Study:
    """Simulate the robots of a protocol; return a study of one policy, as ``umc evaluate`` does."""
    description = cfg.description
    checkpoint, name = description["checkpoint"], Path(description["checkpoint"]["file"]).stem
    policy = {"path": checkpoint["file"], "sha256": checkpoint["sha256"], **description["trained"]}
    if "reads" in description:
        policy["reads"] = description["reads"]
    run = episode_batch(cfg, run_rollout(cfg, workers), protocol)
    return Study(
        protocol=protocol,
        step_dt=description["control"]["policy_dt_s"],
        joint_names=tuple(joint["name"] for joint in description["joints"]),
        about=about(cfg, command_line),
        policies=(PolicyResult(name, name, policy, run),),
        feet=tuple(description["feet"]),
    )


def about(cfg: RolloutCfg, command_line: str) -> dict[str, Any]:
    """Describe in plain values how a report was made."""
    return {
        "task": cfg.description["trained"]["task"],
        "physics": f"mujoco {mujoco.__version__}",
        "device": "cpu",
        "substeps": cfg.solver.substeps,
        "contact_time_s": cfg.solver.contact_time,
        "mjcf": None if cfg.mjcf is None else cfg.mjcf.name,
        "targets": "clamped to the joint limits" if cfg.clamp else "not clamped",
        "ground": "flat",
        "action": AS_EVALUATED["action"],
        **disturbances(cfg.noise, cfg.push_speed),
        "randomised": "starts and physics, from the ranges of training, drawn by another generator",
        "ledger": None if cfg.ledger is None else str(cfg.ledger),
        "command_line": command_line,
        "time": now(),
        "git": git_state(),
        "versions": {**versions(), "mujoco": mujoco.__version__},
    }


def episode_batch(cfg: RolloutCfg, trace: Trace, protocol: Protocol) -> EpisodeBatch:
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
        joints[at], onset[at] = faulty_joints(state)[envs], state.onset[envs]
        for kind, values in severities(state).items():
            severity[kind][at] = values[envs].to(severity[kind].dtype)
    cell, member = torch.as_tensor(cfg.cell), torch.as_tensor(cfg.member)
    setting_onset = torch.tensor([setting.onset for setting, _ in protocol.cells])[cell]
    if cfg.ledger is None:
        onset = setting_onset
    else:
        onset = torch.where(onset == NEVER, setting_onset, onset)
        member = torch.stack([(cell[:row] == cell[row]).sum() for row in range(count)])
    recorder = EpisodeRecorder(onset)
    for number in range(cfg.steps):
        recorder.record(_step(trace, number))
    contact = torch.as_tensor(trace.contact)
    stance = contact[(onset - 1).clamp(0, cfg.steps - 1), torch.arange(count)]
    return EpisodeBatch(recorder.episodes(), cell, member, onset, joints, severity, stance)


def measure_gait(cfg: RolloutCfg, workers: int | None = None) -> GaitReport:
    """Simulate healthy robots; return the figures of their gait."""
    trace = run_rollout(cfg, workers)
    recorder = GaitRecorder(len(cfg.env), cfg.description["feet"])
    for number in range(cfg.steps):
        recorder.record(_step(trace, number), torch.as_tensor(trace.contact[number]))
    return recorder.report(cfg.command, cfg.description["control"]["policy_dt_s"], cfg.steps)


def _step(trace: Trace, number: int) -> Step:
    """State after env step ``number``, counted from 0."""
    values = {name: torch.as_tensor(rows[number]) for name, rows in vars(trace).items() if name != "contact"}
    return Step(**values, timed_out=torch.zeros_like(values["fell"]), number=number + 1)
