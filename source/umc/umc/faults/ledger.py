# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Reads what really broke: the ledgers that :class:`umc.faults.LedgerWriter` writes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from umc.faults.cfg import check_path
from umc.faults.kinds import NO_LIMIT
from umc.faults.ledger_writer import FORMAT, VERSION
from umc.faults.plan import NO_SCENARIO
from umc.faults.scenarios import Scenario
from umc.utils.errors import UmcError

MANUAL_FAULT = "manual"
"""Name of the scenario of a manual fault."""


@dataclass(frozen=True)
class LedgerHeader:
    """What a recording run was."""

    umc: str
    """Version of UMC."""
    robot: str
    """What the robot is called."""
    joint_names: tuple[str, ...]
    """All joints."""
    kinds: dict[str, str]
    """Kinds in use, and the unit of their severity."""
    scenarios: tuple[Scenario, ...]
    """Scenarios that could be drawn."""
    num_faults: int
    """Most faults of an episode."""
    seed: int
    """Seed of all draws."""
    num_envs: int
    """Number of envs."""
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
    """Whether the policy gets the fault flag."""
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
    """Env steps from one return of an intermittent fault to the next; None if it does not come and go."""
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


@dataclass(frozen=True)
class LedgerSwitch:
    """A step in which faults went on or off."""

    step: int
    """Env step of the episode."""
    on: tuple[int, ...]
    """Faults of the plan that are on from now on, by number."""
    limits: dict[str, JointRange]
    """What the joints that have a joint fault can do from now on."""


@dataclass
class LedgerEpisode:
    """One episode of one env."""

    env: int
    """The env."""
    episode: int
    """Which of its episodes, counted from 0."""
    faults: tuple[LedgerFault, ...]
    """The plan with its manual changes; manual faults follow those that were drawn."""
    switches: list[LedgerSwitch] = field(default_factory=list)
    """What came of it."""
    length: int | None = None
    """Env steps that it took; None if the recording ended before it."""
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
    """A whole ledger."""

    path: Path
    """Where it was read."""
    header: LedgerHeader
    """What the run was."""
    episodes: dict[tuple[int, int], LedgerEpisode] = field(default_factory=dict)
    """By env and episode, in the order in which they began."""
    changes: int = 0
    """How often a curriculum changed what is drawn."""
    more_kinds: dict[str, str] = field(default_factory=dict)
    """Kinds that only manual faults have, and the unit of their severity."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """The ledger as a table, e.g. for ``pandas.DataFrame(ledger.rows())``.

        Yields:
            A row for each env, episode, fault, joint and kind; one without joint and kind for a healthy episode.
            ``set_in`` is the step in which the fault first went on, None if the episode ended before.
        """
        for episode in self.episodes.values():
            row: dict[str, Any] = {"env": episode.env, "episode": episode.episode, "length": episode.length}
            hits = [(number, fault) for number, fault in enumerate(episode.faults) if fault.joints]
            for number, fault in hits:
                set_in = next((switch.step for switch in episode.switches if number in switch.on), None)
                times = {name: getattr(fault, name) for name in ("onset", "end", "period", "on")} | {"set_in": set_in}
                about = {"fault": number, "scenario": fault.scenario.name, "detected": fault.detected}
                for kind, severity in fault.severity.items():
                    for joint, value in severity.items():
                        yield {**row, **about, **times, "joint": joint, "kind": kind, "severity": value}
            if not hits:
                name = episode.faults[0].scenario.name
                nothing = dict.fromkeys(("onset", "end", "period", "on", "set_in", "joint", "kind", "severity"))
                yield {**row, "fault": 0, "scenario": name, "detected": False, **nothing}


def read_ledger(path: str | Path, *, allow_torn: bool = False) -> Ledger:
    """Read a ledger; ``allow_torn`` leaves out a last line that was not written to its end.

    Raises UmcError if it is missing, torn, or no ledger of this format.
    """
    path = check_path("ledger", path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UmcError(f"cannot read the ledger {path}: {reason}") from error
    lines = text.split("\n")
    half = lines.pop()
    if half and not allow_torn:
        raise UmcError(
            f"the ledger {path} ends in half a line (line {len(lines) + 1}): its writer was killed;"
            " cut that line off to use the rest"
        )
    if not lines:
        raise UmcError(f"the ledger {path} is empty; record it again")
    ledger = Ledger(path, _header(path, _line(path, 1, lines[0])))
    for number, line in enumerate(lines[1:], start=2):
        content = _line(path, number, line)
        try:
            _take(ledger, content)
        except (KeyError, IndexError, TypeError, ValueError, struct.error) as error:
            raise UmcError(f"the ledger {path} makes no sense in line {number} ({_told(error)})") from error
    return ledger


def _line(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except json.JSONDecodeError as error:
        raise UmcError(f"the ledger {path} cannot be read in line {number}; record it again") from error
    if not isinstance(content, dict):
        raise UmcError(f"the ledger {path} cannot be read in line {number}; record it again")
    return content


def _header(path: Path, content: dict[str, Any]) -> LedgerHeader:
    if FORMAT not in content:
        raise UmcError(f"{path} is no fault ledger; its first line has no '{FORMAT}'")
    if content[FORMAT] != VERSION:
        raise UmcError(
            f"the ledger {path} has format version {content[FORMAT]}, this UMC reads version {VERSION};"
            f" use the UMC that wrote it ({content.get('umc')})"
        )
    try:
        return LedgerHeader(
            umc=content["umc"],
            robot=content["robot"],
            joint_names=tuple(content["joints"]),
            kinds=dict(content["kinds"]),
            scenarios=tuple(
                Scenario(one["name"], tuple(one["kinds"]), one["detected"]) for one in content["scenarios"]
            ),
            num_faults=content["num_faults"],
            seed=content["seed"],
            num_envs=content["num_envs"],
            step_dt=content["step_dt"],
            schedule=content["schedule"],
        )
    except (KeyError, TypeError) as error:
        raise UmcError(f"the header of the ledger {path} makes no sense ({_told(error)}); record it again") from error


def _take(ledger: Ledger, line: dict[str, Any]) -> None:
    """Add a line to the ledger."""
    if "plan" in line:
        env, episode = line["plan"]
        if (env, episode) in ledger.episodes:
            raise ValueError(f"episode {episode} of env {env} is planned twice")
        faults = tuple(_fault(ledger, fault) for fault in line["faults"])
        if len(faults) != ledger.header.num_faults:
            raise ValueError(f"{len(faults)} faults, not {ledger.header.num_faults}")
        ledger.episodes[env, episode] = LedgerEpisode(env, episode, faults, draws=_draws(line.get("draws")))
    elif "switch" in line:
        env, episode, step = line["switch"]
        names = [ledger.header.joint_names[joint] for joint in line.get("joints", ())]
        limits = {}
        if "lower" in line:
            columns = [
                [NO_LIMIT[name] if value is None else _float32(value) for value in line[name]]
                for name in ("lower", "upper", "effort", "velocity")
            ]
            limits = {name: JointRange(*row) for name, row in zip(names, zip(*columns, strict=True), strict=True)}
        ledger.episodes[env, episode].switches.append(LedgerSwitch(step, tuple(line["on"]), limits))
    elif "amend" in line:
        env, episode, _ = line["amend"]
        ledger.more_kinds |= line.get("kinds", {})
        _amend(ledger, ledger.episodes[env, episode], line["faults"])
    elif "end" in line:
        env, episode = line["end"]
        ledger.episodes[env, episode].length = line["length"]
    elif "schedule" in line:
        ledger.changes += 1
    else:
        raise ValueError(f"unknown entry {', '.join(line)}")


def _draws(words: Any) -> tuple[int, int, int] | None:
    if words is None:
        return None
    if not isinstance(words, list) or [type(word) for word in words] != [int] * 3:
        raise ValueError(f"draws {words} are no seed, env and episode")
    return words[0], words[1], words[2]


def _amend(ledger: Ledger, episode: LedgerEpisode, faults: dict[str, Any]) -> None:
    """Apply manual changes to a plan."""
    if episode.drawn is None:
        episode.drawn = episode.faults
    plan = list(episode.faults)
    for number, fault in sorted((int(number), fault) for number, fault in faults.items()):
        if not 0 <= number <= len(plan):
            raise ValueError(f"fault {number} follows {len(plan)}")
        plan[number : number + 1] = [_fault(ledger, fault)]
    episode.faults = tuple(plan)


def _fault(ledger: Ledger, fault: dict[str, Any]) -> LedgerFault:
    header, number = ledger.header, fault["scenario"]
    scenario = Scenario(MANUAL_FAULT) if number == NO_SCENARIO else header.scenarios[number]
    if "joints" not in fault:
        return LedgerFault(scenario)
    if number == NO_SCENARIO:
        scenario = replace(scenario, kinds=tuple(fault["kinds"]), detected=fault["detected"])
    joints = tuple(header.joint_names[joint] for joint in fault["joints"])
    unknown = set(fault["kinds"]) - set(header.kinds) - set(ledger.more_kinds)
    if unknown:
        raise ValueError(f"kind '{min(unknown)}' is not in the header")
    return LedgerFault(
        scenario=scenario,
        detected=fault["detected"],
        joints=joints,
        severity={kind: _per_joint(joints, value) for kind, value in fault["kinds"].items()},
        placement=_per_joint(joints, fault["placement"]),
        onset=fault["onset"],
        end=fault.get("end"),
        period=fault.get("period"),
        on=fault.get("on"),
    )


def _per_joint(joints: tuple[str, ...], value: float | list[float]) -> dict[str, float]:
    values = value if isinstance(value, list) else [value] * len(joints)
    return {joint: _float32(number) for joint, number in zip(joints, values, strict=True)}


def _float32(number: float) -> float:
    """The very number that was written, which was one of 32 bits."""
    return struct.unpack("f", struct.pack("f", number))[0]


def _told(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error)
