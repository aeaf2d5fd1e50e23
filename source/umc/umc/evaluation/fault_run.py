# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Who takes part in an evaluation and what it brings home, whatever engine it runs in; no simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import torch

from umc.evaluation.metrics import Episodes
from umc.evaluation.protocol import Protocol
from umc.faults import FaultState


@dataclass(frozen=True)
class FaultRun:
    """An evaluation under faults; tensors live on the CPU."""

    episodes: Episodes
    cell: torch.Tensor
    """Cell of the protocol that every env belongs to. Shape is (num_envs,)."""
    member: torch.Tensor
    """Which robot of its cell every env is. Shape is (num_envs,)."""
    onset: torch.Tensor
    """Onset of every env [env steps]. Shape is (num_envs,)."""
    joints: torch.Tensor
    """Faulty joints of every env. Shape is (num_envs, num_joints)."""
    severity: Mapping[str, torch.Tensor] | None = None
    """By kind of fault: its severity, in the kind's unit, averaged over an env's faulty joints; NaN where the env has
    no such fault. None if not recorded. Shapes are (num_envs,)."""
    stance: torch.Tensor | None = None
    """Feet on the ground at onset; None if not recorded. Shape is (num_envs, num_feet)."""

    @classmethod
    def join(cls, runs: Sequence[FaultRun]) -> FaultRun:
        """Put batches together."""
        episodes = {
            field.name: torch.cat([getattr(run.episodes, field.name) for run in runs]) for field in fields(Episodes)
        }
        rest = {name: torch.cat([getattr(run, name) for run in runs]) for name in ("cell", "member", "onset", "joints")}
        stances = [run.stance for run in runs if run.stance is not None]
        severities = [run.severity for run in runs if run.severity is not None]
        whole = len(severities) == len(runs)
        return cls(
            Episodes(**episodes),
            **rest,
            severity={kind: torch.cat([one[kind] for one in severities]) for kind in severities[0]} if whole else None,
            stance=torch.cat(stances) if len(stances) == len(runs) else None,
        )


@dataclass(frozen=True)
class Lineup:
    """Who takes part in a batch."""

    cell: torch.Tensor
    """Cell of the protocol that every env belongs to. Shape is (num_envs,)."""
    member: torch.Tensor
    """Which robot of its cell every env is. Shape is (num_envs,)."""
    onset: torch.Tensor
    """Onset of every env [env steps]; healthy robots have one, to count from. Shape is (num_envs,)."""


def line_up(protocol: Protocol, num_envs: int, first_member: int = 0) -> Lineup:
    """Deal the cells of a protocol out."""
    cell, member = protocol.deal(num_envs, first_member)
    return Lineup(cell, member, torch.tensor([setting.onset for setting, _ in protocol.cells])[cell])


def severities(state: FaultState) -> dict[str, torch.Tensor]:
    """How bad the faults of this episode are.

    Returns:
        By kind: the mean over an env's faulty joints, NaN where it has no such fault. Shapes are (num_envs,).
    """
    plan = state.plan
    hit = plan.kinds[:, :, :, None] & plan.joints[:, :, None, :]
    mean = torch.where(hit, plan.severity, 0.0).sum((1, 3)) / hit.sum((1, 3))  # 0 / 0 is NaN
    return {kind.name: mean[:, number].cpu() for number, kind in enumerate(state.kinds)}
