# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Draws a plan of faults for each env and episode, from (seed, env, episode) and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from enum import IntEnum
from typing import Any
from zlib import crc32

import torch

from umc.faults.cfg import (
    NOT_OF_ONE_SCHEDULE,
    FaultsCfg,
    check_count,
    check_duty,
    check_flag,
    check_groups,
    check_joints,
    check_mapping,
    check_onset,
    check_ratios,
    check_scenario,
    check_seed,
    check_steps,
    faults_cfg,
)
from umc.faults.kinds import NO_LIMIT, FaultKind, JointLimits, find_kind
from umc.faults.plan import NEVER, FaultPlan
from umc.faults.random import Word, integers, philox, uniform
from umc.faults.scenarios import Scenario, find_scenario
from umc.faults.severity import Severities, require_matches
from umc.utils.errors import UmcError

RandomKey = tuple[Word, torch.Tensor, torch.Tensor]
"""Seed, env and episode that random numbers are drawn for; one seed for all envs, or one for each."""


class _Stream(IntEnum):
    """The third word of the counter: every quantity has random numbers of its own. Append only: plans depend on it."""

    SUBCATEGORY = 0
    NUM_JOINTS = 1
    JOINTS = 2
    ONSET = 3
    PLACEMENT = 4
    COUNT = 5
    DURATION = 6
    PERIOD = 7
    SPREAD_NUMBER = 8
    SPREAD_JOINTS = 9


_PER_JOINT = (_Stream.JOINTS, _Stream.PLACEMENT)
_PER_FAULT = (_Stream.SUBCATEGORY, _Stream.NUM_JOINTS, _Stream.ONSET, _Stream.DURATION, _Stream.PERIOD)
"""Quantities of which each joint has one, and each fault."""

_STREAMS_OF_A_FAULT = 64
"""Streams set aside for each fault of an episode."""

_MOST_TABLES = 64
"""Most episodes whose spread joints are kept."""

_NAMED = 1 << 31
"""Streams with a name lie above those with a number."""

_OPTIONAL = ("stratified", "joint_groups")
"""Fields of :class:`FaultsCfg` that ledgers hold only where they are set."""

_SETTINGS = [f.name for f in fields(FaultsCfg) if f.name not in (*NOT_OF_ONE_SCHEDULE, *_OPTIONAL)]
"""Fields of :class:`FaultsCfg` in ledgers, which call the joint names candidates."""


class FaultSchedule:
    """Fault schedule: draws a :class:`FaultPlan` for any env and episode.

    The draw is a function of (seed, env, episode): env 17's fifth episode breaks the same way among 64 or 4,096 envs,
    on a CPU or a GPU, in any order of resets.

    Args:
        joint_names: All joints, in the order of observations.
        faults: Description of the faults.
        episode_length: Length of an episode, to check the onsets against [env steps].
        nominal: Limits of healthy joints, every shape (J,): for severities that are fractions, and for mild ones.
        kinds: Kinds that plans have room for besides those of the scenarios.
        device: Where plans are made.
        changes: Fields of ``faults``, as a shorthand.

    Raises:
        UmcError: If a field is invalid.
    """

    scenarios: tuple[Scenario, ...]
    """All scenarios that may be drawn."""

    def __init__(
        self,
        joint_names: Sequence[str],
        /,
        faults: FaultsCfg | None = None,
        *,
        episode_length: int | None = None,
        nominal: JointLimits | None = None,
        kinds: Sequence[str] = (),
        device: str | torch.device = "cpu",
        **changes: Any,
    ) -> None:
        cfg = faults_cfg(faults, changes)
        self.joint_names, self.device = tuple(joint_names), torch.device(device)
        self.level = 1.0
        """Share of the full severity, from 0 for healthy joints to 1; a curriculum raises it."""
        self.changes = 0
        """How often odds or level have changed since; if not 0, plans depend on when they were drawn."""
        self.joint_ids = torch.arange(len(self.joint_names), device=self.device)
        """Number of each joint in random draws."""
        ids = check_joints(self.joint_names, cfg.joint_names)
        groups = check_groups(self.joint_names, ids, cfg.joint_groups)
        if groups is not None:  # joints of no group cannot fail
            ids = sorted({joint for members in groups.values() for joint in members})
        self._candidates = torch.zeros(len(self.joint_names), dtype=torch.bool, device=self.device)
        self._candidates[ids] = True
        self._groups = None if groups is None else _Groups(groups, len(self.joint_names), self.device)
        units = (len(ids), "joints that can fail") if groups is None else (len(groups), "joint groups")
        onset, onset_range = check_onset(cfg.onset, cfg.onset_range, episode_length)
        self._onsets = None if onset is None else torch.tensor(onset, device=self.device)
        self._cfg = cfg = replace(
            cfg,
            seed=check_seed(cfg.seed),
            severity=check_mapping("severity", cfg.severity),
            scenarios=check_mapping("scenarios", cfg.scenarios),
            num_joints=check_count("num_joints", cfg.num_joints, *units),
            num_faults=check_count("num_faults", cfg.num_faults, _STREAMS_OF_A_FAULT, "faults of an episode at most"),
            onset=onset,
            onset_range=onset_range,
            duration=check_steps("duration", cfg.duration),
            period=check_steps("period", cfg.period),
            duty=check_duty(cfg.duty),
            stratified=check_flag("stratified", cfg.stratified),
        )
        spread = (ids, len(self.joint_names)) if groups is None else (range(len(groups)), len(groups))
        self._spread = _Spread(cfg.seed, cfg.num_joints, *spread) if cfg.stratified else None
        self.seed = cfg.seed

        self._assigned: torch.Tensor | None = None
        self._cumulative: torch.Tensor | None = None
        self._odds: dict[str, float] | None = None
        assigned = self._find_scenarios(cfg)
        self.settings: dict[str, Any] = {
            **{"candidates" if name == "joint_names" else name: _plain(getattr(cfg, name)) for name in _SETTINGS},
            "ratios": self.ratios,
            "scenario": assigned,
            "episode_length": episode_length,
            "kinds": list(kinds),
            "nominal": None
            if nominal is None
            else {name: _plain(getattr(nominal, name).tolist()) for name in NO_LIMIT},
        }
        self.settings |= {name: _plain(value) for name in _OPTIONAL if (value := getattr(cfg, name))}
        """The arguments in plain numbers, strings, lists and mappings, as ledgers hold them (:meth:`from_settings`)."""

        severity = cfg.severity or {}
        named = {kind: find_kind(kind) for kind in severity}
        own = {name: find_kind(name) for scenario in self.scenarios for name in scenario.kinds}
        used = {name: find_kind(name) for name in kinds} | own
        self.kinds: tuple[FaultKind, ...] = tuple(sorted(used.values(), key=lambda kind: (kind.rank, kind.name)))
        """Kinds in use, in the order in which they act."""
        self._severities: dict[str, Severities] = {}
        for kind in {**named, **used}.values():
            value = severity.get(kind.name, kind.default)
            if value is None and kind.name not in {**named, **own}:
                continue  # never drawn: it is in the plans of other cases
            if kind.name in named and not kind.unit:
                raise UmcError(f"kind '{kind.name}' has no severity; leave it out of severity")
            if value is None:
                raise UmcError(f"kind '{kind.name}' needs a severity {kind.unit}: severity={{'{kind.name}': ...}}")
            require_matches(kind, value, self.joint_names)  # joints that do not fail here may have one, too
            self._severities[kind.name] = Severities(kind, value, self.joint_names, ids, nominal, self.device)
        table = [[kind.name in scenario.kinds for kind in self.kinds] for scenario in self.scenarios]
        self._kinds_of = torch.tensor(table, dtype=torch.bool, device=self.device)
        self._detected = torch.tensor([scenario.detected for scenario in self.scenarios], device=self.device)
        self._assign_words()

    @classmethod
    def from_settings(
        cls, joint_names: Sequence[str], settings: Mapping[str, Any], device: str | torch.device
    ) -> FaultSchedule:
        """Make the schedule that wrote its :attr:`settings` into a ledger."""
        values = dict(settings)
        values["joint_names"] = values.pop("candidates")
        if values["nominal"] is not None:
            limits = {
                name: torch.tensor([NO_LIMIT[name] if value is None else value for value in column], device=device)
                for name, column in values["nominal"].items()
            }
            values["nominal"] = JointLimits(**limits)
        environment = {name: values.pop(name) for name in ("episode_length", "nominal", "kinds")}
        return cls(joint_names, faults_cfg(None, values), **environment, device=device)

    @property
    def num_faults(self) -> int:
        """Most faults of an episode."""
        return self._cfg.num_faults[1]

    @property
    def ratios(self) -> dict[str, float] | None:
        """Odds of each scenario; None if scenarios are assigned."""
        return None if self._odds is None else dict(self._odds)

    @property
    def has_faults(self) -> bool:
        """Whether any env can get a fault now; False for a healthy stage."""
        odds = self._odds or {}
        return any(odds.get(scenario.name, 1.0) > 0.0 and scenario.kinds for scenario in self.scenarios)

    def require_limits(self, nominal: JointLimits) -> None:
        """Raise UmcError if a kind would have no effect on a joint, whose healthy limits, shape (J,), are none."""
        for kind in sorted({kind for scenario in self.scenarios for kind in scenario.kinds}):
            self._severities[kind].require_limits(nominal)

    def typical_severity(self, kind: str, joint: int) -> float | None:
        """Middle of the severities of a kind and joint, in the kind's unit; None if there are none."""
        if kind not in self._severities or not self._candidates[joint]:
            return None
        middle = torch.full((1, len(self.joint_names)), 0.5, device=self.device)
        return float(self._severities[kind].sample(middle, 1.0)[0, joint])

    def checked_ratios(self, ratios: Sequence[float] | Mapping[str, float]) -> dict[str, float]:
        """Return ratios by scenario; raises UmcError where :meth:`set_ratios` does."""
        if self._assigned is not None:
            raise UmcError(
                "scenarios are assigned to envs here, which no ratios change; leave the fault curriculum out"
            )
        odds = self._by_name(check_ratios(ratios))
        known = [scenario.name for scenario in self.scenarios]
        if unknown := [name for name in odds if name not in known]:
            raise UmcError(f"scenario '{unknown[0]}' is new; name it in the schedule's ratios, even with odds of 0")
        return odds

    def set_ratios(self, ratios: Sequence[float] | Mapping[str, float]) -> None:
        """Change the ratios of all plans from now on; raises UmcError if scenarios are assigned, or one is new."""
        self._set_odds(self.checked_ratios(ratios))
        self.changes += 1

    def set_level(self, level: float) -> None:
        """Change the share of the full severity, from 0 to 1, for all plans from now on.

        Raises UmcError if it is out of range, or no kind in use has a mild form.
        """
        if not 0.0 <= level <= 1.0:
            raise UmcError(f"level {level} must be from 0 to 1")
        drawn = [self._severities[kind.name] for kind in self.kinds if kind.name in self._severities]
        if self.kinds and not any(severities.can_be_mild for severities in drawn):
            raise UmcError(
                f"none of {', '.join(kind.name for kind in self.kinds)} has a mild form; leave the level out"
            )
        self.changes += level != self.level
        self.level = level

    def _find_scenarios(self, cfg: FaultsCfg) -> list[str] | None:
        """Find the scenarios that are drawn, or those that are assigned; return the names of the latter."""
        if cfg.scenario is None:
            odds = self._by_name(check_ratios(cfg.ratios))
            # a scenario of no odds may get some later, but only with a severity
            self.scenarios = tuple(find_scenario(name, cfg.scenarios) for name in odds)
            self._set_odds(odds)
            return None
        in_turn = [find_scenario(name, cfg.scenarios) for name in check_scenario(cfg.scenario)]
        self.scenarios = tuple(dict.fromkeys(in_turn))
        self._assigned = torch.tensor([self.scenarios.index(one) for one in in_turn], device=self.device)
        return [scenario.name for scenario in in_turn]

    def _by_name(self, odds: Mapping[Any, float]) -> dict[str, float]:
        """Return odds by the name of their scenario; UmcError if one is named twice."""
        names = [find_scenario(name, self._cfg.scenarios).name for name in odds]
        if twice := [name for name in names if names.count(name) > 1]:
            raise UmcError(f"ratios name scenario '{twice[0]}' twice; leave one of the two out")
        return dict(zip(names, odds.values(), strict=True))

    def _set_odds(self, odds: Mapping[str, float]) -> None:
        self._odds = {scenario.name: float(odds.get(scenario.name, 0.0)) for scenario in self.scenarios}
        numbers = torch.tensor([self._odds[scenario.name] for scenario in self.scenarios], dtype=torch.float64)
        self._cumulative = (numbers.cumsum(0) / numbers.sum()).to(self.device)

    def draw(self, env_ids: torch.Tensor, episode: torch.Tensor) -> FaultPlan:
        """Draw the plans of some envs and their episodes, counted from 0; both int64 of shape (N,)."""
        words, shares = self._draw_words(env_ids, episode)
        count = integers(words[int(_Stream.COUNT)], *self._cfg.num_faults)
        faults = [self._draw_fault(env_ids, words, shares, number, number < count) for number in range(self.num_faults)]
        if self._spread is not None:
            for number, fault in enumerate(faults):
                joints = self._spread.joints(_STREAMS_OF_A_FAULT * number, env_ids, episode)
                joints = joints if self._groups is None else self._groups.joints(joints)
                fault["joints"] = joints & fault["kinds"].any(dim=1, keepdim=True)
        return FaultPlan(**{name: torch.stack([fault[name] for fault in faults], dim=1) for name in faults[0]})

    def random_key(self, env_ids: torch.Tensor, episode: torch.Tensor) -> RandomKey:
        """Return seed, env and episode that random numbers step by step, such as those of noise, are drawn for."""
        return self.seed, env_ids, episode

    def _assign_words(self) -> None:
        """Give every random word of a plan its place, so that one call of Philox draws them all."""
        ones, many = [int(_Stream.COUNT)], []
        for number in range(self.num_faults):
            first = _STREAMS_OF_A_FAULT * number
            ones += [first + stream for stream in _PER_FAULT]
            ones += [] if self._groups is None else self._groups.streams(number)
            many += [first + stream for stream in _PER_JOINT]
            many += [named_stream(f"{number}/{kind.name}") for kind in self.kinds]
        joints = len(self.joint_names)
        streams = torch.tensor([*ones, *(stream for stream in many for _ in range(joints))], device=self.device)
        no_joint = torch.zeros(len(ones), dtype=torch.long, device=self.device)
        self._ones, self._many = ones, many
        self._counter = streams, torch.cat((no_joint, self.joint_ids.repeat(len(many))))

    def _draw_words(
        self, env_ids: torch.Tensor, episode: torch.Tensor
    ) -> tuple[dict[int, torch.Tensor], dict[int, torch.Tensor]]:
        """Random words by stream, and uniform numbers. Shapes are (N,), or (N, J) where each joint has its own.

        Uniform numbers are those of joints only.
        """
        words = philox(self.seed, (env_ids[:, None], episode[:, None], *self._counter))
        singles, rest = words[:, : len(self._ones)].unbind(1), words[:, len(self._ones) :]
        per_joint, shares = (values.split(len(self.joint_names), dim=1) for values in (rest, uniform(rest)))
        found = dict(zip(self._ones, singles, strict=True)) | dict(zip(self._many, per_joint, strict=True))
        return found, dict(zip(self._many, shares, strict=True))

    def _draw_fault(
        self,
        env_ids: torch.Tensor,
        words: Mapping[int, torch.Tensor],
        shares: Mapping[int, torch.Tensor],
        number: int,
        wanted: torch.Tensor,
    ) -> dict[str, Any]:
        """One fault of each env; every entry's shape is (N, ...)."""
        cfg, first = self._cfg, _STREAMS_OF_A_FAULT * number

        def steps(stream: _Stream, span: Any) -> torch.Tensor:
            return torch.full_like(env_ids, NEVER) if span is None else integers(words[first + stream], *span)

        scenario = self._draw_scenario(env_ids, words[first + _Stream.SUBCATEGORY])
        kinds = self._kinds_of[scenario] & wanted[:, None]
        has_fault = kinds.any(dim=1)

        num_joints = integers(words[first + _Stream.NUM_JOINTS], *cfg.num_joints)
        if self._groups is None:
            # joints that cannot fail come last
            keys = words[first + _Stream.JOINTS] * len(self.joint_names) + self.joint_ids
            joints = _ranks(torch.where(self._candidates, keys, keys + NEVER)) < num_joints[:, None]
        else:
            keys = torch.stack([words[stream] for stream in self._groups.streams(number)], dim=1) * len(self._groups)
            keys = keys + torch.arange(len(self._groups), device=self.device)
            joints = self._groups.joints(_ranks(keys) < num_joints[:, None])

        if self._onsets is None:
            onset = integers(words[first + _Stream.ONSET], *cfg.onset_range)
        else:
            onset = self._onsets[integers(words[first + _Stream.ONSET], 0, len(self._onsets) - 1)]
        end = steps(_Stream.DURATION, cfg.duration) + (0 if cfg.duration is None else onset)
        period = steps(_Stream.PERIOD, cfg.period)
        on = period if cfg.period is None else (period.double() * cfg.duty).round().long().clamp(min=1)
        severity = torch.zeros(len(env_ids), len(self.kinds), len(self.joint_names), device=self.device)
        for index, kind in enumerate(self.kinds):
            if kind.name in self._severities:
                share = shares[named_stream(f"{number}/{kind.name}")]
                share = share[:, :1].expand_as(share) if kind.shared_severity else share
                severity[:, index] = self._severities[kind.name].sample(share, self.level)
        return {
            "scenario": scenario,
            "joints": joints & has_fault[:, None],
            "kinds": kinds,
            "detected": self._detected[scenario] & has_fault,
            "onset": torch.where(has_fault, onset, NEVER),
            "end": torch.where(has_fault, end, NEVER),
            "period": period,
            "on": on,
            "severity": severity,
            "placement": shares[first + _Stream.PLACEMENT],
        }

    def _draw_scenario(self, env_ids: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        if self._assigned is not None:
            return self._assigned[env_ids % len(self._assigned)]
        assert self._cumulative is not None
        return torch.bucketize(uniform(words).double(), self._cumulative[:-1], right=True)


def _ranks(keys: torch.Tensor) -> torch.Tensor:
    """Ranks in each row; of distinct keys they are the same whatever the sorting algorithm."""
    return keys.argsort(dim=1).argsort(dim=1)


class _Groups:
    """Joints that fail together; a group's random words depend on its name alone."""

    def __init__(self, groups: Mapping[str, Sequence[int]], joints: int, device: torch.device) -> None:
        self._names = list(groups)
        self._members = torch.zeros(len(groups), joints, dtype=torch.bool, device=device)
        for row, ids in enumerate(groups.values()):
            self._members[row, list(ids)] = True

    def __len__(self) -> int:
        return len(self._names)

    def streams(self, number: int) -> list[int]:
        """Return the streams of the groups' words for a fault of an episode."""
        return [named_stream(f"{number}/group {name}") for name in self._names]

    def joints(self, chosen: torch.Tensor) -> torch.Tensor:
        """Turn the groups of each row, shape (N, groups), into their joints, (N, J)."""
        return (chosen[:, :, None] & self._members).any(dim=1)


class _Spread:
    """Spreads number and choice of joints over envs, so that few of them have the shares of many.

    Every (most - fewest + 1) envs in a row have each number once, in an order that is drawn. Joints are taken from one
    drawn order of all after the other; where one ends inside an env, the next goes on with joints that the env does not
    have yet. So any first envs have each number, and each joint, as often as another or once more; and an env's faults
    still depend on seed, env and episode only.
    """

    def __init__(self, seed: int, num_joints: tuple[int, int], candidates: Sequence[int], joints: int) -> None:
        self._seed, self._num_joints = seed, num_joints
        self._candidates, self._joints = torch.tensor(candidates), joints
        self._tables: dict[tuple[int, int], torch.Tensor] = {}
        """Faulty joints of the first envs, by stream and episode. Shapes are (N, J)."""

    def joints(self, stream: int, env_ids: torch.Tensor, episode: torch.Tensor) -> torch.Tensor:
        """Return the faulty joints of some envs and episodes. Shape is (N, J)."""
        found = torch.zeros(len(env_ids), self._joints, dtype=torch.bool, device=env_ids.device)
        for number in episode.unique().tolist():
            mine = episode == number
            envs = env_ids[mine]
            found[mine] = self._table(stream, number, int(envs.max()) + 1).to(env_ids.device)[envs]
        return found

    def _table(self, stream: int, episode: int, rows: int) -> torch.Tensor:
        key = (stream, episode)
        if key not in self._tables or len(self._tables[key]) < rows:
            if len(self._tables) >= _MOST_TABLES:
                self._tables.clear()
            self._tables[key] = self._make(stream, episode, max(rows, 64))
        return self._tables[key]

    def _make(self, stream: int, episode: int, rows: int) -> torch.Tensor:
        low, high = self._num_joints
        options = torch.arange(high - low + 1)
        counts = self._orders(stream + _Stream.SPREAD_NUMBER, episode, options, rows).flatten()[:rows] + low
        orders = self._orders(stream + _Stream.SPREAD_JOINTS, episode, self._candidates, int(counts.sum()))
        table = torch.zeros(rows, self._joints, dtype=torch.bool)
        following = iter(orders.tolist())
        left: list[int] = []
        for row, count in enumerate(counts.tolist()):
            taken, left = left[:count], left[count:]
            if len(taken) < count:
                order = next(following)
                more = [joint for joint in order if joint not in taken][: count - len(taken)]
                taken, left = taken + more, [joint for joint in order if joint not in more]
            table[row, taken] = True
        return table

    def _orders(self, stream: int, episode: int, values: torch.Tensor, least: int) -> torch.Tensor:
        """Return so many orders of the values that they are at least as many in all. Shape is (N, values)."""
        block = torch.arange(-(-least // len(values)))[:, None]
        words = philox(self._seed, (block, episode, stream, values[None, :]))
        # distinct keys, so that the order is the same whatever the sorting algorithm
        keys = words * len(values) + torch.arange(len(values))
        return values[keys.argsort(dim=1)]


def _plain(value: Any) -> Any:
    """Mappings, sequences and numbers as configs hold them, made of what JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isinf(value) else value  # no limit; JSON has no infinity


def named_stream(name: str) -> int:
    """Return the third word of the counter for a quantity that has a name only."""
    return crc32(name.encode()) | _NAMED
