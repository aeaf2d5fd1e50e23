# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a detector in the loop reports while robots are evaluated: what it finds, how late, and its false alarms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from umc.evaluation.metrics import Episodes
from umc.evaluation.statistics import Interval, poisson_rate, wilson
from umc.faults.detection import SECONDS_PER_MINUTE

NOT_FOUND = -1
"""Delay of a fault that was not found."""

WITHIN = (0.25, 1.0)
"""Times within which faults are found [s]."""


@dataclass(frozen=True)
class Detections:
    """What was reported of each robot, int64; every shape is (num_envs,)."""

    delay: torch.Tensor
    """Env steps from the onset to the first report of a faulty joint; :data:`NOT_FOUND` if none was reported."""
    found_joints: torch.Tensor
    """Faulty joints that were reported after the onset."""
    false_alarms: torch.Tensor
    """Joints that a report began of while the robot had no fault."""
    healthy_steps: torch.Tensor
    """Env steps without a fault."""


class DetectionRecorder:
    """Records reports step by step.

    Args:
        onset: The step after which each env's fault is on, counted from 1. Shape is (num_envs,).
        joints: Joints that fail. Shape is (num_envs, num_joints).
        faulty: Envs that get any fault, of the IMU, too. Shape is (num_envs,).
    """

    def __init__(self, onset: torch.Tensor, joints: torch.Tensor, faulty: torch.Tensor) -> None:
        self._onset, self._joints, self._faulty = onset, joints, faulty
        self._before = torch.zeros_like(joints)
        self._found = torch.zeros_like(joints)
        self._delay = torch.full_like(onset, NOT_FOUND)
        self._alarms, self._healthy = torch.zeros_like(onset), torch.zeros_like(onset)

    def record(self, number: int, reported: torch.Tensor, going: torch.Tensor) -> None:
        """Take the joints that are reported after env step ``number``, (num_envs, num_joints), of envs that go on."""
        broken = self._faulty & (number >= self._onset)
        healthy = going & ~broken
        self._alarms += ((reported & ~self._before).sum(dim=1)) * healthy
        self._healthy += healthy
        hit = reported & self._joints & (broken & going)[:, None]
        first = hit.any(dim=1) & (self._delay == NOT_FOUND)
        self._delay = torch.where(first, number - self._onset, self._delay)
        self._found |= hit
        self._before = reported.clone()

    def detections(self) -> Detections:
        """Return what has been recorded so far."""
        return Detections(self._delay, self._found.sum(dim=1), self._alarms, self._healthy)


@dataclass(frozen=True)
class DetectionScore:
    """Figures of some robots."""

    robots: int
    """Evaluated robots with a fault."""
    within: Mapping[float, Interval | None]
    """Part of them of which a faulty joint was reported within a time [s]; robots that fell before do not count."""
    ever: Interval | None
    """The same before they fell or the episode ended."""
    median_delay: float | None
    """Median time to the first report of a faulty joint [s], over all of them; None if most were never reported."""
    joints: float | None
    """Part of their faulty joints that was reported [-]."""
    false_alarms: Interval | None
    """False alarms of a robot without a fault, of all robots before their onset and of healthy ones [1/min]."""
    healthy_minutes: float
    """Time that these walked [min]."""

    def describe(self) -> dict[str, Any]:
        """Return plain values, as ``report.json`` holds them."""
        found = {**asdict(self), "within_s": {f"{t:g}": one and asdict(one) for t, one in self.within.items()}}
        del found["within"]
        return found


def detection_score(
    found: Detections, episodes: Episodes, joints: torch.Tensor, step_dt: float, select: torch.Tensor
) -> DetectionScore:
    """Return the figures of selected robots, (num_envs,); ``joints`` are those that fail, (num_envs, num_joints)."""
    faulty = select & episodes.evaluated & joints.any(dim=1)
    delay, lasted = found.delay[faulty], (episodes.steps_after_onset + episodes.failed)[faulty]
    reported = delay != NOT_FOUND
    within: dict[float, Interval | None] = {}
    for seconds in WITHIN:
        limit = round(seconds / step_dt)
        soon = reported & (delay <= limit)
        within[seconds] = wilson(int(soon.sum()), int((soon | (lasted > limit)).sum()))
    waits = torch.where(reported, delay * step_dt, math.inf)
    middle = float(waits.quantile(0.5)) if len(waits) else math.inf
    failing = int(joints[faulty].sum())
    minutes = int(found.healthy_steps[select].sum()) * step_dt / SECONDS_PER_MINUTE
    return DetectionScore(
        robots=int(faulty.sum()),
        within=within,
        ever=wilson(int(reported.sum()), int(faulty.sum())),
        median_delay=middle if math.isfinite(middle) else None,
        joints=int(found.found_joints[faulty].sum()) / failing if failing else None,
        false_alarms=poisson_rate(int(found.false_alarms[select].sum()), minutes),
        healthy_minutes=minutes,
    )
