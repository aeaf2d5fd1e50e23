# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of the commands to the motors."""

from __future__ import annotations

import math
from typing import override

import torch

from umc.faults.kinds.base import CommandContext, CommandKind, MotionContext, register_kind

LONGEST_DELAY = 10
"""Longest delay [env steps]: 0.2 s at 50 Hz."""

SHORTEST = 0.5
"""Delays and bursts up to this long are rounded to none [env steps]."""

LOST_IN_BURSTS = 0.3
"""Share of the commands that bursts take, however long they are [-]."""

LONGEST_BURST = 50
"""Longest burst [env steps]: 1 s at 50 Hz."""


class CommandError(CommandKind):
    """A command that does not reach the joint as it was sent; none without severity."""

    healthy = 0.0


@register_kind
class Delayed(CommandError):
    """Targets arrive a number of env steps late, the severity, rounded.

    From onset on the motor keeps the last target that arrived in time, until the first late one arrives.
    """

    name = "delayed"
    unit = "[env steps]"
    default = None
    min_severity, max_severity = SHORTEST, float(LONGEST_DELAY)

    @override
    def deliver(self, target: torch.Tensor, context: CommandContext) -> torch.Tensor:
        delay = context.severity.round().long().clamp(0, LONGEST_DELAY)
        # nothing older than the target before the onset, which arrived in time
        return torch.where(context.on, context.sent(torch.minimum(delay, context.age + 1)), target)


@register_kind
class Dropped(CommandError):
    """Each env step's target is lost with a probability, the severity; the motor keeps the last that arrived."""

    name = "dropped"
    unit = "[-]"
    default = 1.0
    min_severity, max_severity = 0.0, 1.0
    rank = 1  # a late target can be lost, too

    @override
    def deliver(self, target: torch.Tensor, context: CommandContext) -> torch.Tensor:
        lost = context.on & (context.uniform("dropped") < context.severity)
        return torch.where(lost, context.last, target)


@register_kind
class BurstLoss(CommandError):
    """Targets are lost in bursts of a number of env steps, the severity, rounded; the motor keeps the last one.

    From onset on, time is divided into windows of which a burst takes the share :data:`LOST_IN_BURSTS`; where in its
    window it lies is random. All joints of a fault lose the same messages, as on one bus.
    """

    name = "burst_loss"
    unit = "[env steps]"
    default = None
    min_severity, max_severity = SHORTEST, float(LONGEST_BURST)
    rank = 1  # a late target can be lost, too
    shared_severity = True

    @override
    def deliver(self, target: torch.Tensor, context: CommandContext) -> torch.Tensor:
        length = context.severity.round().long()
        window = (length / LOST_IN_BURSTS).round().long().clamp(min=1)
        since = context.age % window
        place = context.uniform("burst_loss", ago=since, shared=True)  # of the window's first step
        first = (place * (window - length + 1)).long()
        lost = context.on & (since >= first) & (since < first + length)
        return torch.where(lost, context.last, target)


@register_kind
class GrowingDelay(CommandError):
    """Targets arrive later and later: a queue fills, since it delivers a part less than is sent, the severity.

    The delay grows by the severity in each env step and is rounded down, up to :data:`LONGEST_DELAY`.
    """

    name = "growing_delay"
    unit = "[-]"
    default = None
    min_severity, max_severity = 0.0, 1.0

    @override
    def deliver(self, target: torch.Tensor, context: CommandContext) -> torch.Tensor:
        delay = (context.severity * (context.age + 1)).long().clamp(0, LONGEST_DELAY)
        return torch.where(context.on, context.sent(delay), target)


@register_kind
class Backlash(CommandError):
    """The gears are worn: within the play, the severity, the joint turns freely, and the motor moves it only beyond.

    Where the position error e is at most half the play, there is no torque; beyond, it is kp*(abs(e) - play/2)
    towards the target, less kd*qd. The rotor's own motion within the play is not simulated: its inertia stays with the
    joint, and its damping brakes the joint beyond the play only. Effort targets are not changed.
    """

    name = "backlash"
    unit = "[rad]"
    default = None
    min_severity, max_severity = 0.0, math.pi

    @override
    def transmit(self, target: torch.Tensor, context: MotionContext) -> torch.Tensor:
        half = torch.where(context.on, 0.5 * context.severity, 0.0)
        error = target[0] - context.position
        free = context.on & (error.abs() <= half)
        play = torch.maximum(torch.minimum(error, half), -half)
        return torch.stack((target[0] - play, torch.where(free, context.velocity, target[1]), target[2]))
