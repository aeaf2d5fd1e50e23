# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How hard a fault hits: a number, a distribution, or one of either for each joint."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from umc.faults.cfg import SeverityValue, is_number, joint_pattern
from umc.faults.kinds import FaultKind, JointLimits
from umc.utils.errors import UmcError

SHAPES = ("uniform", "log_uniform", "choice")
"""Distributions: ``{"uniform": [low, high]}``, ``{"log_uniform": [low, high]}``, ``{"choice": [a, b, ...]}``."""

LARGEST_LIMIT = 1.0e4
"""Limits above this are none [N*m, rad/s, rad]: engines have large numbers in their place."""

FRACTION = "fraction"
"""``{"fraction": 0.3}``: part of the healthy joint's value; may hold a distribution."""


@dataclass(frozen=True)
class Distribution:
    """Distribution of severities."""

    shape: str
    """One of :data:`SHAPES`, or ``fixed``."""
    numbers: tuple[float, ...]
    """The value; lowest and highest value; or the choices."""
    fraction: bool = False
    """Whether the numbers are parts of the healthy joint's value."""

    def sample(self, share: torch.Tensor) -> torch.Tensor:
        """Turn uniform numbers in [0, 1) into severities of the same shape."""
        if self.shape == "choice":
            # one by one: a list of numbers that goes to a GPU makes the host wait for it
            chosen = torch.full_like(share, self.numbers[0])
            for index, number in enumerate(self.numbers[1:], start=1):
                chosen = torch.where(share * len(self.numbers) >= index, number, chosen)
            return chosen
        low, high = self.numbers[0], self.numbers[-1]
        if self.shape == "log_uniform":
            # in 64 bits: the last bit of a float32 exponential differs between CPUs
            return (math.log(low) + share.double() * (math.log(high) - math.log(low))).exp().to(share.dtype)
        return low + share * (high - low)


class Severities:
    """Severities of one kind for all joints, as :attr:`FaultsCfg.severity` describes them.

    ``candidates`` are the indices of the joints that can fail: each needs a severity. ``nominal`` are the limits of
    healthy joints, every shape (J,), for fractions and for mild severities; None if unknown. Raises UmcError if a
    pattern is invalid, a joint has no severity, or one is out of range.
    """

    def __init__(
        self,
        kind: FaultKind,
        value: SeverityValue,
        joint_names: Sequence[str],
        candidates: Sequence[int],
        nominal: JointLimits | None,
        device: torch.device,
    ) -> None:
        self._kind, self._joint_names = kind, joint_names
        patterns = _patterns(value)
        groups = _by_pattern(kind, patterns, joint_names, candidates)
        reference = _per_joint(kind.severity_reference(nominal), len(joint_names), device)
        self._groups = [
            (torch.tensor(ids, device=device), _read(kind, patterns[pattern])) for pattern, ids in groups.items()
        ]
        self.require_limits(nominal)
        for columns, distribution in self._groups:
            for number in distribution.numbers:
                if not distribution.fraction:
                    kind.check(number)
                elif reference is None or not bool(reference[columns].isfinite().all()):
                    raise UmcError(f"{kind.name}: what {number:g} is a fraction of is unknown; give it in {kind.unit}")
                else:
                    _require_limits(kind, reference, joint_names, columns.tolist())
                    for joint in reference[columns].tolist():
                        kind.check(number * joint)
        self._reference = reference
        healthy = _per_joint(kind.healthy_severity(nominal), len(joint_names), device)
        self._healthy = None if healthy is None else healthy.where(healthy < LARGEST_LIMIT, math.inf)
        self.can_be_mild = self._healthy is not None and bool(self._healthy[list(candidates)].isfinite().any())
        """Whether there is a way from a healthy joint to a faulty one."""

    def require_limits(self, nominal: JointLimits | None) -> None:
        """Raise UmcError if the kind would have no effect on a joint, for want of a limit."""
        needed = self._kind.required_limits(nominal)
        for columns, distribution in self._groups:
            if needed is not None and min(distribution.numbers) < self._kind.max_severity:
                _require_limits(self._kind, needed, self._joint_names, columns.tolist())

    def sample(self, share: torch.Tensor, level: float) -> torch.Tensor:
        """Turn uniform numbers in [0, 1) into severities, shapes (N, J); 0 for joints that cannot fail.

        A level below 1 moves them towards the healthy joint, unless the kind has no mild form, or the joint no limit.
        """
        severity = torch.zeros_like(share)
        for joints, distribution in self._groups:
            # a slice of all joints is a view, and saves a GPU two launches
            columns = slice(None) if len(joints) == len(self._joint_names) else joints
            drawn = distribution.sample(share[:, columns])
            if distribution.fraction and self._reference is not None:
                drawn = drawn * self._reference[columns]
            severity[:, columns] = drawn
        if level < 1.0 and (healthy := self._healthy) is not None:
            severity = torch.where(healthy.isfinite(), healthy + level * (severity - healthy), severity)
        return severity


def require_matches(kind: FaultKind, value: SeverityValue, names: Sequence[str]) -> None:
    """Raise UmcError if a pattern of a kind's severities is invalid or matches none of some joints."""
    for pattern in _patterns(value):
        if not any(map(joint_pattern(kind.name, pattern).fullmatch, names)):
            raise UmcError(f"{kind.name}: pattern '{pattern}' matches no joint; the joints are {', '.join(names)}")


def _patterns(value: SeverityValue) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) and not _is_distribution(value) else {".*": value}


def _by_pattern(
    kind: FaultKind, patterns: Mapping[str, Any], joint_names: Sequence[str], candidates: Sequence[int]
) -> dict[str, list[int]]:
    """Return the joints of each pattern: the first that a joint's name matches."""
    names = [joint_names[index] for index in candidates]
    found = {pattern: joint_pattern(kind.name, pattern) for pattern in patterns}
    groups: dict[str, list[int]] = {}
    for index, name in zip(candidates, names, strict=True):
        pattern = next((pattern for pattern in patterns if found[pattern].fullmatch(name)), None)
        if pattern is None:
            raise UmcError(f"{kind.name}: joint '{name}' matches no pattern; add one to {list(patterns)}")
        groups.setdefault(pattern, []).append(index)
    return groups


def _require_limits(kind: FaultKind, limits: torch.Tensor, joint_names: Sequence[str], ids: Sequence[int]) -> None:
    """Refuse joints without a limit: a part of a number that no joint reaches has no effect."""
    free = [joint_names[index] for index in ids if not float(limits[index]) < LARGEST_LIMIT]
    if free:
        raise UmcError(
            f"{kind.name} would have no effect on {', '.join(free[:3])}{' and others' if len(free) > 3 else ''}, which "
            f"{'has' if len(free) == 1 else 'have'} no limit in the robot's cfg; set one there (joint_velocity_limit; "
            "actuator_effort_limit, of implicit motors joint_effort_limit), choose another severity, or leave such "
            "joints out (joint_names, parts.joints)"
        )


def _is_distribution(value: Mapping[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)) in (*SHAPES, FRACTION)


def _per_joint(value: torch.Tensor | float | None, num_joints: int, device: torch.device) -> torch.Tensor | None:
    if value is None:
        return None
    return torch.as_tensor(value, dtype=torch.float32, device=device).expand(num_joints)


def _read(kind: FaultKind, value: Any, fraction: bool = False) -> Distribution:
    """Read a number or a distribution."""
    if isinstance(value, Mapping) and _is_distribution(value):
        shape, content = next(iter(value.items()))
        if shape == FRACTION and not fraction:
            return _read(kind, content, fraction=True)
        if shape in SHAPES and isinstance(content, Sequence) and all(is_number(number) for number in content):
            numbers = tuple(float(number) for number in content)
            if shape == "choice" and numbers:
                return Distribution(shape, numbers, fraction)
            if len(numbers) == 2 and numbers[0] <= numbers[1] and (shape == "uniform" or numbers[0] > 0.0):
                return Distribution(shape, numbers, fraction)
    elif is_number(value):
        return Distribution("fixed", (float(value),), fraction)
    raise UmcError(
        f"{kind.name}: severity {value} must be a number, uniform: [low, high], log_uniform: [low, high] above 0,"
        " choice: [values], or fraction: one of these"
    )
