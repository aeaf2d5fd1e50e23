# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a film shows: how long, which scenario, from which step, seen from where."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.evaluation.arguments import HEALTHY, num_policies
from umc.evaluation.arguments import scenario as scenario_id
from umc.utils.cli import path, within
from umc.utils.config import read_overrides
from umc.utils.errors import UmcError, shown
from umc.utils.outputs import require_writable

if TYPE_CHECKING:
    from umc.evaluation.protocol import Protocol, ScenarioId

STAGE2_SCENARIO = 2
"""Scenario without ``--scenario`` for a Stage 2 policy: a dead sensor and a smaller range of motion."""

LONGEST_FILM = 10_000
"""Longest film [env steps]: its pictures are kept in memory until the files are written, 2 GB per policy."""

NOT_READ = ("num_envs", "radii", "scenarios", "settings", "steps")
"""Fields of a protocol that a film does not read."""

VIEWS = ("side", "front")
"""Where the camera stands."""

FILM_SUFFIXES, OTHER_SUFFIXES = (".mp4", ".gif", ".png"), (".avi", ".jpeg", ".jpg", ".mkv", ".mov", ".webm", ".webp")
"""Files that a film can be written to, the last for the storyboard, and others that users may ask for."""


@dataclass(frozen=True)
class FilmCfg:
    """Settings of a film; the defaults are those of ``umc film``."""

    steps: int = 500
    """Length [env steps]."""
    scenario: ScenarioId = HEALTHY
    """Scenario of the paper's table, kinds of faults, or one of the protocol's own."""
    joints: tuple[str, ...] | None = None
    """Joints that fail; None draws them as the protocol says."""
    onset: int = 100
    """Env step of the fault: the middle one of the paper's inference onsets."""
    size: tuple[int, int] = (480, 330)
    """Width and height of a robot's picture [px]."""
    view: str = "side"
    """One of :data:`VIEWS`."""
    every: int = 2
    """Env steps per frame: 25 frames per second."""
    file: str | None = None
    """Protocol that has the robot, by name or path; the default without it."""
    changes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What differs from the protocol's file, by dotted path."""

    def for_stage(self, stage: int, scenario: ScenarioId | None, robot: str) -> FilmCfg:
        """Use :data:`STAGE2_SCENARIO` for a Stage 2 policy if the user has named no scenario.

        Where the protocol has no severity for it, its own first scenario with a fault is used.
        """
        from umc.evaluation.protocol import protocol_for
        from umc.faults.kinds import find_kind

        if stage != 2 or scenario is not None:
            return self
        protocol = protocol_for(robot, name=self.file, overrides=self.changes)
        severity = {**protocol.severity, **protocol.settings[0].severity}

        def can_fail(scenario: ScenarioId) -> bool:
            kinds = protocol.scenario(scenario).kinds
            return bool(kinds) and all(kind in severity or find_kind(kind).default is not None for kind in kinds)

        choices = (STAGE2_SCENARIO, *protocol.scenarios)
        return replace(self, scenario=next((one for one in choices if can_fail(one)), STAGE2_SCENARIO))

    def protocol(self, robot: str, seed: int | None, joint_names: Sequence[str] | None = None) -> Protocol:
        """Cut a robot's evaluation protocol to the one cell that is filmed; :meth:`check` its faults.

        Raises:
            UmcError: If it has no such scenario, or the robot, where ``joint_names`` are given, no such joint.
        """
        from umc.evaluation.protocol import protocol_for
        from umc.faults.kinds import ImuKind, find_kind

        protocol = protocol_for(robot, (self.scenario,), seed=seed, name=self.file, overrides=self.changes)
        if self.joints is not None:
            kinds = [find_kind(name) for name in protocol.scenario(self.scenario).kinds]
            if all(isinstance(kind, ImuKind) for kind in kinds):
                raise UmcError(f"--joints: no joint fails in scenario {self.scenario}; name another by --scenario")
            unknown = [name for name in self.joints if joint_names is not None and name not in joint_names]
            if unknown:
                raise UmcError(f"--joints: no joint {shown(unknown[0])}; it has {', '.join(joint_names or ())}")
            if len(set(self.joints)) < len(self.joints):
                raise UmcError("--joints names a joint twice; name each once")
        setting = replace(protocol.settings[0], onset=self.onset, joints=self.joints)
        return replace(protocol, settings=(setting,), steps=self.steps)

    def check(self, protocol: Protocol, joint_names: Sequence[str]) -> None:
        """Raise UmcError for faults that the robot cannot have, or for changes that have no effect on this film."""
        from umc.evaluation.protocol import changed

        protocol.check_faults(joint_names)
        kinds = protocol.scenario(self.scenario).kinds
        for section, read in (("severity", kinds), ("conditions", (str(self.scenario),))):
            names = {key: key.split(".")[0] for key in changed(self.changes, section)}
            idle = [key for key in names if names[key] not in read]
            if idle and (section not in self.changes or len(idle) == len(names)):
                fix = f"give --scenario {names[idle[0]]}, or leave it out"
                raise UmcError(f"protocol.{section}.{idle[0]}: nothing fails so in scenario {self.scenario}; {fix}")
        protocol.check_severities(self.changes)


QUICK = FilmCfg(steps=32, onset=12, size=(160, 110))
"""Settings of ``--quick``."""

OVERRIDES = ("physics", "env", "protocol", "parts")
"""What overrides of a film begin with."""


def add_film_arguments(parser: argparse.ArgumentParser, about: str | None = None) -> None:
    """Add the flags that :func:`film_cfg` reads."""
    cfg, add = FilmCfg(), parser.add_argument_group("film", about).add_argument
    add("--steps", type=int, help=f"length [env steps]; default {cfg.steps}")
    add(
        "--scenario",
        type=scenario_id,
        help="1 to 8 of the paper's table (8: healthy), kinds such as dead+locked, or by name",
    )
    add("--joints", nargs="+", metavar="JOINT", help="joints that fail; else the protocol draws them")
    add("--onset", type=int, help=f"env step at which the fault begins; default {cfg.onset}")
    add(
        "--protocol",
        help="file in config/protocols, or path of one; umc_paper, or any_robot for other robots; "
        "protocol.severity.rom=0.3 changes it",
    )
    add("--labels", dest="names", nargs="+", help="names of the policies in the film, in the order of --checkpoint")
    add("--names", nargs="+", help=argparse.SUPPRESS)  # what it was called first
    add("--view", choices=VIEWS, help=f"where the camera stands; default {cfg.view}")
    add("--side", dest="view", action="store_const", const="side", help="the same as --view side")
    add("--recording", type=path, help=argparse.SUPPRESS)  # what a training films (umc.rendering.recording)
    add("--quick", action="store_true", help="a second of small pictures: tests that everything works")


def film_cfg(options: argparse.Namespace, overrides: Sequence[str] = (), longest: int = LONGEST_FILM) -> FilmCfg:
    """Read the flags and overrides of ``protocol``; scenario 8 where none is named. UmcError if one makes no sense.

    ``longest`` is the most ``--steps`` [env steps].
    """
    cfg = QUICK if options.quick else FilmCfg()
    steps = cfg.steps if options.steps is None else options.steps
    within(steps, "--steps", 2, longest)
    onset = min(cfg.onset, steps // 2) if options.onset is None else options.onset
    if not 0 < onset < steps:
        raise UmcError(f"--onset {onset} has to lie between 1 and {steps - 1}, the last step before the end at {steps}")
    scenario = HEALTHY if options.scenario is None else options.scenario
    joints = None if options.joints is None else tuple(options.joints)
    changes = read_overrides(overrides, "protocol")
    if ignored := [key for key in changes if key.split(".")[0] in NOT_READ]:
        raise UmcError(
            f"protocol.{ignored[0]}: a film does not read it; it has --scenario, --seed, --onset and --steps"
        )
    return replace(
        cfg,
        steps=steps,
        onset=onset,
        scenario=scenario,
        joints=joints,
        view=options.view or cfg.view,
        file=options.protocol,
        changes=changes,
    )


def check_output(options: argparse.Namespace) -> None:
    """Refuse, before anything is filmed, names and files that a film cannot have."""
    suffix, count = options.out.suffix.lower() if options.out is not None else "", num_policies(options)
    if suffix in OTHER_SUFFIXES:
        raise UmcError(f"--out {options.out}: cannot write {suffix}; choose {', '.join(FILM_SUFFIXES)} or a folder")
    if options.names is not None and len(options.names) != count:
        raise UmcError(f"--labels has {len(options.names)} names for {count} policies; give one for each")
    if options.out is not None:
        if suffix in FILM_SUFFIXES and os.path.isdir(options.out):
            raise UmcError(f"--out {options.out} is a folder; choose another name for the file")
        require_writable(options.out.parent if suffix in FILM_SUFFIXES else options.out, "--out")
    if suffix != ".png":
        from umc.rendering.writers import require_ffmpeg

        require_ffmpeg()


def film_files(out: Path, name: str) -> list[Path]:
    """Return the files to write: ``out`` itself, or one of each kind called ``name`` where ``out`` is a folder."""
    if out.suffix.lower() in FILM_SUFFIXES:
        return [out]
    return [out / f"{name}{suffix}" for suffix in FILM_SUFFIXES]
