# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Choose from which probability on faults are reported, by the false alarms that are accepted."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from umc.faults.detection import SECONDS_PER_MINUTE

CANDIDATES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999)
"""Probabilities from which on a fault may be reported."""

RELEASE = 0.5
"""Probability below which a report ends, of that from which on it starts [-]."""

AFTERMATH_S = 1.0
"""How long after a fault has ended a report of it is no false alarm [s]."""

ON_STEPS = 3
"""Consecutive env steps above the threshold before a fault is reported."""

LEAST_MINUTES = 1e-9
"""Time that takes the place of none [min]."""


@dataclass(frozen=True)
class Threshold:
    """When a fault is reported."""

    on: float
    """Probability from which on, for :data:`ON_STEPS` in a row."""
    off: float
    """Probability below which no longer."""
    false_alarms: float
    """False alarms of a robot that it gave [1/min]."""


def decide(faulty: Tensor, starts: Tensor, on: Tensor) -> Tensor:
    """Return what would be reported for several thresholds.

    Args:
        faulty: Probabilities of a fault. Shape is (T, E, J).
        starts: Where episodes begin, bool. Shape is (T, E).
        on: Probabilities from which on. Shape is (C,).

    Returns:
        Reports, bool. Shape is (T, C, E, J).
    """
    shape = (len(on), *faulty.shape[1:])
    count = torch.zeros(shape, dtype=torch.long, device=faulty.device)
    reported = torch.zeros(shape, dtype=torch.bool, device=faulty.device)
    high, low = on[:, None, None], RELEASE * on[:, None, None]
    reports = []
    for probability, begins in zip(faulty, starts, strict=True):
        kept = ~begins[None, :, None]
        count = torch.where(probability >= high, count * kept + 1, 0)
        reported = (reported & kept & (probability >= low)) | (count >= ON_STEPS)
        reports.append(reported)
    return torch.stack(reports)


def false_alarms(reports: Tensor, faulty: Tensor, starts: Tensor, step_dt: float) -> tuple[Tensor, float]:
    """Count how often something is reported of robots without a fault.

    A robot counts again :data:`AFTERMATH_S` after its fault has ended.

    Args:
        reports: What is reported, for several thresholds, bool. Shape is (T, C, E, J).
        faulty: Robots that have a fault, bool. Shape is (T, E).
        starts: Where episodes begin, bool. Shape is (T, E).
        step_dt: Length of an env step [s].

    Returns:
        False alarms for each threshold, shape (C,), and the time that the robots walked without a fault [min].
    """
    longest = round(AFTERMATH_S / step_dt)
    since = torch.full(faulty.shape[1:], longest, device=faulty.device)
    alarms = torch.zeros(reports.shape[1], device=faulty.device)
    before, steps = torch.zeros_like(reports[0]), 0
    for report, broken, begins in zip(reports, faulty, starts, strict=True):
        since = torch.where(broken, 0, torch.where(begins, longest, since) + 1)
        healthy = since > longest
        rises = report & ~(before & ~begins[None, :, None])
        alarms += (rises & healthy[None, :, None]).sum(dim=(1, 2))
        before, steps = report, steps + int(healthy.sum())
    return alarms, steps * step_dt / SECONDS_PER_MINUTE


def false_alarm_rates(probability: Tensor, faulty: Tensor, starts: Tensor, step_dt: float) -> list[float]:
    """Return false alarms of a robot [1/min] for each of :data:`CANDIDATES`, of probabilities (T, E, J)."""
    reports = decide(probability, starts, torch.tensor(CANDIDATES, device=probability.device))
    alarms, minutes = false_alarms(reports, faulty, starts, step_dt)
    return (alarms / max(minutes, LEAST_MINUTES)).tolist()


def choose(probability: Tensor, faulty: Tensor, starts: Tensor, step_dt: float, most: float) -> Threshold:
    """Return the lowest threshold with at most so many false alarms of a robot [1/min]; the highest if none has.

    ``probability`` is what was predicted, (T, E, J); ``faulty`` and ``starts`` are as in :func:`false_alarms`.
    """
    rates = false_alarm_rates(probability, faulty, starts, step_dt)
    best = next((number for number, rate in enumerate(rates) if rate <= most), len(rates) - 1)
    return Threshold(CANDIDATES[best], RELEASE * CANDIDATES[best], rates[best])
