# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How many robots still stand, how long after onset."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import torch

from umc.evaluation.metrics import Episodes, Outcome
from umc.evaluation.statistics import LEVEL, Floats


@dataclass(frozen=True)
class Survival:
    """A Kaplan-Meier curve: it falls at each time and stays until the next; every array has the shape (T,)."""

    time: Floats
    """Times since onset [s], the first is 0."""
    standing: Floats
    """Share of the robots that still stand."""
    low: Floats
    """Lower end of the interval at each time."""
    high: Floats
    """Upper end."""
    at_risk: Floats
    """Robots that were still watched just before."""


def kaplan_meier(
    episodes: Episodes, step_dt: float, select: torch.Tensor | None = None, level: float = LEVEL
) -> Survival | None:
    """How many of the judged robots still stand; those whose episode ended standing count until then.

    Args:
        episodes: What the robots did.
        step_dt: Duration of an env step [s].
        select: Which robots count; all without it. Shape is (num_envs,).
        level: Part of the intervals that hold the true share.
    """
    outcome = episodes.outcome
    judged = (outcome == Outcome.UP) | (outcome == Outcome.FAILED)
    judged = judged if select is None else judged & select
    if not bool(judged.any()):
        return None
    fell = (outcome[judged] == Outcome.FAILED).numpy()
    # a robot that falls in the first step after onset has made none
    steps = episodes.steps_after_onset[judged].numpy() + fell
    times = np.unique(steps)
    falls = np.array([(fell & (steps == time)).sum() for time in times])
    at_risk = np.array([(steps >= time).sum() for time in times])
    standing = np.cumprod(1.0 - falls / at_risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        greenwood = np.cumsum(falls / (at_risk * (at_risk - falls)))
        spread = NormalDist().inv_cdf(0.5 + level / 2.0) * np.sqrt(greenwood) / np.abs(np.log(standing))
        low, high = standing ** np.exp(spread), standing ** np.exp(-spread)
    sure = (standing == 1.0) | (standing == 0.0)
    low, high = np.where(sure, standing, low), np.where(sure, standing, high)
    return Survival(
        time=np.concatenate([[0.0], times * step_dt]),
        standing=np.concatenate([[1.0], standing]),
        low=np.concatenate([[1.0], low]),
        high=np.concatenate([[1.0], high]),
        at_risk=np.concatenate([[float(len(steps))], at_risk]),
    )
