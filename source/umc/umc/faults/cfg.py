# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The description of faults that schedules, tasks and evaluations share, and the checks of its values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeGuard

from umc.faults.scenarios import SUBCATEGORIES, Description
from umc.utils.errors import UmcError

ONSET_RANGE = (1, 250)
"""First and last training onset [env steps]. The paper prints none; this holds its inference onsets (75, 100, 125), and
policies encounter faults both while they start to walk and within the first 5 s of walking."""

MOST_STEPS = 10**9
"""Longest duration and period [env steps]; a ledger holds steps up to 2^31."""

SeverityValue = float | Mapping[str, Any]
"""A number, a distribution, or a mapping from joint-name patterns to either."""

Span = int | tuple[int, int]
"""A number of env steps, or the least and the most, drawn uniformly."""


@dataclass(kw_only=True)
class FaultsCfg:
    """Configuration of faults: what fails, when and how hard.

    :func:`umc.mdp.add_faults` takes one, or its fields as keywords. In a task's cfg they are the parameters of the
    event term ``faults``, so that ``env.events.faults.params.num_joints=[1,2]`` overrides one of them.
    """

    severity: Mapping[str, SeverityValue] | None = None
    """By kind of fault: a number, a distribution, or a mapping from joint-name patterns (full match, the first that
    matches wins) to either. Distributions are ``{"uniform": [low, high]}``, ``{"log_uniform": [low, high]}``,
    ``{"choice": [a, b, ...]}``; ``{"fraction": ...}`` is a part of the healthy joint's value. Units are the kind's."""
    joint_names: Sequence[str] | None = None
    """Names or patterns (full match) of the joints that can fail; all joints if None."""
    seed: int = 0
    """Seed of every draw."""
    ratios: Sequence[float] | Mapping[str, float] = (1.0, 1.0, 1.0, 1.0)
    """How often each subcategory of the paper (``normal``, ``sensor_only``, ``detectable``, ``undetectable``) is drawn,
    or odds by the name of a scenario; names of kinds joined by + are one. They need not sum to 1."""
    scenario: int | str | Sequence[int | str] | None = None
    """Which scenario happens, in place of drawing one by :attr:`ratios`: one for all envs, or several that are assigned
    to envs in turn. Each is a number of the paper's table, a name, or kinds joined by +."""
    scenarios: Mapping[str, Description] | None = None
    """Which scenarios there are beside the paper's: your own by name, as lists of kinds or
    ``{"kinds": [...], "detected": True}``. They happen where ``scenario``, ``ratios`` or ``cases`` name them."""
    num_joints: tuple[int, int] = (2, 4)
    """Fewest and most faulty joints of a fault; of groups, where there are :attr:`joint_groups`."""
    joint_groups: Mapping[str, Sequence[str]] | None = None
    """Joints that fail together, such as a leg's or those of a bus or a board: lists of names or patterns (full match)
    by the group's name. A fault then draws groups, by their names, and hits all joints of these. Groups may overlap."""
    stratified: bool = False
    """Whether number and choice of faulty joints are balanced over the envs of an episode, or the members of a case,
    instead of being drawn for each alone: among the first n, their counts differ by at most 1."""
    num_faults: tuple[int, int] = (1, 1)
    """Fewest and most faults of an episode; each draws its scenario, joints and times."""
    onset_range: tuple[int, int] = ONSET_RANGE
    """First and last onset, drawn uniformly [env steps]."""
    onset: int | Sequence[int] | None = None
    """One or several onsets to choose from instead [env steps]."""
    duration: Span | None = None
    """How long a fault lasts [env steps]; None for the rest of the episode."""
    period: Span | None = None
    """From one return of an intermittent fault to the next [env steps]; None for a fault that stays."""
    duty: float = 0.5
    """Part of the period that an intermittent fault is on [-]."""
    cases: Sequence[Mapping[str, Any]] | None = None
    """Conditions that envs are assigned in turn, each changing some of the above (:class:`~umc.faults.FaultCases`)."""
    ledger: str | Path | None = None
    """File that records what happens; it must not exist (see docs/ledger.md)."""
    replay: str | Path | None = None
    """Ledger whose faults are replayed, whatever the other fields are."""

    def params(self) -> dict[str, Any]:
        """Return the parameters of the event term ``faults`` that differ from the defaults."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {one.name: values[one.name] for one in EVENT_FIELDS if values[one.name] != one.default}


EVENT_FIELDS = tuple(one for one in fields(FaultsCfg) if one.name != "joint_names")
"""Parameters of the event term, which names the joints by its ``asset_cfg``."""


NOT_OF_ONE_SCHEDULE = ("cases", "ledger", "replay")
"""Fields that concern all cases together."""


def faults_cfg(faults: FaultsCfg | None, changes: Mapping[str, Any], owner: str = "faults have") -> FaultsCfg:
    """Return a cfg, by default the default one, with some fields changed; raises UmcError for an unknown field."""
    known = [one.name for one in fields(FaultsCfg)]
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise UmcError(f"{owner} no parameter '{unknown[0]}'; see umc.faults.FaultsCfg for those there are")
    return replace(faults or FaultsCfg(), **changes)


def is_integer(value: Any) -> TypeGuard[int]:
    """Return whether a value is an integer; not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number; not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_list_of(fits: Callable[[Any], bool], value: Any, length: int | None = None) -> bool:
    """Return whether a value is a list, of a length if given, whose items fit; not a string."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and length in (None, len(value)) and all(fits(one) for one in value)


def check_flag(name: str, value: Any) -> bool:
    """Return a bool."""
    if not isinstance(value, bool):
        raise UmcError(f"{name} {value} must be true or false")
    return value


def check_seed(seed: Any) -> int:
    """Return the seed."""
    if not is_integer(seed):
        raise UmcError(f"seed {seed} must be a whole number")
    return seed


def check_mapping(name: str, value: Any) -> dict[str, Any]:
    """Return a mapping; an empty one for None."""
    if value is not None and not isinstance(value, Mapping):
        raise UmcError(f"{name} {value} must be a mapping, such as {{name: value}}")
    return dict(value or {})


def check_path(name: str, value: Any) -> Path:
    """Return the path of a file."""
    if not isinstance(value, str | Path):
        raise UmcError(f"{name} {value} must be the name of a file")
    return Path(value)


def check_scenario(scenario: Any) -> list[int | str]:
    """Return the scenarios that are assigned in turn."""
    names = [scenario] if isinstance(scenario, int | str) else scenario
    if not is_list_of(lambda name: isinstance(name, int | str), names):
        raise UmcError(f"scenario {scenario} must be a whole number, a name, or a list of these")
    if not names:
        raise UmcError("scenario must name one or several; none is given")
    return list(names)


def check_ratios(ratios: Sequence[float] | Mapping[str, float]) -> dict[str, float]:
    """Return odds by the name of a scenario."""
    if isinstance(ratios, Mapping):
        odds = dict(ratios)
    else:
        if not is_list_of(lambda _: True, ratios, len(SUBCATEGORIES)):
            raise UmcError(f"ratios {ratios} must have {len(SUBCATEGORIES)} numbers: {', '.join(SUBCATEGORIES)}")
        odds = dict(zip(SUBCATEGORIES, ratios, strict=True))
    shown = tuple(odds.values())
    if not all(is_number(ratio) and math.isfinite(ratio) and ratio >= 0.0 for ratio in shown):
        raise UmcError(f"ratios {shown} must be numbers, finite and not negative")
    if math.fsum(shown) <= 0.0:
        raise UmcError(f"ratios {shown} sum to 0; raise one of them ({', '.join(map(str, odds))})")
    return odds


def joint_pattern(owner: str, pattern: Any) -> re.Pattern[str]:
    """Compile a pattern of joint names; ``owner`` is whoever has it, for the message of an invalid one."""
    try:
        return re.compile(pattern)
    except (re.error, TypeError) as error:  # TypeError: a number, say
        raise UmcError(f"{owner}: '{pattern}' is no pattern of joint names ({error}); one is '.*_hip_joint'") from error


def check_patterns(patterns: Any) -> list[re.Pattern[str]]:
    """Return the compiled patterns of the joints that can fail; all joints for None."""
    patterns = [".*"] if patterns is None else patterns
    if not is_list_of(lambda name: isinstance(name, str), patterns) or not patterns:
        raise UmcError(f"joint_names must list names or patterns, such as ['.*_knee'], not {patterns!r}")
    return [joint_pattern("joint_names", pattern) for pattern in patterns]


def check_joints(joint_names: Sequence[str], patterns: Any) -> list[int]:
    """Return the indices of the joints that can fail, in the order of ``joint_names``."""
    fitting = {
        pattern.pattern: [i for i, name in enumerate(joint_names) if name == pattern.pattern or pattern.fullmatch(name)]
        for pattern in check_patterns(patterns)
    }
    unknown = [pattern for pattern, ids in fitting.items() if not ids]
    if unknown:
        raise UmcError(f"no joint is named {', '.join(unknown)}; the joints are {', '.join(joint_names)}")
    return sorted({index for ids in fitting.values() for index in ids})


def check_groups(joint_names: Sequence[str], candidates: Sequence[int], groups: Any) -> dict[str, list[int]] | None:
    """Return the indices of each group's joints among those that can fail; None for None."""
    if groups is None:
        return None
    if not isinstance(groups, Mapping) or not groups:
        raise UmcError(f"joint_groups {groups} must be a mapping of names to joints, such as {{left: ['L_.*']}}")
    able = [joint_names[index] for index in candidates]
    found = {}
    for name, patterns in groups.items():
        if not is_list_of(lambda one: isinstance(one, str), patterns) or not patterns:
            raise UmcError(f"joint_groups: '{name}' must list names or patterns of joints, such as ['L_.*']")
        try:
            found[str(name)] = [candidates[number] for number in check_joints(able, patterns)]
        except UmcError as error:
            raise UmcError(f"joint_groups: '{name}': {error}") from error
    return found


def check_count(name: str, count: Any, most: int, what: str) -> tuple[int, int]:
    """Return min and max, from 1 on."""
    if not is_list_of(is_integer, count, 2) or not 1 <= count[0] <= count[1]:
        raise UmcError(f"{name} {count} must be (min, max): two whole numbers from 1 on, such as (1, 2)")
    if count[1] > most:
        raise UmcError(f"{name} {tuple(count)}: max is {count[1]}, but there are {most} {what}; lower it")
    return count[0], count[1]


def check_onset(onset: Any, onset_range: Any, episode_length: int | None) -> tuple[list[int] | None, tuple[int, int]]:
    """Return the onsets to choose from, or None, and the range."""
    if not is_list_of(is_integer, onset_range, 2):
        raise UmcError(f"onset_range {onset_range} must be first and last step, two whole numbers")
    choices = [onset] if isinstance(onset, int) else onset
    if choices is not None and not is_list_of(is_integer, choices):
        raise UmcError(f"onset {onset} must be a whole number of env steps, or a list of them")
    name, steps = ("onset_range", tuple(onset_range)) if choices is None else ("onset", tuple(choices))
    if not steps or min(steps) < 1:
        raise UmcError(f"{name} {steps} must hold steps from 1 on (the first that an episode takes)")
    if choices is None and steps[0] > steps[1]:
        raise UmcError(f"{name} {steps} must be first and last step")
    if episode_length is not None and max(steps) >= episode_length:
        raise UmcError(f"{name} {steps} must lie before the episode's end at step {episode_length}")
    return None if choices is None else list(choices), (onset_range[0], onset_range[1])


def check_steps(name: str, steps: Any) -> tuple[int, int] | None:
    """Return the least and the most env steps, or None."""
    if steps is None:
        return None
    span = (steps, steps) if is_integer(steps) else steps
    if not is_list_of(is_integer, span, 2) or not 1 <= span[0] <= span[1] <= MOST_STEPS:
        raise UmcError(
            f"{name} {steps} must be a whole number of env steps from 1 to {MOST_STEPS}, or the least and the most"
        )
    return span[0], span[1]


def check_duty(duty: Any) -> float:
    """Return the part of a period that a fault is on."""
    if not is_number(duty) or not 0.0 < duty <= 1.0:
        raise UmcError(f"duty {duty} must be a number above 0 and at most 1")
    return duty
