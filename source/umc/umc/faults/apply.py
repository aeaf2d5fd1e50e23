# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Applies live faults of sensors, IMU and commands to signals, in Isaac Lab as in plain MuJoCo."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import torch

from umc.faults.kinds import (
    KINDS,
    LONGEST_DELAY,
    CommandContext,
    CommandKind,
    FaultKind,
    ImuContext,
    ImuKind,
    MotionContext,
    SensorContext,
    SensorKind,
)
from umc.faults.state import FaultState, LiveFault, known_empty

Index = torch.Tensor | slice
"""Rows or columns of a tensor; on a GPU a list would make the host wait."""

_ALL = slice(None)


class SensorChannel:
    """One quantity of the joints as their sensors report it; remembers what frozen sensors held.

    The quantity is ``position`` [rad], ``velocity`` [rad/s] or ``action``, ``step_dt`` the length of an env step [s];
    ``envs`` and ``joints``, in their order, are those of the state that signals are of.
    """

    _base: ClassVar[type[FaultKind]] = SensorKind

    def __init__(self, quantity: str, step_dt: float, envs: Index = _ALL, joints: Index = _ALL) -> None:
        self.quantity, self._step_dt = quantity, step_dt
        self._envs, self._joints = envs, joints
        self._held: dict[str, torch.Tensor] = {}

    def reset(self) -> None:
        """Forget what was held."""
        self._held.clear()

    def read(self, state: FaultState, signal: torch.Tensor) -> torch.Tensor:
        """Return what the sensors report, given what working ones would. Shapes are (E, J); of the IMU (E, 3)."""
        for kind in _acting(tuple(state.kinds), self._base, tuple(KINDS.values())):
            if self.quantity not in kind.quantities:
                continue
            if kind not in state.kinds:
                self._held[kind.name] = signal.clone()
                continue
            live = state.live_fault(kind.name)
            on = self._on(live)
            held = self._held.get(kind.name, signal)
            if kind.remembers:
                self._held[kind.name] = torch.where(on, held, signal)
            if not known_empty(on):
                signal = kind.read(signal, self._context(state, live, on, held))
        return signal

    def _on(self, live: LiveFault) -> torch.Tensor:
        return self._mine(live.on)

    def _context(self, state: FaultState, live: LiveFault, on: torch.Tensor, held: torch.Tensor) -> Any:
        return SensorContext(
            quantity=self.quantity,
            on=on,
            severity=self._mine(live.severity).to(held.dtype),
            age=self._mine(live.age) * self._step_dt,
            held=held,
            normal=lambda stream: self._mine(state.normal(stream)),
        )

    def _mine(self, values: torch.Tensor) -> torch.Tensor:
        return values[self._envs][:, self._joints]


class ImuChannel(SensorChannel):
    """One quantity of the base as its inertial sensor reports it, whatever the joints."""

    _base = ImuKind

    def _on(self, live: LiveFault) -> torch.Tensor:
        return live.on[self._envs].any(dim=1, keepdim=True)

    def _context(self, state: FaultState, live: LiveFault, on: torch.Tensor, held: torch.Tensor) -> Any:
        # a plan gives one of its joints the fault, whose severity may be negative
        severity = torch.where(live.on, live.severity, -math.inf)[self._envs].amax(dim=1, keepdim=True)
        severity = torch.where(on, severity, 0.0)
        return ImuContext(
            quantity=self.quantity,
            on=on,
            severity=severity.to(held.dtype),
            age=live.age[self._envs].amax(dim=1, keepdim=True) * self._step_dt,
            held=held,
            direction=lambda stream: state.direction(stream)[self._envs],
        )


@cache
def _acting(planned: tuple[FaultKind, ...], of: type[Any], known: tuple[FaultKind, ...]) -> tuple[Any, ...]:
    """Return the kinds of a class that are planned, and those that remember readings, in their order.

    A manual fault may be the first of its kind, and a frozen sensor repeats the reading before it.
    """
    kinds = {kind.name: kind for kind in known if isinstance(kind, of) and kind.remembers}
    kinds.update({kind.name: kind for kind in planned if isinstance(kind, of)})
    return tuple(sorted(kinds.values(), key=lambda kind: (kind.rank, kind.name)))


class CommandChannel:
    """The line on which joint targets are sent once per env step; the first message of an episode always arrives.

    A fault that the observation of step ``t`` shows concerns the action that answers it, of step ``t + 1``, first.
    ``envs`` are the state's envs that targets are of.
    """

    def __init__(self, state: FaultState, envs: Index = _ALL) -> None:
        self._state, self._envs = state, envs
        self._known: tuple[FaultKind, ...] = ()
        self._kinds: list[CommandKind] = []
        self._moving: list[CommandKind] = []
        self._sent: torch.Tensor | None = None
        """Targets of each of the last env steps. Shape is (LONGEST_DELAY + 1, 3, E, J)."""
        self._num_sent: torch.Tensor | None = None
        """How many were sent in this episode. Shape is (E,)."""
        self._newest = 0

    @property
    def can_fail(self) -> bool:
        """Whether there are command faults; the first may be a manual one."""
        if self._known is not self._state.kinds:
            self._known = self._state.kinds
            self._kinds = [kind for kind in self._known if isinstance(kind, CommandKind)]
            self._moving = [kind for kind in self._kinds if kind.depends_on_motion]
        return bool(self._kinds)

    @property
    def depends_on_motion(self) -> bool:
        """Whether faults change targets in every physics step: :meth:`transmit` has to be called there."""
        return self.can_fail and bool(self._moving)

    def reset(self, env_ids: Index | Sequence[int] = _ALL) -> None:
        """Forget what was sent to some envs."""
        if self._num_sent is None:
            return
        if isinstance(env_ids, slice):
            self._num_sent[env_ids] = 0
        else:  # a number at an index would be uploaded, and a GPU makes the host wait for it
            self._num_sent.index_fill_(0, torch.as_tensor(env_ids, device=self._num_sent.device).long(), 0)

    def send(self, targets: torch.Tensor, last: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Send position, velocity and effort targets, shape (3, E, J); ``last`` are those that arrived a step before.

        Returns the joints whose command is faulty, shape (E, J), and the targets that arrive; None if none is faulty.
        """
        if not self.can_fail:
            return None
        if self._sent is None or self._num_sent is None:
            with torch.inference_mode(False):  # resets outside inference mode change them
                shape, device = (LONGEST_DELAY + 1, *targets.shape), targets.device
                self._sent = torch.zeros(shape, dtype=targets.dtype, device=device)
                self._num_sent = torch.zeros(targets.shape[1], dtype=torch.long, device=device)
        self._newest = (self._newest + 1) % len(self._sent)
        self._sent[self._newest] = targets
        live = [(kind, self._state.live_fault(kind.name)) for kind in self._kinds]
        on = torch.stack([fault.on[self._envs] for _, fault in live]).any(dim=0)
        arriving = None
        if not known_empty(on):
            last = torch.where((self._num_sent == 0)[:, None], targets, last)
            arriving = targets
            for kind, fault in live:
                context = CommandContext(
                    on=fault.on[self._envs],
                    severity=fault.severity[self._envs],
                    age=fault.age[self._envs],
                    sent=self._sent_before,
                    last=last,
                    uniform=self._uniform,
                )
                arriving = kind.deliver(arriving, context)
        self._num_sent += 1
        return None if arriving is None else (on, arriving)

    def transmit(
        self, arrived: torch.Tensor, position: torch.Tensor, velocity: torch.Tensor, envs: Index = _ALL
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Take the targets that arrived, shape (3, E, J), positions [rad] and speeds [rad/s] of joints, shapes (E, J).

        ``envs`` are the rows of the channel that they are of. Returns the joints with a fault, shape (E, J), and the
        targets that act in this physics step; None if there is no such joint.
        """
        found = [(kind, self._state.live_fault(kind.name)) for kind in self._moving]
        live = [(kind, fault.on[self._envs][envs], fault.severity[self._envs][envs]) for kind, fault in found]
        faulty = torch.stack([on for _, on, _ in live]).any(dim=0)
        if known_empty(faulty):
            return None
        for kind, on, severity in live:
            context = MotionContext(on, severity.to(arrived.dtype), position, velocity)
            arrived = kind.transmit(arrived, context)
        return faulty, arrived

    def _uniform(self, stream: str, ago: torch.Tensor | int = 0, shared: bool = False) -> torch.Tensor:
        if isinstance(ago, torch.Tensor):
            every = torch.zeros_like(self._state.detected, dtype=torch.long)
            every[self._envs] = ago
            ago = every
        return self._state.uniform(stream, ago=ago, shared=shared)[self._envs]

    def _sent_before(self, steps: torch.Tensor) -> torch.Tensor:
        """Targets sent a number of env steps ago, up to LONGEST_DELAY, or the episode's first if there were fewer."""
        assert self._sent is not None
        assert self._num_sent is not None
        steps = torch.minimum(steps.clamp(max=LONGEST_DELAY), self._num_sent[:, None])
        slot = ((self._newest - steps) % len(self._sent)).expand(1, *self._sent.shape[1:])
        return self._sent.gather(0, slot).squeeze(0)
