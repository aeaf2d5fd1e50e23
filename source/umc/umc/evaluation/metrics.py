# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The paper's metrics, from what robots did step by step; pure torch, no simulator.

The definition (paper, section "Evaluation Metrics"): when the fault sets in, the robot's position is recorded.
*reached@k* counts the robots that get further than ``k`` metres from that position and do not fall before the episode
ends; *failed* counts those that fall. Both are shares of the robots that stood when the fault set in, so that
``reached@k + failed <= 1``, as in the paper's tables. Robots that fell before onset, and robots whose physics became
non-finite, say nothing about the policy under faults: they are left out and counted on lines of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from itertools import pairwise
from typing import Any

import torch

from umc.utils.errors import UmcError

RECOVERED = 0.8
"""Part of its speed before onset at which a robot has recovered [-]."""

RECOVERY_WINDOW = 25
"""Env steps over which the speed is averaged (exponentially) for it: 0.5 s, about a gait cycle, at 50 Hz."""

NOT_RECOVERED = -1
"""Recovery step of a robot that never recovered."""


class Outcome(IntEnum):
    """How an episode ended."""

    UP = 0
    """Did not fall after onset."""
    FAILED = 1
    """Fell after onset."""
    FELL_BEFORE_ONSET = 2
    """Fell while healthy; left out."""
    NON_FINITE = 3
    """The physics state became NaN or infinite; left out."""
    NO_ONSET = 4
    """Ended, without a fall, before the fault set in; left out."""


@dataclass(frozen=True)
class Episodes:
    """What each robot did; every tensor has the shape (num_envs,)."""

    outcome: torch.Tensor
    """:class:`Outcome` values."""
    distance: torch.Tensor
    """Greatest horizontal distance from the position at onset [m]; 0 where there was no onset."""
    steps_after_onset: torch.Tensor
    """Steps from onset to the fall or to the end."""
    speed_before_onset: torch.Tensor
    """Mean forward velocity in the robot's frame until onset [m/s]."""
    height_after_onset: torch.Tensor
    """Mean height of the trunk above the ground from onset to the fall or the end [m]."""
    speed_after_onset: torch.Tensor
    """Mean forward velocity in the robot's frame from onset to the fall or the end [m/s]."""
    error_before_onset: torch.Tensor
    """Mean error of the planar velocity until onset [m/s]."""
    error_after_onset: torch.Tensor
    """Mean error of the planar velocity from onset to the fall or the end [m/s]."""
    energy_after_onset: torch.Tensor
    """Mechanical work of the motors, negative power left out, from onset to the fall or the end [J]."""
    recovery: torch.Tensor
    """Steps from onset until the robot is back at :data:`RECOVERED` of its own speed for good; 0 if it never lost it,
    :data:`NOT_RECOVERED` if it never was."""

    def cpu(self) -> Episodes:
        """The same on the CPU.

        Returns:
            The episodes.
        """
        return Episodes(**{field.name: getattr(self, field.name).cpu() for field in fields(self)})


@dataclass(frozen=True)
class Score:
    """The metrics of a set of robots; rates are None where nobody was judged."""

    envs: int
    judged: int
    """Robots that stood at onset: the denominator of every rate."""
    fell_before_onset: int
    non_finite: int
    no_onset: int
    reached: tuple[float | None, ...]
    """Shares that went beyond each radius and did not fall."""
    failed: float | None
    """Share that fell after onset."""
    speed_before_onset: float | None
    """Mean over the judged [m/s]."""
    survival: float | None
    """Mean time from onset to the fall or the end, over the judged [s]."""
    height_after_onset: float | None
    """Mean over the judged [m]."""
    distance: float | None
    """Mean of the greatest distance from the position at onset, over the judged [m]."""
    speed_after_onset: float | None
    """Mean over the judged [m/s]."""
    error_before_onset: float | None
    """Mean error of the planar velocity over the judged [m/s]."""
    error_after_onset: float | None
    """The same after onset."""
    energy_per_metre: float | None
    """Work of all judged after onset over all their distance [J/m]."""
    recovered: float | None
    """Share of the judged that came back to their speed for good."""
    recovery_time: float | None
    """Mean time that those took [s]."""


def check_radii(radii: Sequence[float]) -> tuple[float, ...]:
    """Checks a list of radii.

    Args:
        radii: Radii [m].

    Returns:
        The radii as floats.

    Raises:
        UmcError: If the list is empty or not positive and increasing.
    """
    values = tuple(float(radius) for radius in radii)
    increasing = all(inner < outer for inner, outer in pairwise(values))
    if not values or not values[0] > 0.0 or not increasing:
        raise UmcError(f"radii must be positive and increasing, got {list(values)}; the paper uses 1 2 3 4 5")
    return values


class EpisodeRecorder:
    """Follows one episode of every env, step by step, and keeps only what the metrics need."""

    def __init__(self, onset: torch.Tensor) -> None:
        """Starts before the first step.

        Args:
            onset: Step after which each env's fault is on, counted from 1. Shape is (num_envs,).
        """
        self._onset = onset.clone()
        self._step = 0
        self._open = torch.ones_like(onset, dtype=torch.bool)
        self._outcome = torch.full_like(onset, int(Outcome.NO_ONSET))
        self._origin = torch.zeros(len(onset), 2, device=onset.device)
        zeros = torch.zeros(len(onset), device=onset.device)
        self._distance, self._speed_sum, self._height_sum = zeros.clone(), zeros.clone(), zeros.clone()
        self._speed_after, self._energy, self._average_speed = zeros.clone(), zeros.clone(), zeros.clone()
        self._error_before, self._error_after = zeros.clone(), zeros.clone()
        self._steps_before = torch.zeros_like(onset)
        self._steps_after = torch.zeros_like(onset)
        self._last_slow = torch.zeros_like(onset)

    @property
    def open(self) -> torch.Tensor:
        """Envs whose episode is still going on. Shape is (num_envs,)."""
        return self._open

    def record(
        self,
        position: torch.Tensor,
        forward_velocity: torch.Tensor,
        height: torch.Tensor,
        fell: torch.Tensor,
        non_finite: torch.Tensor,
        timed_out: torch.Tensor,
        velocity_error: torch.Tensor | None = None,
        work: torch.Tensor | None = None,
    ) -> None:
        """Takes the state after one more step.

        An env that ends in this step has been reset by the environment already, so its state is not looked at.

        Args:
            position: Horizontal position of the trunk [m]. Shape is (num_envs, 2).
            forward_velocity: Velocity along the robot's own forward axis [m/s]. Shape is (num_envs,).
            height: Height of the trunk [m]. Shape is (num_envs,).
            fell: Envs that fell in this step. Shape is (num_envs,).
            non_finite: Envs whose physics broke in this step; wins over ``fell``. Shape is (num_envs,).
            timed_out: Envs whose time ran out in this step; not a fall. Shape is (num_envs,).
            velocity_error: Error of the planar velocity [m/s]; 0 if not given. Shape is (num_envs,).
            work: Work of the motors in this step [J]; 0 if not given. Shape is (num_envs,).
        """
        velocity_error = torch.zeros_like(height) if velocity_error is None else velocity_error
        work = torch.zeros_like(height) if work is None else work
        self._step += 1
        after = self._step > self._onset
        fall = torch.where(after, int(Outcome.FAILED), int(Outcome.FELL_BEFORE_ONSET))
        end = torch.where(non_finite, int(Outcome.NON_FINITE), torch.where(fell, fall, int(Outcome.UP)))
        end = torch.where(timed_out & ~fell & ~non_finite & ~after, int(Outcome.NO_ONSET), end)
        closing = self._open & (fell | non_finite | timed_out)
        self._outcome = torch.where(closing, end, self._outcome)
        self._open = self._open & ~closing

        before = self._open & ~after
        self._steps_before += before
        self._speed_sum += torch.where(before, forward_velocity, 0.0)
        self._error_before += torch.where(before, velocity_error, 0.0)
        going = self._open & torch.isfinite(forward_velocity)
        share = (forward_velocity - self._average_speed) / min(self._step, RECOVERY_WINDOW)
        self._average_speed = torch.where(going, self._average_speed + share, self._average_speed)
        starts = self._open & (self._step == self._onset)
        self._origin = torch.where(starts[:, None], position, self._origin)
        self._outcome = torch.where(starts, int(Outcome.UP), self._outcome)

        walks = self._open & after
        self._steps_after += walks
        away = (position - self._origin).norm(dim=1)
        self._distance = torch.where(walks, torch.maximum(self._distance, away), self._distance)
        self._height_sum += torch.where(walks, height, 0.0)
        self._speed_after += torch.where(walks, forward_velocity, 0.0)
        self._error_after += torch.where(walks, velocity_error, 0.0)
        self._energy += torch.where(walks, work, 0.0)
        slow = self._average_speed < RECOVERED * self._speed_sum / self._steps_before.clamp(min=1)
        self._last_slow = torch.where(walks & slow, self._steps_after, self._last_slow)

    def episodes(self) -> Episodes:
        """What has been recorded so far; envs that are still going count as up.

        Returns:
            The episodes.
        """
        recovered = (self._outcome == Outcome.UP) & (self._last_slow < self._steps_after)
        return Episodes(
            outcome=self._outcome.clone(),
            distance=self._distance.clone(),
            steps_after_onset=self._steps_after.clone(),
            speed_before_onset=self._speed_sum / self._steps_before.clamp(min=1),
            height_after_onset=self._height_sum / self._steps_after.clamp(min=1),
            speed_after_onset=self._speed_after / self._steps_after.clamp(min=1),
            error_before_onset=self._error_before / self._steps_before.clamp(min=1),
            error_after_onset=self._error_after / self._steps_after.clamp(min=1),
            energy_after_onset=self._energy.clone(),
            recovery=torch.where(recovered, self._last_slow, NOT_RECOVERED),
        )


def score(episodes: Episodes, radii: Sequence[float], step_dt: float, select: torch.Tensor | None = None) -> Score:
    """The metrics of some robots.

    Args:
        episodes: What the robots did.
        radii: Radii of reached@k, positive and increasing [m].
        step_dt: Duration of an env step [s].
        select: Which robots count; all without it. Shape is (num_envs,).

    Returns:
        The score.
    """
    radii = check_radii(radii)
    chosen = torch.ones_like(episodes.outcome, dtype=torch.bool) if select is None else select
    outcome = episodes.outcome[chosen]
    up, failed = outcome == Outcome.UP, outcome == Outcome.FAILED
    judged = up | failed
    count = int(judged.sum())

    def share(flags: torch.Tensor) -> float | None:
        return int(flags.sum()) / count if count else None

    def mean(values: torch.Tensor, flags: torch.Tensor) -> float | None:
        return float(values[chosen][flags].double().mean()) if bool(flags.any()) else None

    moved = judged & (episodes.steps_after_onset[chosen] > 0)  # a robot that falls at once has no height after onset
    survived = mean(episodes.steps_after_onset, judged)
    back = judged & (episodes.recovery[chosen] != NOT_RECOVERED)
    recovery = mean(episodes.recovery, back)
    path = float(episodes.distance[chosen][judged].double().sum())
    work = float(episodes.energy_after_onset[chosen][judged].double().sum())

    return Score(
        envs=len(outcome),
        judged=count,
        fell_before_onset=int((outcome == Outcome.FELL_BEFORE_ONSET).sum()),
        non_finite=int((outcome == Outcome.NON_FINITE).sum()),
        no_onset=int((outcome == Outcome.NO_ONSET).sum()),
        reached=tuple(share(up & (episodes.distance[chosen] > radius)) for radius in radii),
        failed=share(failed),
        speed_before_onset=mean(episodes.speed_before_onset, judged),
        survival=None if survived is None else survived * step_dt,
        height_after_onset=mean(episodes.height_after_onset, moved),
        distance=mean(episodes.distance, judged),
        speed_after_onset=mean(episodes.speed_after_onset, moved),
        error_before_onset=mean(episodes.error_before_onset, judged),
        error_after_onset=mean(episodes.error_after_onset, moved),
        energy_per_metre=work / path if path > 0.0 else None,
        recovered=share(back),
        recovery_time=None if recovery is None else recovery * step_dt,
    )


def average(scores: Sequence[Score]) -> Score:
    """The paper's average: every scenario weighs the same, however many robots were judged in it.

    Args:
        scores: One score per scenario, with the same radii.

    Returns:
        Counts summed, rates and means averaged over the scenarios in which somebody was judged.
    """

    def mean(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    counts = ("envs", "judged", "fell_before_onset", "non_finite", "no_onset")
    values: dict[str, Any] = {name: sum(getattr(one, name) for one in scores) for name in counts}
    values["reached"] = tuple(mean([one.reached[k] for one in scores]) for k in range(len(scores[0].reached)))
    for field in fields(Score):
        if field.name not in values:
            values[field.name] = mean([getattr(one, field.name) for one in scores])
    return Score(**values)
