# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The metrics of an evaluation, computed from what robots did step by step; pure torch, no simulator.

The definition (paper, section "Evaluation Metrics"): the robot's position at fault onset is recorded. *reached@k*
counts the robots that get further than ``k`` meters from that position and do not fall before the episode ends;
*failed* counts those that fall. Both are shares of the robots that stood at onset, so that ``reached@k + failed <= 1``,
as in the paper's tables. Robots that fell before onset, and robots whose physics became non-finite, say nothing about
the policy under faults: they are excluded and counted separately.

:data:`METRICS` is the only table of metrics: scores, estimates and reports read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from umc.utils.errors import UmcError

RECOVERED = 0.8
"""Share of its speed before onset at which a robot has recovered [-]."""

RECOVERY_WINDOW = 25
"""Env steps over which the speed is averaged (exponentially) for it: 0.5 s, about a gait cycle, at 50 Hz."""

LOOK_EVERY = 25
"""Env steps between two looks at a GPU for whether all episodes have ended: the host waits for the answer."""

NOT_RECOVERED = -1
"""Recovery step of a robot that never recovered."""


class Outcome(IntEnum):
    """How an episode ended."""

    UP = 0
    """Did not fall after onset."""
    FAILED = 1
    """Fell after onset."""
    FELL_BEFORE_ONSET = 2
    """Fell while healthy; excluded."""
    NON_FINITE = 3
    """The physics state became NaN or infinite; excluded."""
    NO_ONSET = 4
    """Ended, without a fall, before the fault set in; excluded."""


_ZERO = torch.zeros(())


@dataclass(frozen=True)
class Step:
    """State of all envs after one env step; envs that ended have been reset already."""

    position: torch.Tensor
    """Horizontal position of the trunk [m]. Shape is (num_envs, 2)."""
    forward_velocity: torch.Tensor
    """Velocity along the robot's own forward axis [m/s]. Shape is (num_envs,)."""
    height: torch.Tensor
    """Height of the trunk above the ground under it [m]. Shape is (num_envs,)."""
    fell: torch.Tensor
    """Envs that ended other than by time or broken physics. Shape is (num_envs,)."""
    non_finite: torch.Tensor
    """Envs whose physics broke; wins over ``fell``. Shape is (num_envs,)."""
    timed_out: torch.Tensor
    """Envs whose time ran out; not a fall. Shape is (num_envs,)."""
    velocity_error: torch.Tensor = _ZERO
    """Error of the planar velocity [m/s]. Shape is (num_envs,)."""
    work: torch.Tensor = _ZERO
    """Work of the motors in this step, without negative power [J]. Shape is (num_envs,)."""
    effort: torch.Tensor = _ZERO
    """Torques of the motors [N*m]. Shape is (num_envs, num_joints)."""
    joint_velocity: torch.Tensor = _ZERO
    """Velocities of the joints [rad/s]. Shape is (num_envs, num_joints)."""
    sideward_velocity: torch.Tensor = _ZERO
    """Velocity to the robot's own left [m/s]. Shape is (num_envs,)."""
    turning_rate: torch.Tensor = _ZERO
    """Angular velocity about the robot's own upward axis [rad/s]. Shape is (num_envs,)."""
    number: int = 0
    """Counted from 1."""


@dataclass(frozen=True)
class Episodes:
    """What each robot did; every tensor has the shape (num_envs,)."""

    outcome: torch.Tensor
    """:class:`Outcome` values."""
    distance: torch.Tensor
    """Greatest horizontal distance from the position at onset [m]; 0 if there was no onset."""
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
    """Mechanical work of the motors, without negative power, from onset to the fall or the end [J]."""
    recovery: torch.Tensor
    """Steps from onset until the robot keeps :data:`RECOVERED` of its own speed; 0 if it never lost it,
    :data:`NOT_RECOVERED` if it did not recover."""

    @property
    def failed(self) -> torch.Tensor:
        """Robots that fell after onset."""
        return self.outcome == Outcome.FAILED

    @property
    def evaluated(self) -> torch.Tensor:
        """Robots that stood at onset: the denominator of every rate."""
        return (self.outcome == Outcome.UP) | self.failed

    @property
    def moved(self) -> torch.Tensor:
        """Evaluated robots with a step after onset; one that falls at once has no height or speed after onset."""
        return self.evaluated & (self.steps_after_onset > 0)

    @property
    def recovered(self) -> torch.Tensor:
        """Evaluated robots that returned to their speed for good."""
        return self.evaluated & (self.recovery != NOT_RECOVERED)


EPISODE_COLUMNS = {
    "distance_m": "distance",
    "speed_before_onset_m_s": "speed_before_onset",
    "speed_after_onset_m_s": "speed_after_onset",
    "error_before_onset_m_s": "error_before_onset",
    "error_after_onset_m_s": "error_after_onset",
    "energy_after_onset_j": "energy_after_onset",
    "height_after_onset_m": "height_after_onset",
    "steps_after_onset": "steps_after_onset",
    "recovery_steps": "recovery",
}
"""Columns of ``robots.csv`` and the fields of :class:`Episodes` that they hold."""

Terms = Callable[[Episodes], tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True)
class Metric:
    """A sum over robots divided by another, such as falls by evaluated robots, or joules by meters."""

    key: str
    """Name in files."""
    title: str
    """Name in tables."""
    terms: Terms
    """What each robot adds to numerator and denominator. Shapes are (num_envs,)."""
    unit: str = ""
    rate: bool = False
    """Whether it is a share of robots, printed in percent."""
    better: int = 0
    """1 if more is better, -1 if less is, 0 if neither."""
    digits: int = 2
    """Digits after the point, in its unit."""
    in_steps: bool = False
    """Whether the numerator counts env steps; the metric is in seconds."""
    meaning: str = ""
    """What a rate counts, as figures explain it."""

    def describe(self) -> dict[str, Any]:
        """Return what reports say about it, in plain values."""
        return {name: getattr(self, name) for name in ("key", "title", "unit", "rate", "better", "digits")}


def reached_key(radius: float) -> str:
    """Return the key of the rate of robots that moved beyond a radius [m]."""
    return f"reached@{radius:g}"


def _reached(radius: float) -> Metric:
    def terms(episodes: Episodes) -> tuple[torch.Tensor, torch.Tensor]:
        return (episodes.outcome == Outcome.UP) & (episodes.distance > radius), episodes.evaluated

    name = reached_key(radius)
    return Metric(name, name, terms, rate=True, better=1, meaning=f"beyond {radius:g} m, without a fall")


def _mean(field: str, among: str) -> Terms:
    """Return the mean of a field of :class:`Episodes` over ``evaluated``, ``moved`` or ``recovered`` robots."""

    def terms(episodes: Episodes) -> tuple[torch.Tensor, torch.Tensor]:
        counted = getattr(episodes, among)
        return torch.where(counted, getattr(episodes, field).double(), 0.0), counted

    return terms


def _energy_per_metre(episodes: Episodes) -> tuple[torch.Tensor, torch.Tensor]:
    joules, meters = episodes.energy_after_onset.double(), episodes.distance.double()
    return torch.where(episodes.evaluated, joules, 0.0), torch.where(episodes.evaluated, meters, 0.0)


def _failed(episodes: Episodes) -> tuple[torch.Tensor, torch.Tensor]:
    return episodes.failed, episodes.evaluated


METRICS = (
    Metric("failed", "failed", _failed, rate=True, better=-1, meaning="fell after onset"),
    Metric("recovered", "recovered", lambda one: (one.recovered, one.evaluated), rate=True, better=1),
    Metric("recovery_time", "recovery time", _mean("recovery", "recovered"), "s", better=-1, in_steps=True),
    Metric(
        "survival", "time up after onset", _mean("steps_after_onset", "evaluated"), "s", better=1, digits=1,
        in_steps=True,
    ),
    Metric("distance", "greatest distance", _mean("distance", "evaluated"), "m", better=1),
    Metric("speed_before_onset", "speed before", _mean("speed_before_onset", "evaluated"), "m/s"),
    Metric("speed_after_onset", "speed after", _mean("speed_after_onset", "moved"), "m/s"),
    Metric("error_before_onset", "tracking error before", _mean("error_before_onset", "evaluated"), "m/s", better=-1),
    Metric("error_after_onset", "tracking error after", _mean("error_after_onset", "moved"), "m/s", better=-1),
    Metric("energy_per_metre", "energy per meter", _energy_per_metre, "J/m", better=-1, digits=0),
    Metric("height_after_onset", "trunk height after", _mean("height_after_onset", "moved"), "m", digits=3),
)  # fmt: skip
"""All metrics but reached@k, which depends on the protocol's radii; to add a metric, add a line."""


def metrics_of(radii: Sequence[float]) -> tuple[Metric, ...]:
    """Return all metrics in the order of tables, with reached@k for each of the ``radii`` [m]."""
    return (*map(_reached, radii), *METRICS)


def main_rates(radii: Sequence[float]) -> tuple[Metric, Metric]:
    """Return the two rates that are shown where there is no room for all: the middle radius and failed."""
    return _reached(radii[len(radii) // 2]), METRICS[0]


def sums_of(episodes: Episodes, metrics: Sequence[Metric], step_dt: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what every robot adds to numerator and denominator of every metric; shapes are (num_envs, num_metrics)."""
    pairs = [metric.terms(episodes) for metric in metrics]
    scales = [step_dt if metric.in_steps else 1.0 for metric in metrics]
    numerators = torch.stack([above.double() * scale for (above, _), scale in zip(pairs, scales, strict=True)], dim=1)
    denominators = torch.stack([below.double() for _, below in pairs], dim=1)
    return np.nan_to_num(numerators.numpy()), np.nan_to_num(denominators.numpy())


def ratios(numerators: NDArray[Any], denominators: NDArray[Any]) -> NDArray[Any]:
    """Return quotients, NaN where there is nothing to divide by."""
    nothing = np.full(numerators.shape, np.nan, numerators.dtype)
    return np.divide(numerators, denominators, out=nothing, where=denominators > 0.0)


def mean_of_known(values: NDArray[Any], axis: int = 0) -> NDArray[Any]:
    """Return the mean of the values that are not NaN, NaN where all are."""
    known = np.isfinite(values)
    return ratios(np.where(known, values, 0.0).sum(axis=axis), known.sum(axis=axis).astype(values.dtype))


@dataclass(frozen=True)
class Score:
    """The metrics of a set of robots, by key: ``score["failed"]``; None if no robot counts."""

    counts: Mapping[str, int]
    """Robots by :data:`COUNTS`."""
    values: Mapping[str, float | None]
    """Metrics by key."""

    def __getitem__(self, key: str) -> float | None:
        return self.values[key]

    @classmethod
    def of(cls, counts: Mapping[str, int], keys: Iterable[str], values: NDArray[Any]) -> Score:
        """Return a score from an array of values that are NaN where no robot counts."""
        known = (None if np.isnan(value) else float(value) for value in values)
        return cls(counts, dict(zip(keys, known, strict=True)))

    @property
    def evaluated(self) -> int:
        """Robots that stood at onset."""
        return self.counts["evaluated"]

    @property
    def reached(self) -> tuple[float | None, ...]:
        """Shares that got beyond each radius without a fall."""
        return tuple(value for key, value in self.values.items() if key.startswith("reached@"))

    def describe(self) -> dict[str, Any]:
        """Return plain values, as ``report.json`` holds them."""
        others = {key: value for key, value in self.values.items() if not key.startswith("reached@")}
        return {**self.counts, "reached": list(self.reached), **others}


COUNTS: dict[str, Callable[[Episodes], torch.Tensor]] = {
    "envs": lambda one: torch.ones_like(one.outcome, dtype=torch.bool),
    "evaluated": lambda one: one.evaluated,
    "fell_before_onset": lambda one: one.outcome == Outcome.FELL_BEFORE_ONSET,
    "non_finite": lambda one: one.outcome == Outcome.NON_FINITE,
    "no_onset": lambda one: one.outcome == Outcome.NO_ONSET,
}
"""Numbers of robots that tables show beside the metrics."""


def check_radii(radii: Sequence[float]) -> tuple[float, ...]:
    """Return the radii [m] as floats; raise UmcError if they are not positive and increasing."""
    values = tuple(float(radius) for radius in radii)
    increasing = all(inner < outer for inner, outer in pairwise(values))
    if not values or not values[0] > 0.0 or not increasing:
        raise UmcError(f"radii must be positive and increasing, got {list(values)}; the paper uses 1 2 3 4 5")
    return values


class EpisodeRecorder:
    """Recorder of one episode of every env, step by step, which keeps only what the metrics need.

    ``onset`` is the step after which each env's fault is on, counted from 1. Shape is (num_envs,).
    """

    def __init__(self, onset: torch.Tensor) -> None:
        self._onset = onset.clone()
        self._step = 0
        self.open = torch.ones_like(onset, dtype=torch.bool)
        """Envs whose episode has not ended. Shape is (num_envs,)."""
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
    def has_ended(self) -> bool:
        """Whether all episodes have ended; on a GPU up to :data:`LOOK_EVERY` steps late, which record nothing."""
        if self.open.device.type != "cpu" and self._step % LOOK_EVERY:
            return False
        return not bool(self.open.any())

    def record(self, step: Step) -> None:
        """Add one more step; an env that ends in it has been reset already, so its state is not read."""
        self._step += 1
        after = self._step > self._onset
        fall = torch.where(after, int(Outcome.FAILED), int(Outcome.FELL_BEFORE_ONSET))
        end = torch.where(step.non_finite, int(Outcome.NON_FINITE), torch.where(step.fell, fall, int(Outcome.UP)))
        end = torch.where(step.timed_out & ~step.fell & ~step.non_finite & ~after, int(Outcome.NO_ONSET), end)
        closing = self.open & (step.fell | step.non_finite | step.timed_out)
        self._outcome = torch.where(closing, end, self._outcome)
        self.open = self.open & ~closing

        before = self.open & ~after
        self._steps_before += before
        self._speed_sum += torch.where(before, step.forward_velocity, 0.0)
        self._error_before += torch.where(before, step.velocity_error, 0.0)
        going = self.open & torch.isfinite(step.forward_velocity)
        share = (step.forward_velocity - self._average_speed) / min(self._step, RECOVERY_WINDOW)
        self._average_speed = torch.where(going, self._average_speed + share, self._average_speed)
        starts = self.open & (self._step == self._onset)
        self._origin = torch.where(starts[:, None], step.position, self._origin)
        self._outcome = torch.where(starts, int(Outcome.UP), self._outcome)

        walks = self.open & after
        self._steps_after += walks
        away = (step.position - self._origin).norm(dim=1)
        self._distance = torch.where(walks, torch.maximum(self._distance, away), self._distance)
        self._height_sum += torch.where(walks, step.height, 0.0)
        self._speed_after += torch.where(walks, step.forward_velocity, 0.0)
        self._error_after += torch.where(walks, step.velocity_error, 0.0)
        self._energy += torch.where(walks, step.work, 0.0)
        ahead = self._speed_sum.sign()  # backwards where the command is
        slow = ahead * self._average_speed < RECOVERED * self._speed_sum.abs() / self._steps_before.clamp(min=1)
        self._last_slow = torch.where(walks & slow, self._steps_after, self._last_slow)

    def episodes(self) -> Episodes:
        """Return what has been recorded so far; envs that have not ended count as up."""
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


def counts_of(episodes: Episodes, select: torch.Tensor | None = None) -> dict[str, int]:
    """Return the robots by :data:`COUNTS`, all or those selected. Shape of select is (num_envs,)."""
    everyone = torch.ones_like(episodes.evaluated) if select is None else select
    return {name: int((rows(episodes) & everyone).sum()) for name, rows in COUNTS.items()}


def score(episodes: Episodes, radii: Sequence[float], step_dt: float, select: torch.Tensor | None = None) -> Score:
    """Compute the metrics of all robots, or of those selected, shape (num_envs,); radii [m], env step [s]."""
    metrics = metrics_of(check_radii(radii))
    rows = slice(None) if select is None else select.numpy()
    above, below = (sums[rows].sum(axis=0) for sums in sums_of(episodes, metrics, step_dt))
    return Score.of(counts_of(episodes, select), (metric.key for metric in metrics), ratios(above, below))
