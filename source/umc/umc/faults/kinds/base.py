# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Base classes of joint, sensor, IMU and command faults, and the registry of kinds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from umc.utils.errors import UmcError

POSITION, VELOCITY, ACTION = "position", "velocity", "action"
"""What a sensor of a joint can report; its last action is reported by the motor's controller."""


def _nothing() -> torch.Tensor:
    return torch.zeros(())


@dataclass
class JointLimits:
    """Joint limits of E envs: faults lower them, engines enforce them. Shapes are (E, J)."""

    lower: torch.Tensor
    """Lowest position [rad]."""
    upper: torch.Tensor
    """Highest position [rad]."""
    effort: torch.Tensor
    """Largest torque of the motor [N*m]."""
    velocity: torch.Tensor
    """Largest speed [rad/s]."""
    damping: torch.Tensor = field(default_factory=_nothing)
    """Viscous damping that faults add to the joint's own [N*m*s/rad]; 0 unless given."""
    friction: torch.Tensor = field(default_factory=_nothing)
    """Dry friction that faults add to the joint's own [N*m]; 0 unless given."""

    def __post_init__(self) -> None:
        """Give added damping and friction the shape of the limits."""
        for name in ADDED:
            if getattr(self, name).dim() == 0:
                setattr(self, name, torch.zeros_like(self.effort))


ADDED = ("damping", "friction")
"""Fields of :class:`JointLimits` that faults add to what the joint has itself."""

NO_LIMIT = {"lower": -math.inf, "upper": math.inf, "effort": math.inf, "velocity": math.inf}
"""Values of :class:`JointLimits` that limit nothing; ledgers leave them out."""


class FaultKind(ABC):
    """One way to fail. Kinds hold no state: what a fault has to remember is passed to them."""

    name: ClassVar[str]
    """Name in configs, ledgers and reports."""
    unit: ClassVar[str] = ""
    """Unit of the severity; empty for a kind that has none."""
    default: ClassVar[float | None] = 0.0
    """Severity if none is given; None if it is required."""
    min_severity: ClassVar[float] = -1.0e9
    """Severities lie above this."""
    max_severity: ClassVar[float] = 1.0e9
    """Severities lie at or below this."""
    rank: ClassVar[int] = 0
    """Of several kinds on one joint, those of higher rank act later."""
    shared_severity: ClassVar[bool] = False
    """Whether all joints of a fault share one draw from a distribution of severities."""
    healthy: ClassVar[float | None] = None
    """Severity of a healthy joint, where it is one number; None if it is not, or the kind has no mild form."""

    def check(self, value: float) -> None:
        """Raise UmcError if a severity, in the kind's unit, is out of range."""
        if not (math.isfinite(value) and self.min_severity < value <= self.max_severity):
            bounds = f"above {self.min_severity:g} and at most {self.max_severity:g}"
            raise UmcError(f"severity {value:g} of '{self.name}' must be {bounds} {self.unit}".rstrip())

    def healthy_severity(self, nominal: JointLimits | None) -> torch.Tensor | float | None:
        """Severity of a healthy joint, from which a curriculum starts; None if the kind has no mild form.

        One number, or one per joint. ``nominal`` are the limits of healthy joints, every shape (J,); None if unknown.
        """
        return self.healthy

    def severity_reference(self, nominal: JointLimits | None) -> torch.Tensor | float | None:
        """Return what fractional severities are fractions of, as :meth:`healthy_severity`; None if it takes none."""
        return None

    def required_limits(self, nominal: JointLimits | None) -> torch.Tensor | None:
        """Return the healthy limits without which the kind has no effect, shape (J,); None if it needs none."""
        return None


@dataclass
class OnsetState:
    """State of the joints when faults set in, and since. Shapes are (E, J)."""

    position: torch.Tensor
    """Joint position at onset [rad]."""
    placement: torch.Tensor
    """A random number of the plan, in [0, 1)."""
    memory: torch.Tensor
    """What :meth:`JointKind.remember` has returned last; 0 at onset."""


class JointKind(FaultKind):
    """A joint that can do less, or that moves less easily."""

    adds_passive: ClassVar[bool] = False
    """Whether it adds damping or friction, which are not written into physics otherwise."""
    reduces_range: ClassVar[bool] = False
    """Whether the joint's range gets smaller, down to one position."""
    depends_on_torque: ClassVar[bool] = False
    """Whether the limits change with the torques since the onset, in every env step."""

    def remember(
        self, memory: torch.Tensor, effort: torch.Tensor, severity: torch.Tensor, step_dt: float
    ) -> torch.Tensor:
        """Return what to remember after an env step of ``step_dt`` [s] with these torques [N*m]. Shapes are (E, J).

        Called for kinds that depend on the torque.
        """
        return memory

    @abstractmethod
    def limit(self, limits: JointLimits, on: torch.Tensor, severity: torch.Tensor, onset: OnsetState) -> JointLimits:
        """Return the limits with this fault, given those without, the joints that have it and its severity (E, J)."""


@dataclass
class SensorContext:
    """What a sensor fault may depend on. Shapes are (E, J)."""

    quantity: str
    """What the sensor reports: ``position`` [rad], ``velocity`` [rad/s] or ``action``."""
    on: torch.Tensor
    """Joints whose sensor has the fault."""
    severity: torch.Tensor
    """Severity."""
    age: torch.Tensor
    """Time since onset [s]."""
    held: torch.Tensor
    """The reading at the step before the onset; the current one if the kind does not remember."""
    normal: Callable[[str], torch.Tensor]
    """Standard normal numbers of this step by the name of a stream, drawn from (seed, env, episode, joint, step)."""


class SensorKind(FaultKind):
    """A sensor that reports a wrong value."""

    masks_joint: ClassVar[bool] = False
    """Whether the fault is known to hide the joint: the policy masks it."""
    quantities: ClassVar[tuple[str, ...]] = (POSITION, VELOCITY, ACTION)
    """Quantities that are reported wrong."""
    remembers: ClassVar[bool] = False
    """Whether the kind uses :attr:`SensorContext.held`."""

    @abstractmethod
    def read(self, signal: torch.Tensor, context: SensorContext) -> torch.Tensor:
        """Return what the sensors report, given what working ones would. Shapes are (E, J)."""


ANGULAR_VELOCITY, GRAVITY = "angular_velocity", "gravity"
"""What the inertial sensor of the base reports, in its frame."""


@dataclass
class ImuContext:
    """What an IMU fault may depend on. Shapes are (E, 1) unless another is given."""

    quantity: str
    """What is reported: ``angular_velocity`` [rad/s] or the direction of ``gravity`` [-]."""
    on: torch.Tensor
    """Envs whose sensor has the fault."""
    severity: torch.Tensor
    """Severity."""
    age: torch.Tensor
    """Time since onset [s]."""
    held: torch.Tensor
    """The reading at the step before the onset; the current one if the kind does not remember. Shape is (E, 3)."""
    direction: Callable[[str], torch.Tensor]
    """Random unit vectors of the episode by the name of a stream, drawn from (seed, env, episode), shape (E, 3)."""


class ImuKind(FaultKind):
    """The inertial sensor of the base reports wrong values.

    It has no joint: it has the fault while any joint of the env has it, with the largest of their severities.
    """

    shared_severity = True

    quantities: ClassVar[tuple[str, ...]] = (ANGULAR_VELOCITY, GRAVITY)
    """Quantities that are reported wrong."""
    remembers: ClassVar[bool] = False
    """Whether the kind uses :attr:`ImuContext.held`."""

    @abstractmethod
    def read(self, signal: torch.Tensor, context: ImuContext) -> torch.Tensor:
        """Return what the sensor reports, given what a working one would. Shapes are (E, 3)."""


@dataclass
class CommandContext:
    """What a command fault may depend on. Shapes are (E, J), those of targets (3, E, J)."""

    on: torch.Tensor
    """Joints whose command has the fault."""
    severity: torch.Tensor
    """Severity."""
    age: torch.Tensor
    """Env steps since onset; 0 for the first target that it concerns."""
    sent: Callable[[torch.Tensor], torch.Tensor]
    """The targets sent some env steps ago; takes how many, dtype int64, at most :data:`LONGEST_DELAY`."""
    last: torch.Tensor
    """The targets that arrived in the last env step."""
    uniform: Callable[..., torch.Tensor]
    """Uniform numbers in [0, 1) of this step by the name of a stream, drawn from (seed, env, episode, joint, step);
    see :meth:`umc.faults.FaultState.uniform` for those of an earlier step, and of all joints of an env."""


@dataclass
class MotionContext:
    """What acts on a joint in a physics step may depend on. Shapes are (E, J)."""

    on: torch.Tensor
    """Joints whose command has the fault."""
    severity: torch.Tensor
    """Severity."""
    position: torch.Tensor
    """Joint positions [rad]."""
    velocity: torch.Tensor
    """Joint speeds [rad/s]."""


class CommandKind(FaultKind):
    """A command that does not reach the joint as it was sent. Targets are positions, velocities and efforts."""

    def deliver(self, target: torch.Tensor, context: CommandContext) -> torch.Tensor:
        """Return the targets that arrive in an env step, given those sent. Shapes are (3, E, J)."""
        return target

    def transmit(self, target: torch.Tensor, context: MotionContext) -> torch.Tensor:
        """Return the targets that act in a physics step, given those that arrived. Shapes are (3, E, J)."""
        return target

    @property
    def depends_on_motion(self) -> bool:
        """Whether it has a :meth:`transmit` of its own, which is called in every physics step."""
        return type(self).transmit is not CommandKind.transmit


KINDS: dict[str, FaultKind] = {}
"""All kinds by name."""


def register_kind[Kind: FaultKind](kind: type[Kind]) -> type[Kind]:
    """Register a kind of fault, a class without arguments; raises UmcError if its name is taken or no identifier."""
    if not kind.name.isidentifier():
        raise UmcError(f"kind name '{kind.name}' must be letters, digits and underscores")
    known = KINDS.get(kind.name)
    # a script's class is registered twice, as __main__ and by import; a kind of this package stays what it is
    is_own = known is not None and type(known).__module__.startswith("umc.faults.kinds.")
    name = (lambda one: (one.__module__, one.__qualname__)) if is_own else (lambda one: one.__qualname__)
    if known is not None and name(type(known)) != name(kind):
        raise UmcError(f"a kind of fault named '{kind.name}' exists already; choose another name")
    KINDS[kind.name] = kind()
    return kind


def find_kind(name: str) -> FaultKind:
    """Return a kind by its name; raises UmcError if there is none."""
    if name not in KINDS:
        raise UmcError(f"unknown kind of fault '{name}'; choose from {', '.join(sorted(KINDS))}")
    return KINDS[name]


def is_detected(kinds: Iterable[FaultKind]) -> bool:
    """Return whether the paper's policy gets the fault flag: for a joint fault together with a dead sensor."""
    found = list(kinds)
    dead = any(isinstance(kind, SensorKind) and kind.masks_joint for kind in found)
    return dead and any(isinstance(kind, JointKind) for kind in found)
