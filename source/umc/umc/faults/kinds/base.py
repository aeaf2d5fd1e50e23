# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a kind of fault is: a joint that can do less, a sensor that lies, or a command that gets lost."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch

from umc.faults.limits import JointLimits
from umc.utils.errors import UmcError

POSITION, VELOCITY, ACTION = "position", "velocity", "action"
"""What a sensor of a joint can report; its last action is reported by the motor's controller."""


class FaultKind(ABC):
    """One way to fail. Kinds hold no state: what a fault needs to remember is handed to them."""

    name: ClassVar[str]
    """What configs, ledgers and reports call it."""
    unit: ClassVar[str] = ""
    """Unit of the severity; empty for a kind that has none."""
    default: ClassVar[float | None] = 0.0
    """Severity if none is given; None if one has to be."""
    smallest: ClassVar[float] = -math.inf
    """Severities lie above it."""
    largest: ClassVar[float] = math.inf
    """Severities lie at or below it."""
    rank: ClassVar[int] = 0
    """Of several kinds on one joint, those of higher rank act later."""

    def check(self, value: float) -> None:
        """Refuses a severity that makes no sense.

        Args:
            value: Severity, in the kind's unit.

        Raises:
            UmcError: If it is out of range.
        """
        if not (math.isfinite(value) and self.smallest < value <= self.largest):
            low = "" if math.isinf(self.smallest) else f" above {self.smallest:g}"
            high = "" if math.isinf(self.largest) else f" at most {self.largest:g}"
            bounds = " and".join(bound for bound in (low, high) if bound) or " finite"
            raise UmcError(f"severity {value:g} of '{self.name}' must be{bounds} {self.unit}".rstrip())

    def healthy(self, nominal: JointLimits | None) -> torch.Tensor | float | None:
        """The severity at which nothing is wrong, from which a curriculum starts.

        Args:
            nominal: What healthy joints can do, every shape (J,); None if unknown.

        Returns:
            One number, or one for each joint; None if the kind knows no half measures.
        """
        return None

    def whole(self, nominal: JointLimits | None) -> torch.Tensor | float | None:
        """What a severity that is given as a fraction is a fraction of.

        Args:
            nominal: What healthy joints can do, every shape (J,); None if unknown.

        Returns:
            One number, or one for each joint; None if the kind has no whole.
        """
        return None


@dataclass
class Onset:
    """What was there when faults set in. Shapes are (E, J)."""

    position: torch.Tensor
    """Joint position at onset [rad]."""
    placement: torch.Tensor
    """A random number of the plan, in [0, 1)."""


class JointKind(FaultKind):
    """A joint that can do less."""

    @abstractmethod
    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: Onset) -> JointLimits:
        """Lowers what joints can do.

        Args:
            limits: What the joints can do without this fault; not changed.
            on: Joints that have the fault. Shape is (E, J).
            severity: Severity. Shape is (E, J).
            onset: What was there when the faults set in.

        Returns:
            What they can do with it.
        """


@dataclass
class Reading:
    """What a sensor's fault is made of. Shapes are (E, J)."""

    quantity: str
    """What the sensor reports: ``position`` [rad], ``velocity`` [rad/s] or ``action``."""
    on: torch.Tensor
    """Joints whose sensor has the fault."""
    severity: torch.Tensor
    """Severity."""
    age: torch.Tensor
    """Time since onset [s]."""
    held: torch.Tensor
    """The reading at the step before the onset; the running one if the kind does not remember."""
    normal: Callable[[str], torch.Tensor]
    """Standard normal numbers of this step by the name of a stream, drawn from (seed, env, episode, joint, step)."""


class SensorKind(FaultKind):
    """A sensor that does not tell the truth."""

    blinds: ClassVar[bool] = False
    """Whether everybody knows that the sensor says nothing: the policy masks the joint."""
    concerns: ClassVar[tuple[str, ...]] = (POSITION, VELOCITY, ACTION)
    """Quantities that are reported wrong; others are not asked for."""
    remembers: ClassVar[bool] = False
    """Whether :attr:`Reading.held` is asked for."""

    @abstractmethod
    def read(self, signal: torch.Tensor, reading: Reading) -> torch.Tensor:
        """Turns what a working sensor reports into what this one does.

        Args:
            signal: What it would report. Shape is (E, J).
            reading: The faults.

        Returns:
            What it reports. Shape is (E, J).
        """


@dataclass
class Delivery:
    """What a command's fault is made of. Shapes are (E, J), those of targets (3, E, J)."""

    on: torch.Tensor
    """Joints whose command has the fault."""
    severity: torch.Tensor
    """Severity."""
    age: torch.Tensor
    """Env steps since onset; 0 for the first target that it concerns."""
    sent: Callable[[torch.Tensor], torch.Tensor]
    """The targets sent some env steps ago; takes how many, dtype int64."""
    last: torch.Tensor
    """The targets that arrived in the last env step."""
    uniform: Callable[[str], torch.Tensor]
    """Uniform numbers in [0, 1) of this step by the name of a stream, drawn from (seed, env, episode, joint, step)."""


class CommandKind(FaultKind):
    """A command that does not arrive as it was sent."""

    @abstractmethod
    def deliver(self, target: torch.Tensor, delivery: Delivery) -> torch.Tensor:
        """Turns the joint targets that are sent into those that arrive.

        Args:
            target: Position, velocity and effort targets of this env step. Shape is (3, E, J).
            delivery: The faults.

        Returns:
            Targets that the motors get. Shape is (3, E, J).
        """
