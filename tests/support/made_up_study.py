# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A study of made-up robots: what a report is made of, without a simulator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from umc.evaluation.metrics import NOT_RECOVERED, Episodes, Outcome, Score, mean_of_known
from umc.evaluation.protocol import Protocol, protocol_for
from umc.evaluation.study import EpisodeBatch, PolicyResult, Study, assign_envs

STEP_DT = 0.02
"""Env step of the paper's tasks [s]."""

FEET = ("FL", "FR", "RL", "RR")
JOINTS = tuple(f"{leg}_{part}_joint" for leg in FEET for part in ("hip", "thigh", "calf"))
"""Feet and joints of A1."""

POLICIES = (("example A", 0.9), ("example B", 2.1), ("example C", 2.6))
"""Names of made-up policies, and how well each tolerates faults (larger is better)."""

NOTE = "These robots are made up; their figures mean nothing."
"""First line of the report."""

HARDNESS = {1: 0.9, 2: 1.7, 3: 1.9, 4: 1.5, 5: 1.2, 6: 1.4, 7: 1.0, 8: -1.5}
"""How hard each scenario is."""


def made_up_study(
    members: int = 40,
    policies: Sequence[tuple[str, float]] = POLICIES,
    train_seeds: int = 1,
    vary_severity: bool = False,
    seed: int = 0,
    protocol: Protocol | None = None,
) -> Study:
    """Return a study of made-up robots."""
    protocol = protocol or protocol_for("a1")
    assignment = assign_envs(protocol, members * len(protocol.cells))
    rng = torch.Generator().manual_seed(seed)
    setting = assignment.cell // len(protocol.scenarios)
    robot = setting * members + assignment.member  # the same in every scenario
    robots = int(robot.max()) + 1
    # what a robot has in common in all scenarios and under all policies
    luck = torch.randn(robots, generator=rng)[robot]
    joints = torch.rand(robots, len(JOINTS), generator=rng).argsort(dim=1).argsort(dim=1)[robot] < 4
    stances = torch.tensor([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 1, 1]]).bool()
    stance = stances[torch.randint(3, (robots,), generator=rng)[robot]]
    torque = torch.rand(robots, generator=rng)[robot] * 12.0 + 4.0
    scenario = torch.tensor([number for _, number in protocol.cells])[assignment.cell]
    hardness = torch.tensor([HARDNESS[int(number)] for number in scenario])
    hardness = hardness + 0.35 * (joints[:, 2::3].sum(dim=1) - 1.33) * (scenario < 8)
    weak = (scenario == 3) | (scenario == 6)
    if vary_severity:
        hardness = hardness + torch.where(weak, (8.0 - torque) * 0.25, 0.0)
    severity = {"effort": torch.where(weak, torque, torch.nan)} if vary_severity else None
    joints = joints & (scenario < 8)[:, None]

    results = []
    for name, skill in policies:
        for number in range(train_seeds):
            drift = 0.0 if train_seeds == 1 else float(torch.randn(1, generator=rng)) * 0.35
            ease = skill + drift - hardness + 0.8 * luck
            episodes = _episodes(protocol, assignment.onset, ease, rng)
            run = EpisodeBatch(episodes, assignment.cell, assignment.member, assignment.onset, joints, severity, stance)
            label = name if train_seeds == 1 else f"{name} seed {number + 1}"
            about = {"checkpoint": f"(made up, skill {skill:g})", "train_seed": number + 1}
            results.append(PolicyResult(label, name, about, run))
    about = {"task": "none", "physics": "none", "device": "none", "seed": seed, "note": NOTE}
    return Study(protocol, STEP_DT, JOINTS, about, tuple(results), FEET)


def average(scores: Sequence[Score]) -> Score:
    """Average scores as the paper does, without the sums of RobotTable: every scenario weighs the same."""
    values = np.array([list(one.values.values()) for one in scores], dtype=float)  # None becomes NaN
    counts = {name: sum(one.counts[name] for one in scores) for name in scores[0].counts}
    return Score.of(counts, scores[0].values, mean_of_known(values))


def _episodes(protocol: Protocol, onset: torch.Tensor, ease: torch.Tensor, rng: torch.Generator) -> Episodes:
    """Make up what robots do; the larger ``ease``, the fewer fall."""

    def noise(scale: float) -> torch.Tensor:
        return torch.randn(len(onset), generator=rng) * scale

    rest = protocol.steps - onset
    patience = (ease * 0.9).exp() * 900.0
    fall = (-torch.rand(len(onset), generator=rng).log() * patience).long() + 3
    failed = fall < rest
    steps = torch.where(failed, fall, rest)
    outcome = torch.where(failed, int(Outcome.FAILED), int(Outcome.UP))
    stumbles = torch.rand(len(onset), generator=rng) < 0.006
    outcome = torch.where(stumbles, int(Outcome.FELL_BEFORE_ONSET), outcome)
    before = (0.47 + noise(0.02)).clamp(min=0.1)
    after = (before * torch.sigmoid(0.8 * ease + 0.7 + noise(0.5))).clamp(min=0.01)
    distance = torch.where(stumbles, 0.0, after * steps * STEP_DT * 0.97)
    recovery = torch.where(
        failed | stumbles | (after < 0.8 * before), NOT_RECOVERED, (60.0 * (-0.4 * ease).exp()).long().clamp(0, 400)
    )
    return Episodes(
        outcome=outcome,
        distance=distance,
        steps_after_onset=torch.where(stumbles, 0, steps),
        speed_before_onset=before,
        height_after_onset=0.27 + noise(0.01) - 0.02 * failed,
        speed_after_onset=after,
        error_before_onset=(0.5 - before).abs() + 0.03,
        error_after_onset=(0.5 - after).abs() + 0.05,
        energy_after_onset=distance * (60.0 + 25.0 * (-0.5 * ease).exp()),
        recovery=recovery,
    )
