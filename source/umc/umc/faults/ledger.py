# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Ledgers of faults: plans, switches and ends of all episodes, one line of JSON each."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

import umc
from umc.faults.cfg import check_path
from umc.faults.kinds import ADDED, KINDS, NO_LIMIT, FaultKind, JointLimits
from umc.faults.ledger_lines import (
    LINES,
    MOST_FAULTS,
    AmendLine,
    EndLine,
    FaultEntry,
    HeaderLine,
    Line,
    PerJoint,
    PlanLine,
    SwitchLine,
)
from umc.faults.plan import NEVER, NO_SCENARIO, FaultPlan
from umc.faults.scenarios import Scenario
from umc.faults.schedule import FaultSchedule
from umc.faults.state import FaultState
from umc.utils.config import first_mistake
from umc.utils.errors import UmcError, shown
from umc.utils.text import MAX_BYTES, parse_json, read_text

FORMAT = "umc_fault_ledger"
"""Key of the header that holds the format's version."""

VERSION = 1
"""Version of the format."""

MAX_LEDGER_BYTES = 2**30
"""Largest ledger that is read [byte]: millions of episodes; a line is at most as long as another file."""

_DIGITS = 9
"""Significant digits that distinguish any two float32 numbers."""

MANUAL_FAULT = "manual"
"""Name of the scenario of a manual fault."""


@dataclass(frozen=True)
class LedgerHeader:
    """The recorded run."""

    umc: str
    """Version of UMC."""
    robot: str
    joint_names: tuple[str, ...]
    kinds: dict[str, str]
    """Kinds in use, and the unit of their severity."""
    scenarios: tuple[Scenario, ...]
    """Scenarios that could be drawn."""
    num_faults: int
    """Most faults of an episode."""
    seed: int
    num_envs: int
    step_dt: float | None
    """Length of an env step [s]."""
    schedule: dict[str, Any] | None
    """Parameters of the :class:`~umc.faults.FaultSchedule` that drew the plans; None if they were not drawn."""


@dataclass(frozen=True)
class LedgerFault:
    """One fault of a plan."""

    scenario: Scenario
    """What it was drawn from; one named :data:`MANUAL_FAULT` for a manual fault."""
    detected: bool = False
    joints: tuple[str, ...] = ()
    """Joints that fail; none in a healthy episode."""
    severity: dict[str, dict[str, float]] = field(default_factory=dict)
    """Severity by kind and joint, in the kind's unit."""
    placement: dict[str, float] = field(default_factory=dict)
    """Where a range-of-motion window lies between its two extreme positions, by joint [-]."""
    onset: int | None = None
    """First env step whose observation shows it."""
    end: int | None = None
    """First env step that is healthy again; None if it stays."""
    period: int | None = None
    """Env steps from one return of an intermittent fault to the next; None if it is not intermittent."""
    on: int | None = None
    """How many of these steps it is on."""


@dataclass(frozen=True)
class JointRange:
    """Limits of a joint that were written into physics."""

    lower: float
    """Lowest position [rad]."""
    upper: float
    """Highest position [rad]."""
    effort: float
    """Largest torque [N*m]."""
    velocity: float
    """Largest speed [rad/s]; infinite where the engine has none."""
    damping: float = 0.0
    """Viscous damping that faults add [N*m*s/rad]."""
    friction: float = 0.0
    """Dry friction that faults add [N*m]."""


@dataclass(frozen=True)
class LedgerSwitch:
    """A step in which faults went on or off."""

    step: int
    on: tuple[int, ...]
    """Faults of the plan that are on from now on, by number."""
    limits: dict[str, JointRange]
    """What the joints that have a joint fault can do from now on."""


@dataclass
class LedgerEpisode:
    """One episode of one env."""

    env: int
    episode: int
    """Which of the env's episodes, counted from 0."""
    faults: tuple[LedgerFault, ...]
    """The plan with its manual changes; manual faults follow those that were drawn."""
    switches: list[LedgerSwitch] = field(default_factory=list)
    length: int | None = None
    """Env step at which it ended, counted as onsets are; None if the recording ended before it."""
    drawn: tuple[LedgerFault, ...] | None = None
    """The plan before manual changes; None without any."""
    draws: tuple[int, int, int] | None = None
    """Seed, env and episode that its random numbers were drawn for; None for the header's seed and its own."""

    def limits_at(self, step: int) -> dict[str, JointRange]:
        """Return the limits of the joints that have a joint fault in an env step, by joint."""
        past = [switch for switch in self.switches if switch.step <= step]
        return past[-1].limits if past else {}


@dataclass
class Ledger:
    """The content of a ledger."""

    path: Path
    header: LedgerHeader
    episodes: dict[tuple[int, int], LedgerEpisode] = field(default_factory=dict)
    """By env and episode, in the order in which they started."""
    changes: int = 0
    """How often a curriculum changed what is drawn."""
    more_kinds: dict[str, str] = field(default_factory=dict)
    """Kinds that only manual faults have, and the unit of their severity."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return the ledger as a table, e.g. for ``pandas.DataFrame(ledger.rows())``.

        Yields:
            A row for each env, episode, fault, joint and kind; one without joint and kind for a healthy episode.
            ``set_in`` is the step in which the fault first went on, None if the episode ended before.
        """
        for episode in self.episodes.values():
            row: dict[str, Any] = {"env": episode.env, "episode": episode.episode, "length": episode.length}
            hits = [(number, fault) for number, fault in enumerate(episode.faults) if fault.joints]
            for number, fault in hits:
                # by time, as a fault that was healed on some of its joints has two numbers
                set_in = next((switch.step for switch in episode.switches if _is_due(fault, switch.step)), None)
                times = {name: getattr(fault, name) for name in ("onset", "end", "period", "on")} | {"set_in": set_in}
                about = {"fault": number, "scenario": fault.scenario.name, "detected": fault.detected}
                for kind, severity in fault.severity.items():
                    for joint, value in severity.items():
                        yield {**row, **about, **times, "joint": joint, "kind": kind, "severity": value}
            if not hits:
                name = episode.faults[0].scenario.name
                nothing = dict.fromkeys(("onset", "end", "period", "on", "set_in", "joint", "kind", "severity"))
                yield {**row, "fault": 0, "scenario": name, "detected": False, **nothing}


def _is_due(fault: LedgerFault, step: int) -> bool:
    return fault.onset is not None and fault.onset <= step and (fault.end is None or step < fault.end)


def read_ledger(path: str | Path, *, allow_truncated: bool = False) -> Ledger:
    """Read a ledger; ``allow_truncated`` leaves out a last line that was not written to its end.

    Raises UmcError if it is missing, torn, or not a ledger of this format.
    """
    path = check_path("ledger", path)
    again = "record it again"
    lines = read_text(path, again, MAX_LEDGER_BYTES).split("\n")
    half = lines.pop()
    if half and not allow_truncated:
        raise UmcError(
            f"the ledger {path} ends in half a line (line {len(lines) + 1}): its writer was killed;"
            " cut that line off to use the rest"
        )
    if not lines:
        raise UmcError(f"the ledger {path} is empty; {again}")
    ledger = Ledger(path, _header(path, _line(path, 1, lines[0])))
    for number, line in enumerate(lines[1:], start=2):
        content = _line(path, number, line)
        try:
            _add_line(ledger, content)
        except ValueError as error:
            reason = first_mistake(error) if isinstance(error, ValidationError) else shown(str(error))
            raise UmcError(f"line {number} of the ledger {path} is invalid ({reason}); {again}") from error
    return ledger


def _line(path: Path, number: int, line: str) -> dict[str, Any]:
    if len(line) > MAX_BYTES:
        raise UmcError(f"line {number} of the ledger {path} is longer than {MAX_BYTES >> 20} MiB; record it again")
    content = parse_json(line, f"line {number} of the ledger {path}", "record it again")
    if not isinstance(content, dict):
        raise UmcError(f"line {number} of the ledger {path} is no mapping; record it again")
    return content


def _header(path: Path, content: dict[str, Any]) -> LedgerHeader:
    if FORMAT not in content:
        raise UmcError(f"{path} is not a fault ledger; its first line has no '{FORMAT}'")
    if content[FORMAT] != VERSION:
        raise UmcError(
            f"the ledger {path} has format version {shown(content[FORMAT])}, this UMC reads version {VERSION};"
            f" use the UMC that wrote it ({shown(content.get('umc'))})"
        )
    own = {name: value for name, value in content.items() if name != FORMAT}
    try:
        found = _validated(HeaderLine, own)
    except ValidationError as error:
        reason = first_mistake(error)
        raise UmcError(f"the header of the ledger {path} is invalid ({reason}); record it again") from error
    scenarios = tuple(Scenario(one.name, tuple(one.kinds), one.detected) for one in found.scenarios)
    same = ("umc", "robot", "kinds", "num_faults", "seed", "num_envs", "step_dt")
    return LedgerHeader(
        **{name: getattr(found, name) for name in same},
        joint_names=tuple(found.joints),
        scenarios=scenarios,
        schedule=own["schedule"],
    )


def _validated[One: Line](model: type[One], content: dict[str, Any]) -> One:
    """Check a line as JSON, in which a tuple is a list."""
    return model.model_validate_json(json.dumps(content))


def _add_line(ledger: Ledger, content: dict[str, Any]) -> None:
    """Add a line; raise ValidationError or ValueError."""
    model = next((model for key, model in LINES.items() if key in content), None)
    if model is None:
        raise ValueError(f"unknown entry {', '.join(content)}")
    match _validated(model, content):
        case PlanLine() as line:
            if line.plan in ledger.episodes:
                raise ValueError(f"episode {line.plan[1]} of env {line.plan[0]} is planned twice")
            if line.plan[0] >= ledger.header.num_envs:
                raise ValueError(f"env {line.plan[0]} is not one of {ledger.header.num_envs}")
            if len(line.faults) != ledger.header.num_faults:
                raise ValueError(f"{len(line.faults)} faults, not {ledger.header.num_faults}")
            faults = tuple(_fault(ledger, fault) for fault in line.faults)
            ledger.episodes[line.plan] = LedgerEpisode(*line.plan, faults, draws=line.draws)
        case SwitchLine() as line:
            _episode(ledger, *line.switch[:2]).switches.append(_switch(ledger, line))
        case AmendLine() as line:
            ledger.more_kinds |= line.kinds
            _amend(ledger, _episode(ledger, *line.amend[:2]), line.faults)
        case EndLine() as line:
            _episode(ledger, *line.end).length = line.length
        case _:
            ledger.changes += 1


def _episode(ledger: Ledger, env: int, number: int) -> LedgerEpisode:
    if (env, number) not in ledger.episodes:
        raise ValueError(f"no plan of episode {number} of env {env} before it")
    return ledger.episodes[env, number]


def _switch(ledger: Ledger, line: SwitchLine) -> LedgerSwitch:
    limits = {}
    if line.lower is not None:
        columns = [
            [NO_LIMIT[name] if value is None else _float32(value) for value in getattr(line, name)] for name in NO_LIMIT
        ]
        columns += [[_float32(value) for value in getattr(line, name) or [0.0] * len(line.joints)] for name in ADDED]
        names = _joint_names(ledger, line.joints)
        limits = {name: JointRange(*row) for name, row in zip(names, zip(*columns, strict=True), strict=True)}
    return LedgerSwitch(line.switch[2], tuple(line.on), limits)


def _joint_names(ledger: Ledger, joints: Sequence[int]) -> tuple[str, ...]:
    names = ledger.header.joint_names
    if joints and max(joints) >= len(names):
        raise ValueError(f"joint {max(joints)} is not one of {len(names)}")
    return tuple(names[joint] for joint in joints)


def _amend(ledger: Ledger, episode: LedgerEpisode, faults: dict[str, FaultEntry]) -> None:
    """Apply manual changes to a plan."""
    if episode.drawn is None:
        episode.drawn = episode.faults
    plan = list(episode.faults)
    for number, fault in sorted((int(number), fault) for number, fault in faults.items()):
        if not 0 <= number <= len(plan) or number >= MOST_FAULTS:
            raise ValueError(
                f"fault {number} of an episode that has {len(plan)}; faults are numbered from 0 without gaps, at most "
                f"{MOST_FAULTS} of them"
            )
        plan[number : number + 1] = [_fault(ledger, fault)]
    episode.faults = tuple(plan)


def _fault(ledger: Ledger, fault: FaultEntry) -> LedgerFault:
    header, number = ledger.header, fault.scenario
    if number >= len(header.scenarios):
        raise ValueError(f"scenario {number} is not one of {len(header.scenarios)}")
    scenario = Scenario(MANUAL_FAULT) if number == NO_SCENARIO else header.scenarios[number]
    if fault.joints is None or fault.placement is None:
        return LedgerFault(scenario)
    detected = bool(fault.detected)
    if number == NO_SCENARIO:
        scenario = replace(scenario, kinds=tuple(fault.kinds), detected=detected)
    joints = _joint_names(ledger, fault.joints)
    unknown = set(fault.kinds) - set(header.kinds) - set(ledger.more_kinds)
    if unknown:
        raise ValueError(f"kind '{min(unknown)}' is not in the header")
    for kind, value in fault.kinds.items():
        _check_severity(ledger, kind, value)
    return LedgerFault(
        scenario=scenario,
        detected=detected,
        joints=joints,
        severity={kind: _per_joint(joints, value) for kind, value in fault.kinds.items()},
        placement=_per_joint(joints, fault.placement),
        **{name: getattr(fault, name) for name in ("onset", "end", "period", "on")},
    )


def _check_severity(ledger: Ledger, kind: str, value: PerJoint) -> None:
    """Refuse a severity out of the kind's range; a mild one of a curriculum lies between it and a healthy joint's."""
    known = KINDS.get(kind)
    if known is None:
        return
    bounds = FaultKind if ledger.changes else known
    low, high = bounds.min_severity, bounds.max_severity
    for number in value if isinstance(value, list) else [value]:
        # the written number is rounded to float32
        if not low <= number <= high * (1.0 + 1.0e-6):
            known.check(number)


def _per_joint(joints: tuple[str, ...], value: PerJoint) -> dict[str, float]:
    values = value if isinstance(value, list) else [value] * len(joints)
    if len(values) != len(joints):
        raise ValueError(f"{len(values)} numbers for {len(joints)} joints")
    return {joint: _float32(number) for joint, number in zip(joints, values, strict=True)}


def _float32(number: float) -> float:
    """Return the float32 number that was written, which may be rounded up from the largest."""
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError as error:
        raise ValueError(f"{number:g} is no float32 number") from error


class LedgerWriter:
    """Writer of the ledger of one environment.

    Each record is one write of complete lines, so that a killed process loses at most the env step it was in. With the
    ``schedule`` that draws the faults a replay can draw further episodes; ``step_dt`` is the length of an env step [s].
    Raises UmcError if the file exists or cannot be written.
    """

    def __init__(
        self,
        path: str | Path,
        state: FaultState,
        schedule: FaultSchedule | None = None,
        *,
        robot: str = "",
        step_dt: float | None = None,
    ) -> None:
        self.path = check_path("ledger", path)
        self._state, self._schedule = state, schedule
        self._changes = 0
        self._last: dict[int, int] = {}
        """Last episode of each env in this file; a resumed training does not begin with episode 0."""
        source = state.source
        self._known_kinds = {kind.name for kind in source.kinds}
        # joints stand in the order of the draws, so that a replay of a replay still draws the same
        self._joint = source.joint_ids.tolist()
        names = sorted(zip(self._joint, source.joint_names, strict=True))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("x", encoding="utf-8")
        except FileExistsError as error:
            raise UmcError(f"the ledger {self.path} is there already; delete it, or give another name") from error
        except OSError as error:
            raise UmcError(f"cannot write the ledger {self.path}: {error.strerror}") from error
        header = {
            FORMAT: VERSION,
            "umc": umc.__version__,
            "robot": robot,
            "joints": [name for _, name in names],
            "kinds": {kind.name: kind.unit for kind in source.kinds},
            "scenarios": [{"name": one.name, "kinds": one.kinds, "detected": one.detected} for one in source.scenarios],
            "num_faults": source.num_faults,
            "seed": source.seed,
            "num_envs": state.num_envs,
            "step_dt": step_dt,
            "schedule": None if schedule is None else schedule.settings,
        }
        self._write([header])

    def record_plans(self, env_ids: torch.Tensor, length: torch.Tensor) -> None:
        """Record the plans of episodes that have just started, and the lengths [env steps] of those before, (N,)."""
        lines: list[dict[str, Any]] = []
        schedule = self._schedule
        if schedule is not None and schedule.changes != self._changes:
            self._changes = schedule.changes
            lines.append({"schedule": {"ratios": schedule.ratios, "level": schedule.level}})
        envs, episodes = env_ids.tolist(), self._state.episode[env_ids].tolist()
        lines += [
            {"end": [env, episode - 1], "length": steps}
            for env, episode, steps in zip(envs, episodes, length.tolist(), strict=True)
            if self._last.get(env) == episode - 1
        ]
        self._last.update(zip(envs, episodes, strict=True))
        plan = self._state.plan
        names = [field.name for field in fields(FaultPlan)]
        rows: dict[str, list[Any]] = {name: getattr(plan, name)[env_ids].tolist() for name in names}
        source = self._state.source
        seeds, *words = source.random_key(env_ids + self._state.first_env, self._state.episode[env_ids])
        seeds = [seeds] * len(envs) if isinstance(seeds, int) else seeds.tolist()
        draws = list(zip(seeds, *(word.tolist() for word in words), strict=True))
        for row, (env, episode) in enumerate(zip(envs, episodes, strict=True)):
            faults = [
                self._fault({name: values[row][number] for name, values in rows.items()})
                for number in range(source.num_faults)
            ]
            line: dict[str, Any] = {"plan": [env, episode], "faults": faults}
            if draws[row] != (source.seed, env + self._state.first_env, episode):
                line["draws"] = draws[row]
            lines.append(line)
        self._write(lines)

    def record_changes(self, env: int, faults: Sequence[int]) -> None:
        """Record the faults, by number, that were changed manually in the plan of a running episode."""
        state = self._state
        line: dict[str, Any] = {"amend": [env, int(state.episode[env]), int(state.step[env])]}
        new = {kind.name: kind.unit for kind in state.kinds if kind.name not in self._known_kinds}
        if new:
            self._known_kinds |= new.keys()
            line["kinds"] = new
        names = [field.name for field in fields(FaultPlan)]
        line["faults"] = {
            str(number): self._fault({name: getattr(state.plan, name)[env, number].tolist() for name in names})
            for number in faults
        }
        self._write([line])

    def record_switches(self, envs: torch.Tensor, limits: JointLimits | None) -> None:
        """Record which faults are on in the envs of a mask, shape (E,), and the limits written into physics."""
        state, ids = self._state, envs.nonzero().squeeze(1)
        columns = (state.episode, state.step, state.faults_on, state.has_joint_fault)
        rows = zip(ids.tolist(), *(column[ids].tolist() for column in columns), strict=True)
        values = {} if limits is None else {name: limit[ids].tolist() for name, limit in vars(limits).items()}
        lines = []
        for row, (env, episode, step, on, broken) in enumerate(rows):
            line: dict[str, Any] = {"switch": [env, episode, step], "on": _where(on)}
            if any(broken):
                columns = _where(broken)
                line["joints"] = [self._joint[column] for column in columns]
                written = {name: [_number(limit[row][column]) for column in columns] for name, limit in values.items()}
                line |= {name: limit for name, limit in written.items() if name not in ADDED or any(limit)}
            lines.append(line)
        self._write(lines)

    def close(self) -> None:
        """Close the file; every record is on disk without it."""
        self._file.close()

    def _fault(self, fault: dict[str, Any]) -> dict[str, Any]:
        """One fault of a plan, without the values that have no effect."""
        columns, kinds = _where(fault["joints"]), _where(fault["kinds"])
        entry: dict[str, Any] = {"scenario": fault["scenario"]}
        if not columns or not kinds:
            return entry
        entry |= {"detected": fault["detected"], "joints": [self._joint[column] for column in columns]}
        entry |= {name: fault[name] for name in ("onset", "end") if fault[name] != NEVER}
        if fault["period"] != NEVER:
            entry |= {"period": fault["period"], "on": fault["on"]}
        severity = {self._state.kinds[kind].name: fault["severity"][kind] for kind in kinds}
        entry["kinds"] = {name: _short([_number(row[column]) for column in columns]) for name, row in severity.items()}
        entry["placement"] = [_number(fault["placement"][column]) for column in columns]
        return entry

    def _write(self, lines: list[dict[str, Any]]) -> None:
        if not lines:
            return
        try:
            text = [json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n" for line in lines]
            self._file.write("".join(text))
            self._file.flush()
        except OSError as error:
            raise UmcError(f"cannot write the ledger {self.path}: {error.strerror}") from error


def _where(row: list[bool]) -> list[int]:
    return [index for index, is_true in enumerate(row) if is_true]


def _number(value: float) -> float | None:
    """Return a float32 number with enough digits to restore its bits; None for an infinite one."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def _short(values: list[float | None]) -> Any:
    """Return a single number instead of equal ones."""
    return values[0] if len(set(values)) == 1 else values
