# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The conditions of an evaluation as data: YAML files in ``config/protocols``, the paper's among them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, PositiveInt, field_validator, model_validator

from umc.evaluation.arguments import HEALTHY, MOST_STEPS
from umc.evaluation.metrics import check_radii
from umc.faults import FaultsCfg, Scenario, find_scenario, try_faults
from umc.utils.config import FileModel, FolderName, Seed, beside, config_names, merged, read_config_file, validated
from umc.utils.distributed import LARGEST_SEED
from umc.utils.errors import UmcError

DEFAULT_PROTOCOL = "umc_paper"
"""Protocol that ``--protocol`` names by default, for the paper's robots."""

ANY_ROBOT, ANY = "any_robot", "any"
"""Protocol of all others, and entry of a file that stands for every robot without one."""

STEP_DT = 0.02
"""Env step of the robots that the package's protocols were made for [s]."""

QUICK_ONSET = 10
"""Onset of a quick run [env steps]; far too early for figures, enough to see that everything works."""

QUICK_STEPS = 60
"""Length of a quick run [env steps]."""

GAIT_READS = ("command", "noise", "severity")
"""Fields of a protocol that ``--healthy`` reads, the last for the table of loads."""

ScenarioId = int | str
"""How protocols and studies name a :class:`umc.faults.Scenario`; see :func:`umc.faults.find_scenario`."""


@dataclass(frozen=True)
class Setting:
    """One of the paper's "malfunction setting groups"."""

    seed: int
    """Seed of the faults and of the starts."""
    onset: int
    """Env step after which faults set in."""
    perlin_seed: int | None = None
    """Seed of the terrain; None on flat ground."""
    joints: tuple[str, ...] | None = None
    """Joints that fail, all at once; None draws them as the protocol says. Sweeps set it."""
    severity: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """By kind of fault, in place of the protocol's."""

    @property
    def name(self) -> str:
        """What tables call it."""
        words = [f"seed {self.seed}", f"onset {self.onset}"]
        words += [] if self.perlin_seed is None else [f"terrain {self.perlin_seed}"]
        for kind, value in self.severity.items():
            is_fraction = isinstance(value, Mapping) and set(value) == {"fraction"}
            words.append(f"{kind} {value['fraction']} of healthy" if is_fraction else f"{kind} {value}")
        return ", ".join([*words, *(self.joints or ())])


@dataclass(frozen=True)
class Protocol:
    """Conditions that the robots of one kind encounter, and the length and radii of their evaluation."""

    name: str
    """What the file calls itself."""
    robot: str
    """Robot, as checkpoints name it."""
    num_envs: int
    """Robots of each scenario and setting in the original protocol."""
    steps: int
    """Length of an episode [env steps]."""
    num_joints: tuple[int, int]
    """Fewest and most faulty joints."""
    severity: Mapping[str, Any]
    """By kind of fault; see :mod:`umc.faults.severity`."""
    settings: tuple[Setting, ...]
    """Setting groups; every scenario is run in each."""
    scenarios: tuple[ScenarioId, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    """Scenarios, each on its own."""
    command: tuple[float, float, float] = (0.5, 0.0, 0.0)
    """Commanded velocity x [m/s], y [m/s], yaw [rad/s]."""
    radii: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0)
    """Radii of reached@k [m]."""
    draws: Literal["independent", "stratified"] = "independent"
    """Whether number and choice of faulty joints are drawn for each robot alone, or balanced over the robots of a cell,
    so that a few robots represent all draws. Studies without this entry drew independently."""
    noise: bool = False
    """Whether observations are as noisy as in the training; else they are exact."""
    push: float = 0.0
    """Largest change of the trunk's velocity by a push, along x and y [m/s]; 0 without pushes."""
    track: Mapping[str, float] = field(default_factory=dict)
    """Width, block length and border of the terrain's tracks [m]; empty on flat ground."""
    conditions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Scenarios of the protocol's own by name: fields of :class:`umc.faults.FaultsCfg`, such as ``joint_groups``, in
    place of those above; ``scenario`` is the name if it is left out."""

    def __post_init__(self) -> None:
        """Raise UmcError for an unknown or repeated scenario, an onset outside the episode, or invalid radii."""
        low, high = self.num_joints
        if low > high:
            raise UmcError(f"num_joints [{low}, {high}] must be the fewest and the most")
        if not self.scenarios:
            raise UmcError("the protocol has no scenario; the paper's are 1 to 8")
        for scenario in self.scenarios:
            self.scenario(scenario)
        if len(set(self.scenarios)) != len(self.scenarios):
            raise UmcError(f"scenarios {list(self.scenarios)} hold one twice; name each once")
        if not self.settings:
            raise UmcError("the protocol has no setting; give it a seed and an onset")
        for setting in self.settings:
            if not 0 < setting.onset < self.steps:
                raise UmcError(f"onset {setting.onset} must lie between step 1 and the episode's end at {self.steps}")
            if not 0 <= setting.seed <= LARGEST_SEED:
                raise UmcError(f"seed {setting.seed} of the protocol must be 0 or more, and less than 2^32")
        if len(set(self.settings)) != len(self.settings):
            raise UmcError("the protocol's settings hold one twice; change its seed or its onset")
        check_radii(self.radii)

    def scenario(self, name: ScenarioId) -> Scenario:
        """Return a scenario by its number or name; raise UmcError if there is none."""
        return find_scenario(self.conditions.get(str(name), {}).get("scenario", name))

    @property
    def seed(self) -> int:
        """Seed of the first setting."""
        return self.settings[0].seed

    @property
    def perlin_seeds(self) -> list[int]:
        """Terrain seeds of the settings, each once; empty if any setting has none."""
        seeds = [setting.perlin_seed for setting in self.settings if setting.perlin_seed is not None]
        return list(dict.fromkeys(seeds)) if len(seeds) == len(self.settings) else []

    @property
    def cells(self) -> list[tuple[Setting, ScenarioId]]:
        """Every scenario in every setting; scenarios change faster."""
        return [(setting, scenario) for setting in self.settings for scenario in self.scenarios]

    def cases(self) -> list[dict[str, Any]]:
        """Return the cells as cases of :class:`umc.faults.FaultCases`."""
        return [
            {
                "scenario": scenario,
                "seed": setting.seed,
                "onset": setting.onset,
                "severity": {**self.severity, **setting.severity},
                **({"stratified": True} if self.draws == "stratified" else {}),
                "num_joints": self.num_joints,
                **self.conditions.get(str(scenario), {}),
                **(
                    {"joint_names": setting.joints, "joint_groups": None, "num_joints": (len(setting.joints),) * 2}
                    if setting.joints is not None
                    else {}
                ),
            }
            for setting, scenario in self.cells
        ]

    def check_faults(self, joint_names: Sequence[str]) -> None:
        """Raise UmcError for what a robot of these joints refuses, before any simulation; fractions are of 1."""
        checked: list[dict[str, Any]] = []
        for case in self.cases():
            case["seed"] = 0
            if case not in checked:
                checked.append(case)
                try_faults(joint_names, FaultsCfg(cases=[case]), self.steps, f"protocol {self.name}")

    def check_severities(self, changes: Mapping[str, Any]) -> None:
        """Raise UmcError for a severity among the user's changes in whose place every setting has its own."""
        for key in changed(changes, "severity"):
            if all(key.split(".")[0] in setting.severity for setting in self.settings):
                fix = "leave it out, or give another --protocol (in a sweep sweep.grid.severity=[...])"
                raise UmcError(f"protocol.severity.{key}: the settings of protocol {self.name} have their own; {fix}")

    def check_gait(self, changes: Mapping[str, Any], reads: Sequence[str] = GAIT_READS) -> None:
        """Raise UmcError for what ``--healthy`` cannot do, or would ignore of the user's changes by dotted path."""
        if self.push:
            raise UmcError("protocol.push: --healthy does not push; use --scenarios 8 in its place")
        if ignored := [path for path in changes if path.split(".")[0] not in (*reads, "push")]:
            fix = "leave it out, or use --scenarios 8 in place of --healthy"
            raise UmcError(
                f"protocol.{ignored[0]}: of a protocol, --healthy reads {' and '.join(reads)} alone; "
                f"{'give --seed in its place' if ignored[0] == 'settings.seed' else fix}"
            )

    def without_track(self) -> Protocol:
        """Return the protocol on other ground, which has no terrain seeds."""
        settings = dict.fromkeys(replace(setting, perlin_seed=None) for setting in self.settings)
        return replace(self, track={}, settings=tuple(settings))

    def quick(self) -> Protocol:
        """Return the first setting alone in short episodes: a check that everything works."""
        first = replace(self.settings[0], onset=QUICK_ONSET)
        return replace(self, settings=(first,), steps=QUICK_STEPS)

    def check_envs(self, num_envs: int) -> None:
        """Raise UmcError if there are fewer envs than cells."""
        cells = len(self.cells)
        if num_envs < cells:
            raise UmcError(
                f"--num_envs {num_envs} is less than the {cells} cells of the protocol ({len(self.scenarios)} scenarios"
                f" in {len(self.settings)} settings); use at least one env for each, or fewer --scenarios"
            )

    def describe(self) -> dict[str, Any]:
        """Return the protocol in plain values, as reports print it."""
        described = asdict(self)
        for name in ("conditions", "noise", "push"):  # digests of cards are older than these fields
            if not described[name]:
                del described[name]
        return described


def changed(changes: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return what a user's changes give to the names of a protocol's section, as a whole or by dotted path."""
    by_path = {key: value for key, value in changes.items() if key.startswith(f"{section}.")}
    return {**(changes.get(section) or {}), **{key.removeprefix(f"{section}."): by_path[key] for key in by_path}}


def disturbances(noise: bool, push: float) -> dict[str, str]:
    """Return what reports say about noise, and about pushes of up to ``push`` [m/s]."""
    return {
        "noise": "as in the training" if noise else "off",
        "pushes": f"up to {push:g} m/s along x and y" if push else "off",
    }


def protocol_for(
    robot: str,
    scenarios: Sequence[ScenarioId] | None = None,
    radii: Sequence[float] | None = None,
    seed: int | None = None,
    name: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Protocol:
    """Return the protocol of a robot, with scenarios, radii [m] and one seed in place of the file's where given.

    ``name`` is a file in ``config/protocols`` or the path of one; without it, the paper's robots have
    :data:`DEFAULT_PROTOCOL` and others :data:`ANY_ROBOT`. ``overrides`` are other values of the robot's entry
    by dotted path, such as ``severity.rom``. Raises UmcError if there is no such file or entry, or a value is invalid.
    """
    if name is None:
        name = DEFAULT_PROTOCOL if robot in _read(DEFAULT_PROTOCOL).robots else ANY_ROBOT
    file = _read(name)
    own = file.robots.get(robot, file.robots.get(ANY))
    if own is None:
        others = ", ".join(sorted(file.robots))
        raise UmcError(
            f"protocol {name} has nothing for robot '{robot}', only for {others}; name another by --protocol"
        )
    chosen = {"scenarios": scenarios, "radii": radii}
    entry = {"scenarios": file.scenarios, **merged(own, overrides or {})}
    entry |= {key: list(value) for key, value in chosen.items() if value is not None}
    where = f"protocol {name}, robot {robot}"
    checked = validated(_RobotEntry, entry, where)
    try:
        return checked.protocol(file.name, robot, seed)
    except UmcError as error:
        raise UmcError(f"{where}: {error}") from error


def about_rate(
    robot: str, name: str | None, changes: Mapping[str, Any], step_dt: float, typed_onsets: bool = True
) -> list[str]:
    """Return a line about how long a protocol of the package is with env steps of ``step_dt`` [s] instead of 20 ms.

    There is none where the user's ``changes`` have the number of steps. It names the onsets only where they can be
    typed and are not.
    """
    own = name is not None and name not in config_names("protocol")
    if own or "steps" in changes or math.isclose(step_dt, STEP_DT, rel_tol=1e-3):
        return []
    protocol, ratio = protocol_for(robot, name=name, overrides=changes), STEP_DT / step_dt
    longer = f"protocol.steps={round(ratio * protocol.steps)}"
    if typed_onsets and not any(path.split(".")[0] == "settings" for path in changes):
        onsets = ",".join(str(max(1, round(ratio * setting.onset))) for setting in protocol.settings)
        longer += f" 'protocol.settings.onset=[{onsets}]'"
    seconds, rate = protocol.steps * step_dt, 1.0 / step_dt
    return [
        f"{protocol.steps} env steps of protocol {protocol.name} are {seconds:.4g} s at {rate:.4g} Hz; {longer} lasts "
        f"as long as at {1.0 / STEP_DT:g} Hz"
    ]


def _read(name: str) -> _ProtocolFile:
    content, where = read_config_file("protocol", name), f"protocol {name}"
    if "extends" not in content:
        return validated(_ProtocolFile, content, where)
    own = validated(_Extension, content, where)
    base = read_config_file("protocol", beside(name, own.extends))
    if "extends" in base:
        raise UmcError(f"{where} extends {own.extends}, which extends another; name the last of them")
    file = validated(_ProtocolFile, base, f"protocol {own.extends}")
    robots = {robot: merged(entry, own.overrides) for robot, entry in file.robots.items()}
    return file.model_copy(update={"name": own.name, "robots": robots})


def _scenario(name: Any) -> ScenarioId:
    if isinstance(name, int | str):
        return name  # whether there is one, the protocol checks
    raise UmcError(f"{name} is not a scenario; give a number or a name")


_MOST = 1000
"""Most settings, scenarios or radii."""

_Scenarios = Annotated[list[Annotated[Any, AfterValidator(_scenario)]], Field(max_length=_MOST)]
_Speed = Annotated[float, Field(ge=-100.0, le=100.0)]
_NumJoints = Annotated[list[PositiveInt], Field(min_length=2, max_length=2)]
_Length = Annotated[float, Field(gt=0.0, le=10_000.0)]


class _ProtocolFile(FileModel):
    name: FolderName
    scenarios: _Scenarios
    robots: dict[str, dict[str, Any]]


class _Extension(FileModel):
    """A file that changes another protocol: ``overrides`` are values of every robot's entry by dotted path."""

    name: FolderName
    extends: str
    overrides: dict[str, Any]


class _Columns(FileModel):
    """Settings as a file has them: one list for each field."""

    seed: Annotated[list[int], Field(max_length=_MOST)]
    onset: list[int]
    perlin_seed: list[Seed | None] = []
    severity: list[dict[str, Any]] = []

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        columns = (self.seed, self.onset, self.perlin_seed or self.seed, self.severity or self.seed)
        if len({len(column) for column in columns}) != 1:
            raise ValueError("the lists must have the same length")
        return self


class _Track(FileModel):
    width: _Length
    block_length: _Length
    border: Annotated[float, Field(ge=0.0, le=10_000.0)]


class _Condition(FileModel):
    """A scenario of a protocol's own; the fields are those of :class:`umc.faults.FaultsCfg`."""

    scenario: ScenarioId = HEALTHY
    """Its faults; those of the condition's own name where it is not given."""
    joint_names: list[str] | None = None
    joint_groups: dict[str, list[str]] | None = None
    num_joints: _NumJoints = [1, 1]
    duration: int | list[int] | None = None
    period: int | list[int] | None = None
    duty: float = 0.5


class _RobotEntry(FileModel):
    """A robot's entry of a protocol file; the fields are those of :class:`Protocol`."""

    num_envs: Annotated[int, Field(gt=0, le=2**20)]
    steps: Annotated[int, Field(gt=0, le=MOST_STEPS)]
    num_joints: _NumJoints
    severity: dict[str, Any]
    settings: _Columns
    scenarios: _Scenarios
    command: Annotated[list[_Speed], Field(min_length=3, max_length=3)] = list(Protocol.command)
    radii: Annotated[list[float], Field(max_length=_MOST)] = list(Protocol.radii)
    draws: Literal["independent", "stratified"] = "stratified"
    noise: bool = False
    push: Annotated[float, Field(ge=0.0, le=100.0)] = Protocol.push
    track: _Track | None = None
    conditions: dict[str, _Condition] = {}

    @field_validator("track", mode="before")
    @classmethod
    def _none(cls, track: Any) -> Any:
        return None if track == {} else track

    def protocol(self, name: str, robot: str, seed: int | None) -> Protocol:
        """Return the protocol; one ``seed`` replaces those of all settings."""
        columns = self.settings
        seeds = columns.seed if seed is None else [seed] * len(columns.seed)
        perlin_seeds, severities = columns.perlin_seed or [None] * len(seeds), columns.severity or [{}] * len(seeds)
        settings = [
            Setting(own, onset, perlin_seed, severity=severity)
            for own, onset, perlin_seed, severity in zip(seeds, columns.onset, perlin_seeds, severities, strict=True)
        ]
        others: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in self.model_dump(exclude={"settings", "track", "conditions"}).items()
        }
        return Protocol(
            name=name,
            robot=robot,
            settings=tuple(settings if seed is None else dict.fromkeys(settings)),
            track={} if self.track is None else self.track.model_dump(),
            conditions={name: one.model_dump(exclude_unset=True) for name, one in self.conditions.items()},
            **others,
        )
