# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What the lines of a ledger hold: keys, types and ranges, checked line by line.

An unknown key is an error, as in every file: a later format has a higher version in the header.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MOST_FAULTS = 256
"""Most faults of an episode, manual ones among them."""

_LARGEST = 2**31 - 1
"""Largest env, episode or env step: a word of Philox's counter."""

Count = Annotated[int, Field(ge=0, le=_LARGEST)]
Step = Annotated[int, Field(ge=1, le=_LARGEST)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
PerJoint = float | list[float]
"""A number for each joint of a fault, or one for all."""


class Line(BaseModel):
    """A line or a part of one; numbers are finite."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class FaultEntry(Line):
    """A fault of a plan; one without joints never sets in."""

    scenario: Annotated[int, Field(ge=-1)]
    """Index into the header's scenarios; -1 for a manual fault."""
    detected: bool | None = None
    joints: list[Count] | None = None
    onset: Step | None = None
    end: Step | None = None
    period: Step | None = None
    on: Step | None = None
    kinds: dict[str, PerJoint] = {}
    """Severity by kind."""
    placement: list[Share] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        parts = (self.detected, self.joints, self.onset, self.placement, self.kinds or None)
        if self.joints is None:
            if any(part is not None for part in (*parts, self.end, self.period, self.on)):
                raise ValueError("a fault without joints has a scenario only")
            return self
        if not self.joints or None in parts:
            raise ValueError("a fault has joints, kinds, detected, onset and placement")
        if len(set(self.joints)) != len(self.joints):
            raise ValueError(f"joints {self.joints} name one twice")
        if self.end is not None and self.onset is not None and self.end <= self.onset:
            raise ValueError(f"end {self.end} is not after onset {self.onset}")
        if (self.period is None) != (self.on is None):
            raise ValueError("a fault that comes and goes has both period and on")
        if self.period is not None and self.on is not None and self.on > self.period:
            raise ValueError(f"on is {self.on}; it has to be at most period ({self.period})")
        return self


class PlanLine(Line):
    """An episode starts."""

    plan: tuple[Count, Count]
    """Env and episode."""
    faults: Annotated[list[FaultEntry], Field(max_length=MOST_FAULTS)]
    draws: tuple[int, Count, Count] | None = None


class SwitchLine(Line):
    """Faults went on or off."""

    switch: tuple[Count, Count, Count]
    """Env, episode and env step."""
    on: list[Count]
    joints: list[Count] = []
    lower: list[float | None] | None = None
    upper: list[float | None] | None = None
    effort: list[float | None] | None = None
    velocity: list[float | None] | None = None
    damping: list[float] | None = None
    friction: list[float] | None = None

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        columns = (self.lower, self.upper, self.effort, self.velocity)
        given = [len(column) for column in columns if column is not None]
        if given and given != [len(self.joints)] * len(columns):
            raise ValueError("lower, upper, effort and velocity have a number for each joint, or are all left out")
        for column in (self.damping, self.friction):
            if column is not None and (not given or len(column) != len(self.joints)):
                raise ValueError("damping and friction have a number for each joint, beside the limits")
        return self


class AmendLine(Line):
    """A plan was changed manually."""

    amend: tuple[Count, Count, Count]
    """Env, episode and env step."""
    kinds: dict[str, str] = {}
    """Kinds that the header does not have, and their unit."""
    faults: dict[Annotated[str, Field(pattern="^[0-9]{1,4}$")], FaultEntry]
    """By number."""


class EndLine(Line):
    """An episode is over."""

    end: tuple[Count, Count]
    """Env and episode."""
    length: Count


class Odds(Line):
    """What a curriculum sets."""

    ratios: dict[str, float] | None
    level: Share


class ScheduleLine(Line):
    """A curriculum changed what is drawn."""

    schedule: Odds


class Nominal(Line):
    """Limits of healthy joints; None for no limit."""

    lower: list[float | None]
    upper: list[float | None]
    effort: list[float | None]
    velocity: list[float | None]


class ScheduleSettings(Line):
    """Settings of a schedule as :attr:`umc.faults.FaultSchedule.settings`, which checks most of them itself."""

    severity: dict[str, Any] | None
    candidates: list[str] | None
    seed: int
    ratios: dict[str, float] | None
    scenario: list[str] | None
    scenarios: dict[str, Any] | None
    num_joints: tuple[int, int]
    stratified: bool = False
    joint_groups: dict[str, list[str]] | None = None
    num_faults: tuple[int, int]
    onset_range: tuple[int, int]
    onset: list[int] | None
    duration: tuple[int, int] | None
    period: tuple[int, int] | None
    duty: float
    episode_length: Step | None
    kinds: list[str]
    nominal: Nominal | None


class ScenarioEntry(Line):
    """A scenario that could be drawn."""

    name: str
    kinds: list[str]
    detected: bool


class HeaderLine(Line):
    """The first line, without the format's version."""

    umc: str
    robot: str
    joints: Annotated[list[str], Field(min_length=1, max_length=1024)]
    kinds: dict[str, str]
    scenarios: list[ScenarioEntry]
    num_faults: Annotated[int, Field(ge=1, le=MOST_FAULTS)]
    seed: int
    num_envs: Step
    step_dt: Annotated[float, Field(gt=0.0)] | None
    schedule: ScheduleSettings | None

    @model_validator(mode="after")
    def _once(self) -> Self:
        if len(set(self.joints)) != len(self.joints):
            raise ValueError("joints name one twice")
        if self.schedule is None:
            return self
        if self.schedule.num_faults[1] > self.num_faults:
            raise ValueError(f"schedule draws {self.schedule.num_faults[1]} faults, num_faults is {self.num_faults}")
        nominal = self.schedule.nominal
        if nominal is not None and {len(column) for _, column in nominal} != {len(self.joints)}:
            raise ValueError("schedule.nominal does not have a limit for each joint")
        return self


LINES: dict[str, type[Line]] = {
    "plan": PlanLine,
    "switch": SwitchLine,
    "amend": AmendLine,
    "end": EndLine,
    "schedule": ScheduleLine,
}
"""By the key that tells what a line is about."""
