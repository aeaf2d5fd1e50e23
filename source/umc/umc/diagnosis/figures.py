# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a diagnosis system: detection rates, delays, the right joint, false alarms, confusion, ROC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from umc.detection import JOINT_KINDS, SENSOR_KINDS
from umc.diagnosis.faults import SIZES, KindRange
from umc.diagnosis.recording import Recording
from umc.diagnosis.thresholds import CANDIDATES, ON_STEPS, false_alarm_rates, false_alarms
from umc.evaluation.statistics import Interval, wilson

WITHIN = (0.1, 0.25, 0.5, 1.0)
"""Times within which faults are found [s]."""

HINDERS_WITHIN_S = 1.0
"""A joint fault counts as one that changes the joint's motion if it does so within this time after its onset [s] ..."""

HINDERS_STEPS = 3
"""... in so many env steps."""

CONFUSION_AFTER_S = 0.5
"""When after the onset the likeliest kind is compared with the true one [s]."""

KNOWN = (SENSOR_KINDS, JOINT_KINDS)
"""Kinds that a detector tells apart, by the last axis of a recording; a recording's kinds begin with them."""

ROUNDING = 1e-3
"""Largest relative error of a recorded severity [-]."""


@dataclass(frozen=True)
class Events:
    """N faults of single joints, and what the detector predicted; every shape is (N,)."""

    fault: NDArray[np.int64]
    """0 for a sensor fault, 1 for a joint fault."""
    kind: NDArray[np.int64]
    """Index into the recording's kinds[fault]."""
    severity: NDArray[np.float64]
    joint: NDArray[np.int64]
    onset: NDArray[np.int64]
    """Env step of the recording."""
    length: NDArray[np.int64]
    """Env steps that it was there: to its end, or that of the episode or the recording."""
    delay: NDArray[np.int64]
    """Env steps from the onset to the first report of this fault; -1 if it was not reported while it was there."""
    joint_delay: NDArray[np.int64]
    """The same to the first report of this joint, as a sensor fault or a joint fault."""
    robot_delay: NDArray[np.int64]
    """The same to the first report of any joint of the robot."""
    other_delay: NDArray[np.int64]
    """The same to the first report of a fault of the other sort: of a joint fault, where this is a sensor fault."""
    alone: NDArray[np.bool_]
    """Whether the joint had no fault of the other sort when it set in: a sensor that works, or a joint that does."""
    predicted: NDArray[np.int64]
    """Likeliest kind CONFUSION_AFTER_S after the onset, -1 if it was likelier healthy; -2 if it was over by then."""
    hinders: NDArray[np.bool_]
    """Whether it changed the joint's motion within HINDERS_WITHIN_S; True for sensor faults."""
    speed: NDArray[np.float64]
    """Speed of the robot at the onset [m/s]."""
    reach: NDArray[np.float64]
    """Highest threshold at which it would have been reported within the last of WITHIN."""

    def where(self, mask: NDArray[np.bool_]) -> Events:
        """Return some of them."""
        return Events(**{name: value[mask] for name, value in vars(self).items()})

    def __len__(self) -> int:
        return len(self.fault)


def find_events(recording: Recording) -> Events:
    """Return all faults of a recording whose onset is in it."""
    rows: list[dict[str, Any]] = []
    label, total = recording.label, len(recording.label)
    changed = np.concatenate((label[:1] != 0, label[1:] != label[:-1]))
    # an episode that begins with a fault of the one before has a new fault
    begins = (label != 0) & (changed | recording.starts[:, :, None, None])
    starts = [np.append(np.flatnonzero(column), total) for column in recording.starts.T]
    after = round(CONFUSION_AFTER_S / recording.step_dt)
    span, last = round(HINDERS_WITHIN_S / recording.step_dt), round(WITHIN[-1] / recording.step_dt)
    for onset, robot, joint, fault in np.argwhere(begins):
        if onset == 0:  # its onset may lie before the recording
            continue
        episode = starts[robot][np.searchsorted(starts[robot], onset, side="right")]
        mine = label[onset:episode, robot, joint, fault]
        over = mine != mine[0]
        length = int(over.argmax()) if over.any() else len(mine)
        part = slice(onset, onset + length)
        reported = recording.reported[part, robot, joint, fault]
        faulty = recording.faulty[part, robot, joint, fault].astype(np.float64)
        at_joint = recording.reported[part, robot, joint].any(axis=1)
        predicted = -2
        if length > after:
            predicted = int(recording.kind[onset + after, robot, joint, fault]) - 1 if faulty[after] >= 0.5 else -1
        rows.append(
            {
                "fault": fault,
                "kind": int(mine[0]) - 1,
                "severity": float(recording.severity[onset, robot, joint, fault]),
                "joint": joint,
                "onset": onset,
                "length": length,
                "delay": _first(reported),
                "joint_delay": _first(at_joint),
                "other_delay": _first(recording.reported[part, robot, joint, 1 - fault]),
                "robot_delay": _first(recording.reported[part, robot].any(axis=(1, 2))),
                "alone": label[onset, robot, joint, 1 - fault] == 0,
                "predicted": predicted,
                "hinders": fault == 0
                or int(recording.hinders[onset : onset + min(length, span), robot, joint].sum()) >= HINDERS_STEPS,
                "speed": float(recording.speed[onset, robot]),
                "reach": _reach(faulty[: last + 1]),
            }
        )
    types = {"severity": np.float64, "speed": np.float64, "reach": np.float64, "hinders": np.bool_, "alone": np.bool_}
    names = list(Events.__dataclass_fields__)
    return Events(**{name: np.array([row[name] for row in rows], dtype=types.get(name, np.int64)) for name in names})


def _first(reported: NDArray[np.bool_]) -> int:
    return int(reported.argmax()) if reported.any() else -1


def learned(events: Events, recording: Recording, held_out: Sequence[KindRange]) -> NDArray[np.bool_]:
    """Return which faults are of a kind and a severity that the detector has learned."""
    names = [recording.kinds[fault][kind] for fault, kind in zip(events.fault, events.kind, strict=True)]
    known = np.array(
        [
            name in KNOWN[fault] and KindRange(name, _rounded(SIZES.get(name))).holds(name, severity)
            for name, fault, severity in zip(names, events.fault, events.severity, strict=True)
        ],
        dtype=np.bool_,
    )
    left_out = [
        any(choice.holds(name, severity) for choice in held_out)
        for name, severity in zip(names, events.severity, strict=True)
    ]
    return known & ~np.array(left_out, dtype=np.bool_)


def _rounded(sizes: tuple[float, float] | None) -> tuple[float, float] | None:
    """Widen a range of severities by what a recording rounds them."""
    return None if sizes is None else (sizes[0] * (1.0 - ROUNDING), sizes[1] * (1.0 + ROUNDING))


def _reach(faulty: NDArray[np.float64]) -> float:
    """Return the highest probability that was reached in enough steps in a row for a report."""
    if len(faulty) < ON_STEPS:
        return 0.0
    return float(np.lib.stride_tricks.sliding_window_view(faulty, ON_STEPS).min(axis=1).max())


def found_within(events: Events, seconds: float, step_dt: float, report: str = "delay") -> Interval | None:
    """Return the part of the faults that was reported within a time; those that were over before do not count.

    ``report`` is the field with the delay of what counts as their report.
    """
    limit, delay = round(seconds / step_dt), getattr(events, report)
    found = (delay >= 0) & (delay <= limit)
    counts = found | (events.length > limit)
    return wilson(float(found.sum()), float(counts.sum()))


def delays(events: Events, step_dt: float, report: str = "delay") -> NDArray[np.float64]:
    """Return the delay of every fault that counts [s], infinite where it was not reported while it was there."""
    last, delay = round(WITHIN[-1] / step_dt), getattr(events, report)
    counted = delay[(delay >= 0) | (events.length > last)]
    return np.where(counted >= 0, counted * step_dt, np.inf)


def right_joint(recording: Recording) -> Interval | None:
    """Return how often the first joint that is reported after an onset has a fault, of all robots with a report."""
    broken = (recording.label > 0).any(axis=3)
    has_fault, reported = broken.any(axis=2), recording.reported.any(axis=3)
    waiting, before = np.zeros_like(has_fault[0]), np.zeros_like(reported[0])
    had_fault = np.zeros_like(has_fault[0])
    right = count = 0
    for begins, has_fault_now, faulty, now in zip(recording.starts, has_fault, broken, reported, strict=True):
        before &= ~begins[:, None]
        waiting = has_fault_now & ((waiting & ~begins) | begins | ~had_fault)
        fresh = now & ~before
        first = waiting & fresh.any(axis=1)
        count += int(first.sum())
        right += int((first & (fresh & faulty).any(axis=1)).sum())
        waiting, before, had_fault = waiting & ~first, now.copy(), has_fault_now
    return wilson(float(right), float(count))


def alarms(recording: Recording) -> tuple[int, float]:
    """Return the false alarms of robots without a fault, and the time that they walked [min].

    A joint whose sensor and joint fault are reported is one alarm.
    """
    faulty = torch.from_numpy((recording.label > 0).any(axis=(2, 3)))
    reports = torch.from_numpy(recording.reported.any(axis=3))[:, None]
    count, minutes = false_alarms(reports, faulty, torch.from_numpy(recording.starts), recording.step_dt)
    return int(count), minutes


def confusion(events: Events, fault: int, kinds: int) -> NDArray[np.int64]:
    """Return how often each of the kinds (row) was taken for one that is known or, in the last column, for none."""
    known = len(KNOWN[fault])
    table = np.zeros((kinds, known + 1), dtype=np.int64)
    mine = events.where((events.fault == fault) & (events.predicted > -2))
    np.add.at(table, (mine.kind, np.where(mine.predicted < 0, known, mine.predicted)), 1)
    return table


def roc(recording: Recording, events: Events, fault: int) -> list[tuple[float, float, float]]:
    """Return for thresholds: the threshold, false alarms [1/min] and the part found within the last of WITHIN.

    Empty without faults.
    """
    faulty = torch.from_numpy((recording.label > 0).any(axis=(2, 3)))
    predicted = torch.from_numpy(recording.faulty[..., fault].astype(np.float32))
    rates = false_alarm_rates(predicted, faulty, torch.from_numpy(recording.starts), recording.step_dt)
    mine = events.where(events.fault == fault)
    last = round(WITHIN[-1] / recording.step_dt)
    mine = mine.where((mine.length > last) | (mine.reach >= CANDIDATES[0]))
    if not len(mine):
        return []
    return [
        (threshold, rate, float((mine.reach >= threshold).mean()))
        for threshold, rate in zip(CANDIDATES, rates, strict=True)
    ]


def by_kind(events: Events, kinds: Sequence[Sequence[str]]) -> Iterable[tuple[int, str, Events]]:
    """Yield the faults of each kind, with 0 for a sensor fault or 1 for a joint fault, and its name."""
    for fault, names in enumerate(kinds):
        for number, kind in enumerate(names):
            yield fault, kind, events.where((events.fault == fault) & (events.kind == number))


def groups(events: Events, joint_names: Sequence[str]) -> Iterable[tuple[str, str, Events]]:
    """Yield the faults by kind, severity, joint and speed, with a name of the grouping and one of the group.

    Joint faults are apart where the joint's sensor is faulty, too, and have no severities there.
    """
    kinds = list(by_kind(events, KNOWN))
    for fault, kind, mine in kinds:
        if fault == 0:
            yield "kind", kind, mine
        else:
            yield "kind", kind, mine.where(mine.alone)
            yield "kind", f"{kind}, sensor faulty", mine.where(~mine.alone)
    for fault, kind, some in kinds:
        mine = some if fault == 0 else some.where(some.alone)
        size = np.abs(mine.severity)
        if not len(mine) or size.min() == size.max():
            continue
        low, high = np.quantile(size, (1 / 3, 2 / 3))
        for name, mask in (
            (f"{kind} up to {low:.2g}", size <= low),
            (f"{kind} {low:.2g} to {high:.2g}", (size > low) & (size <= high)),
            (f"{kind} above {high:.2g}", size > high),
        ):
            yield "severity", name, mine.where(mask)
    for number, name in enumerate(joint_names):
        yield "joint", name, events.where(events.joint == number)
    for low, high in ((0.0, 0.2), (0.2, 0.4), (0.4, 0.8), (0.8, np.inf)):
        yield "speed", f"{low} to {high} m/s", events.where((events.speed >= low) & (events.speed < high))
