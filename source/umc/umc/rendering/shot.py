# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a film shows: how long, under which fault, from which step on; how far its robot went and when it fell."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from umc.evaluation.protocol import Protocol, protocol_for
from umc.faults import SCENARIOS
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

STEPS = 500
"""Length of the film [env steps]: 10 s."""

ONSET = 100
"""Env step of the fault: the middle one of the paper's inference onsets."""

EVERY = 2
"""Env steps per frame: 25 frames per second."""

SIZE = (960, 540)
"""Width and height of a frame [px]."""

QUICK_STEPS, QUICK_ONSET, QUICK_SIZE = 32, 12, (320, 180)
"""The same of ``--quick``."""

STAGE2_SCENARIO = 2
"""Scenario without ``--scenario`` for a Stage 2 policy: a dead sensor and a smaller range of motion."""

HEALTHY = 8

NAMES = {
    1: "dead sensors",
    2: "dead sensors, smaller range of motion",
    3: "dead sensors, weak motors",
    4: "dead sensors, slow joints",
    5: "smaller range of motion",
    6: "weak motors",
    7: "slow joints",
    8: "healthy",
}
"""Scenarios of the paper's table in words."""

NOT_A_FALL = ("time_out", "non_finite_state")
"""Terminations that are no fall."""


@dataclass(frozen=True)
class Shot:
    """What is going to be filmed."""

    steps: int
    scenario: int
    onset: int
    size: tuple[int, int]


def add_shot_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that :func:`choose` reads.

    Args:
        parser: The parser.
    """
    add = parser.add_argument
    add("--steps", type=int, help=f"length [env steps]; {STEPS} without it; with --viz: until Ctrl-C")
    add("--scenario", type=int, help="scenario of the paper's table, 1 to 8; 8 is the healthy robot")
    add("--onset", type=int, help=f"env step at which the fault sets in; {ONSET} without it")
    add("--quick", action="store_true", help="a second of small pictures: proves that everything works")


def choose(options: argparse.Namespace) -> Shot:
    """Reads the flags.

    Args:
        options: The flags.

    Returns:
        What to film; scenario 8 where none is named.

    Raises:
        UmcError: If a flag makes no sense.
    """
    steps, onset, size = (QUICK_STEPS, QUICK_ONSET, QUICK_SIZE) if options.quick else (STEPS, ONSET, SIZE)
    steps = steps if options.steps is None else options.steps
    if steps < 2:
        raise UmcError(f"--steps is {steps}; it has to be at least 2")
    onset = min(onset, steps // 2) if options.onset is None else options.onset
    if not 0 < onset < steps:
        raise UmcError(f"--onset {onset} has to lie between 1 and the last step before {steps}")
    scenario = HEALTHY if options.scenario is None else options.scenario
    if scenario not in SCENARIOS:
        raise UmcError(f"unknown scenario {scenario}; the paper's scenarios are 1 to 8")
    return Shot(steps, scenario, onset, size)


def shot_protocol(robot: str, shot: Shot, seed: int | None) -> Protocol:
    """The protocol's first setting, cut to what is filmed.

    Args:
        robot: Name of the robot.
        shot: What is filmed.
        seed: Seed of fault and start; the protocol's own if not given.

    Returns:
        A protocol of one cell.
    """
    protocol = protocol_for(robot, (shot.scenario,), seed=seed)
    return replace(protocol, settings=(replace(protocol.settings[0], onset=shot.onset),), steps=shot.steps)


class Falls:
    """Takes the terminations that end an episode with a fall, so that a film shows what follows; notices falls itself.

    Args:
        env_cfg: Env cfg of the task; changed in place.
    """

    def __init__(self, env_cfg: Any) -> None:
        self._terms = {
            name: term
            for name, term in vars(env_cfg.terminations).items()
            if hasattr(term, "func") and name not in NOT_A_FALL
        }
        for name in self._terms:
            setattr(env_cfg.terminations, name, None)
        self._resolved = False

    def resolve(self, env: ManagerBasedRLEnv) -> None:
        """Finds the bodies that the terms look at; call it once the environment is there.

        Args:
            env: The environment.
        """
        from isaaclab.managers import SceneEntityCfg

        if self._resolved:  # Isaac Lab resolves a cfg only once
            return
        self._resolved = True
        for term in self._terms.values():
            for value in term.params.values():
                if isinstance(value, SceneEntityCfg):
                    value.resolve(env.scene)

    def now(self, env: ManagerBasedRLEnv) -> bool:
        """Whether the robot of env 0 lies.

        Args:
            env: The environment.

        Returns:
            True where training would end the episode.
        """
        return any(bool(term.func(env, **term.params)[0]) for term in self._terms.values())


class Tape:
    """The greatest distance from a place so far, as reached@k counts it.

    Args:
        place: The place [m]. Shape is (2,).
    """

    def __init__(self, place: Any) -> None:
        self.restart(place)

    def restart(self, place: Any) -> None:
        """Counts from another place.

        Args:
            place: The place [m]. Shape is (2,).
        """
        self._place, self.greatest = place.clone(), 0.0

    def stretch(self, place: Any) -> None:
        """Goes to a place.

        Args:
            place: The place [m]. Shape is (2,).
        """
        self.greatest = max(self.greatest, float((place - self._place).norm()))
