# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The random faults that a detector learns, and those that it is measured by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from umc.faults import JointLimits, find_kind
from umc.faults.kinds import ImuKind
from umc.utils.errors import UmcError

ODDS: Mapping[str, float] = {
    "dead": 2.0,
    "frozen": 2.0,
    "bias": 1.0,
    "drift": 1.0,
    "noise": 1.0,
    "power_loss": 2.0,
    "locked": 2.0,
    "rom": 2.0,
    "effort": 2.0,
    "velocity": 2.0,
    "dead+rom": 1.0,
    "dead+effort": 1.0,
    "dead+velocity": 1.0,
}
"""Odds of the faults that a detector learns; as many episodes are healthy as all of them."""

SIZES: Mapping[str, tuple[float, float]] = {
    "rom": (0.05, 0.6),
    "effort": (0.05, 0.6),
    "velocity": (0.02, 0.5),
    "bias": (0.0, 0.5),
    "drift": (0.0, 1.0),
    "noise": (0.02, 0.3),
    "braking": (0.5, 8.0),
    "derating": (0.05, 0.6),
    "friction": (0.02, 0.3),
    "delayed": (1.0, 6.0),
    "dropped": (0.2, 0.9),
    "burst_loss": (3.0, 25.0),
    "growing_delay": (0.01, 0.2),
    "backlash": (0.02, 0.4),
}
"""Smallest and largest severity, from hardly noticeable on: parts of what a healthy joint has, of a kind that takes
such fractions, else in its unit."""

SIGNED = ("bias", "drift")
"""Kinds whose severity has either sign."""

LOGARITHMIC = ("noise",)
"""Kinds whose severities are spread evenly over orders of magnitude."""

MOST_JOINTS = 4
"""Most faulty joints of a robot."""

LONGEST_WAIT = 0.75
"""Latest onset, as part of an episode [-]."""

SHORTEST_FAULT = 0.1
"""Shortest fault, as part of an episode [-]; the longest lasts for the rest of it."""

PUSH = 0.5
"""Largest change of the trunk's velocity by a push, forward and sideways [m/s]."""

PUSH_EVERY = (5.0, 10.0)
"""Time from push to push [s]."""

_ONE = torch.ones(1)


@dataclass(frozen=True)
class KindRange:
    """A kind of fault, and the smallest and the largest of some severities as :data:`SIZES` has them; None for all."""

    kind: str
    sizes: tuple[float, float] | None = None

    @classmethod
    def read(cls, text: str) -> KindRange:
        """Read ``effort`` or ``effort:0.05,0.2``."""
        kind, colon, sizes = text.partition(":")
        if isinstance(find_kind(kind), ImuKind):
            raise UmcError(f"{kind} is a fault of no joint; choose kinds of joints, sensors and commands")
        if not colon:
            return cls(kind)
        if not find_kind(kind).unit:
            raise UmcError(f"{text}: {kind} has no severity; leave {sizes} out")
        try:
            low, high = (float(part) for part in sizes.split(","))
        except ValueError:
            low, high = math.nan, math.nan
        if not 0.0 <= low < high < math.inf:
            raise UmcError(f"{text}: severities go from a number, 0 or above, to a larger one: {kind}:0.1,0.3")
        if high > 1.0 and _is_fraction(kind):
            raise UmcError(
                f"{text}: severities of {kind} are parts of what a healthy joint has, 0 to 1: {kind}:0.1,0.3"
            )
        return cls(kind, (low, high))

    def __str__(self) -> str:
        """Return the text that :meth:`read` takes."""
        return self.kind if self.sizes is None else f"{self.kind}:{self.sizes[0]:g},{self.sizes[1]:g}"

    def holds(self, kind: str, severity: float) -> bool:
        """Return whether it holds a fault of a kind and a severity."""
        return kind == self.kind and (self.sizes is None or self.sizes[0] <= abs(severity) <= self.sizes[1])


@dataclass(frozen=True)
class RandomFaults:
    """Which faults happen."""

    odds: Mapping[str, float]
    """By kind, or kinds joined by +."""
    sizes: Mapping[str, tuple[float, float]]
    """As :data:`SIZES`."""

    def severity(self) -> dict[str, Any]:
        """Return the severities as :class:`umc.faults.FaultsCfg` has them."""
        used = {kind for name in self.odds for kind in name.split("+")}
        return {kind: _distribution(kind, *self.sizes[kind]) for kind in sorted(used & self.sizes.keys())}


LEARNED = RandomFaults(ODDS, SIZES)
"""What a detector learns unless something is held out."""


def without(held_out: Sequence[KindRange]) -> RandomFaults:
    """Return what a detector learns without some kinds, or some severities of them."""
    learned = {kind for name in ODDS for kind in name.split("+")}
    sizes, odds = dict(SIZES), dict(ODDS)
    for one in held_out:
        if one.kind not in learned:
            raise UmcError(f"--hold_out {one.kind}: no detector learns it; choose from {', '.join(sorted(learned))}")
        if one.sizes is None:
            odds = {name: value for name, value in odds.items() if one.kind not in name.split("+")}
        elif one.kind not in sizes:
            raise UmcError(f"--hold_out {one}: severities of {one.kind} do not vary; hold out the whole kind")
        else:
            sizes[one.kind] = _rest(one.kind, sizes[one.kind], *one.sizes)
    if not odds:
        raise UmcError("--hold_out leaves no fault to learn; name fewer kinds")
    return RandomFaults(odds, sizes)


def only(chosen: Sequence[KindRange]) -> RandomFaults:
    """Return some kinds with equal odds."""
    sizes, names = dict(SIZES), [one.kind for one in chosen]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise UmcError(f"--kinds names {repeated[0]} twice; give it one range of severities")
    for one in chosen:
        if one.sizes is not None:
            sizes[one.kind] = one.sizes
        elif (kind := find_kind(one.kind)).default is None and one.kind not in sizes:
            raise UmcError(f"--kinds {one.kind} needs severities, such as {one.kind}:0.1,0.3 {kind.unit}")
    return RandomFaults({one.kind: 1.0 for one in chosen}, sizes)


def _rest(kind: str, learned: tuple[float, float], low: float, high: float) -> tuple[float, float]:
    """Return what is left of a range without another one."""
    smallest, largest = learned
    if low > smallest and low < largest <= high:
        return smallest, low
    if low <= smallest < high < largest and kind not in SIGNED:
        return high, largest
    side = "its upper end" if kind in SIGNED else "one of its ends"
    raise UmcError(
        f"--hold_out {kind}:{low:g},{high:g} has to take a part of {smallest:g} to {largest:g} at {side}; choose other "
        "severities, or hold out the whole kind"
    )


def _distribution(kind: str, low: float, high: float) -> dict[str, Any]:
    if kind in SIGNED and low == 0.0:
        return {"uniform": [-high, high]}
    drawn = {"log_uniform" if kind in LOGARITHMIC and low > 0.0 else "uniform": [low, high]}
    return {"fraction": drawn} if _is_fraction(kind) else drawn


def _is_fraction(kind: str) -> bool:
    """Return whether severities of a kind are parts of what a healthy joint has."""
    return find_kind(kind).severity_reference(JointLimits(-_ONE, _ONE, _ONE, _ONE)) is not None


def random_settings(faults: RandomFaults, seed: int, steps: int, most_joints: int) -> dict[str, Any]:
    """Return fields of :class:`umc.faults.FaultsCfg` for episodes of ``steps`` env steps, half of them healthy."""
    return {
        "ratios": {"normal": sum(faults.odds.values()), **faults.odds},
        "severity": faults.severity(),
        "num_joints": (1, min(MOST_JOINTS, most_joints)),
        "onset_range": (1, max(int(LONGEST_WAIT * steps), 1)),
        "duration": (max(int(SHORTEST_FAULT * steps), 1), steps),
        "seed": seed,
    }
