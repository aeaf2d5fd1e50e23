# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The conditions of an evaluation as data: YAML files in ``config/protocols``, the paper's among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from umc.evaluation.metrics import check_radii
from umc.evaluation.protocol_checks import ENTRY_KEYS, check_entry
from umc.faults import find_scenario
from umc.utils.config import read_config_file
from umc.utils.distributed import LARGEST_SEED
from umc.utils.errors import UmcError

DEFAULT_PROTOCOL = "umc_paper"
"""Protocol that ``--protocol`` names by default."""

QUICK_ONSET = 10
"""Onset of a quick run [env steps]; far too early for figures, enough to see that everything works."""

QUICK_STEPS = 60
"""Length of a quick run [env steps]."""

Scenario = int | str


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
    """By kind of fault, in place of the protocol's. Sweeps set it."""

    @property
    def name(self) -> str:
        """What tables call it."""
        words = [f"seed {self.seed}", f"onset {self.onset}"]
        for kind, value in self.severity.items():
            is_fraction = isinstance(value, Mapping) and set(value) == {"fraction"}
            words.append(f"{kind} {value['fraction']} of healthy" if is_fraction else f"{kind} {value}")
        return ", ".join([*words, *(self.joints or ())])


@dataclass(frozen=True)
class Protocol:
    """What the robots of one kind meet and how it is judged."""

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
    """Setting groups; every scenario meets each."""
    scenarios: tuple[Scenario, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    """Scenarios, each on its own."""
    command: tuple[float, float, float] = (0.5, 0.0, 0.0)
    """Commanded velocity x [m/s], y [m/s], yaw [rad/s]."""
    radii: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0)
    """Radii of reached@k [m]."""
    track: Mapping[str, float] = field(default_factory=dict)
    """Width, block length and border of the terrain's tracks [m]; empty on flat ground."""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UmcError: If a scenario is unknown or named twice, an onset lies outside the episode, or radii do not grow.
        """
        if not self.scenarios:
            raise UmcError("the protocol has no scenario; the paper's are 1 to 8")
        for scenario in self.scenarios:
            find_scenario(scenario)
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
    def cells(self) -> list[tuple[Setting, Scenario]]:
        """Every scenario in every setting; scenarios change faster."""
        return [(setting, scenario) for setting in self.settings for scenario in self.scenarios]

    def cases(self) -> list[dict[str, Any]]:
        """The cells as cases of :class:`umc.faults.FaultCases`."""
        return [
            {
                "scenario": scenario,
                "seed": setting.seed,
                "onset": setting.onset,
                "severity": {**self.severity, **setting.severity},
                **(
                    {"num_joints": self.num_joints}
                    if setting.joints is None
                    else {"joint_names": setting.joints, "num_joints": (len(setting.joints),) * 2}
                ),
            }
            for setting, scenario in self.cells
        ]

    def deal(self, num_envs: int, first_member: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """Say which cell each env belongs to, and which of its robots it is.

        Returns:
            Cell and member of every env, dtype int64. Shapes are (num_envs,).

        Raises:
            UmcError: If there are fewer envs than cells.
        """
        cells = len(self.cells)
        if num_envs < cells:
            raise UmcError(
                f"--num_envs {num_envs} is less than the {cells} cells of the protocol ({len(self.scenarios)} scenarios"
                f" in {len(self.settings)} settings); use at least one env for each, or fewer --scenarios"
            )
        number = torch.arange(num_envs)
        return number % cells, first_member + number // cells

    def describe(self) -> dict[str, Any]:
        """The protocol in plain values, as reports print it."""
        return asdict(self)


def protocol_for(
    robot: str,
    scenarios: Sequence[Scenario] | None = None,
    radii: Sequence[float] | None = None,
    seed: int | None = None,
    quick: bool = False,
    name: str = DEFAULT_PROTOCOL,
    overrides: Mapping[str, Any] | None = None,
) -> Protocol:
    """A protocol of a robot, with the user's choices in it.

    Args:
        robot: Name of the robot.
        scenarios: Scenarios instead of the file's.
        radii: Radii instead of the file's [m].
        seed: One seed for all settings instead of the file's.
        quick: Whether to cut the episode down to a check that everything works.
        name: Name of a file in ``config/protocols``, or path of a YAML file.
        overrides: Other fields of the robot's entry, as the file would hold them.

    Raises:
        UmcError: If there is no such file, the robot has no entry, or a choice makes no sense.
    """
    content = read_protocol_file(name)
    robots = content["robots"]
    if robot not in robots:
        raise UmcError(
            f"protocol {content['name']} has nothing for robot '{robot}'; it has {', '.join(sorted(robots))}"
        )
    entry = {"scenarios": content["scenarios"], **robots[robot], **(overrides or {})}
    if scenarios is not None:
        entry["scenarios"] = scenarios
    if radii is not None:
        entry["radii"] = radii
    protocol = _protocol(content["name"], robot, entry)
    if seed is not None:
        once = {replace(setting, seed=seed): None for setting in protocol.settings}
        protocol = replace(protocol, settings=tuple(once))
    if quick:
        first = replace(protocol.settings[0], onset=QUICK_ONSET)
        protocol = replace(protocol, settings=(first,), steps=QUICK_STEPS)
    return protocol


def read_protocol_file(name: str) -> dict[str, Any]:
    """Read a protocol file.

    Raises:
        UmcError: If there is no such file or it is no protocol.
    """
    content = read_config_file("protocol", name)
    missing = [key for key in ("name", "scenarios", "robots") if not isinstance(content, dict) or key not in content]
    if missing:
        raise UmcError(f"{name} is no protocol: {', '.join(missing)} is missing")
    robots = content["robots"]
    if not isinstance(robots, Mapping) or not all(isinstance(entry, Mapping) for entry in robots.values()):
        raise UmcError(f"{name} is no protocol: robots must hold a mapping for each robot")
    return content


def _protocol(name: str, robot: str, entry: Mapping[str, Any]) -> Protocol:
    """Turn a robot's entry of a file into a protocol."""
    wrong = sorted(set(entry) - ENTRY_KEYS)
    missing = sorted({"num_envs", "steps", "num_joints", "severity", "settings"} - set(entry))
    if wrong or missing:
        words = [f"unknown {key}" for key in wrong] + [f"missing {key}" for key in missing]
        raise UmcError(f"protocol {name}, robot {robot}: {', '.join(words)}")
    check_entry(f"protocol {name}, robot {robot}", entry)
    columns = entry["settings"]
    widths = {len(column) for column in columns.values()}
    if not {"seed", "onset"} <= set(columns) <= {"seed", "onset", "perlin_seed"} or len(widths) != 1:
        raise UmcError(f"protocol {name}, robot {robot}: settings must hold lists seed and onset of the same length")
    settings = tuple(
        Setting(**dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)
    )
    low, high = entry["num_joints"]
    return Protocol(
        name=name,
        robot=robot,
        num_envs=entry["num_envs"],
        steps=entry["steps"],
        num_joints=(low, high),
        severity=entry["severity"],
        settings=settings,
        scenarios=tuple(entry["scenarios"]),
        command=tuple(entry.get("command", (0.5, 0.0, 0.0))),
        radii=check_radii(entry.get("radii", (1.0, 2.0, 3.0, 4.0, 5.0))),
        track=entry.get("track", {}),
    )
