# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The conditions of an evaluation as data: the paper's inference tables, one entry per robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from umc.errors import UmcError
from umc.faults import paper_settings
from umc.faults.severity import SeverityValue

from .metrics import check_radii

ALL_SCENARIOS = (1, 2, 3, 4, 5, 6, 7, 8)
"""The paper's table of damage scenarios; 8 is the healthy robot."""

QUICK_ONSET = (10, 20)
"""Onsets of a quick run [env steps]; far too early for figures, enough to see that everything works."""

QUICK_STEPS = 60
"""Length of a quick run [env steps]."""


@dataclass(frozen=True)
class Protocol:
    """What the robots meet and how it is judged."""

    robot: str
    """Robot, as checkpoints name it."""
    feet: tuple[str, ...]
    """Bodies that carry the feet."""
    num_joints: tuple[int, int]
    """Fewest and most faulty joints."""
    severity: Mapping[str, SeverityValue]
    """By kind: part of the range of motion [-], torque [N*m] and speed [rad/s] that are left."""
    onset: tuple[int, ...]
    """Env steps after which a fault sets in; each env has one of them."""
    steps: int
    """Length of an episode [env steps]."""
    command: tuple[float, float, float] = (0.5, 0.0, 0.0)
    """Commanded velocity x [m/s], y [m/s], yaw [rad/s]; the paper does not print one (facts: straight ahead)."""
    scenarios: tuple[int, ...] = ALL_SCENARIOS
    """Scenarios side by side; env ``i`` meets ``scenarios[i % len(scenarios)]``."""
    radii: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0)
    """Radii of reached@k [m]."""
    seed: int = 1
    """Seed of faults and starts; 1 is the first of the paper's malfunction seeds for either robot."""

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            UmcError: If a scenario is unknown or repeated, or no onset lies inside the episode, or radii do not grow.
        """
        unknown = [scenario for scenario in self.scenarios if scenario not in ALL_SCENARIOS]
        if unknown or not self.scenarios:
            raise UmcError(f"unknown scenario {unknown or 'list (empty)'}; the paper's scenarios are 1 to 8")
        if len(set(self.scenarios)) != len(self.scenarios):
            raise UmcError(f"scenarios {list(self.scenarios)} hold one twice; name each once")
        if not self.onset or not all(0 < onset < self.steps for onset in self.onset):
            raise UmcError(f"onset {list(self.onset)} must lie between step 1 and the last step before {self.steps}")
        check_radii(self.radii)

    def scenario_of_env(self, num_envs: int) -> torch.Tensor:
        """Deals the scenarios out, in turn.

        Args:
            num_envs: Number of envs.

        Returns:
            The scenario of every env. Shape is (num_envs,).

        Raises:
            UmcError: If there are fewer envs than scenarios.
        """
        if num_envs < len(self.scenarios):
            raise UmcError(
                f"--num_envs {num_envs} is less than the {len(self.scenarios)} scenarios; use at least one env for each"
            )
        return torch.tensor(self.scenarios)[torch.arange(num_envs) % len(self.scenarios)]


def _inference(robot: str) -> dict[str, Any]:
    """What the paper's inference table of a robot says."""
    rows = paper_settings(robot, "inference")
    return {
        "num_joints": tuple(rows["num_joints"]),
        "severity": {kind: rows[kind] for kind in ("rom", "effort", "velocity")},
        "onset": tuple(rows["onset"]),
        "steps": rows["episode_length"],
    }


PROTOCOLS = {
    "a1": Protocol(
        robot="a1",
        feet=("FL_calf", "FR_calf", "RL_calf", "RR_calf"),
        **_inference("a1"),
    ),
    "g1": Protocol(
        robot="g1",
        feet=("left_ankle_roll_link", "right_ankle_roll_link"),
        **_inference("g1"),
    ),
}
"""Paper, tables "Inference Parameters" of A1 and of G1; A1 runs on flat ground here."""


def protocol_for(
    robot: str,
    scenarios: Sequence[int] | None = None,
    radii: Sequence[float] | None = None,
    seed: int | None = None,
    quick: bool = False,
) -> Protocol:
    """The paper's protocol of a robot, with the user's choices in it.

    Args:
        robot: Name of the robot.
        scenarios: Scenarios instead of all eight.
        radii: Radii instead of the paper's [m].
        seed: Seed instead of the protocol's.
        quick: Whether to cut the episode down to a check that everything works.

    Returns:
        The protocol.

    Raises:
        UmcError: If the robot has no protocol or a choice makes no sense.
    """
    if robot not in PROTOCOLS:
        raise UmcError(f"no evaluation protocol for robot '{robot}'; there are {', '.join(sorted(PROTOCOLS))}")
    changes: dict[str, object] = {}
    if scenarios is not None:
        changes["scenarios"] = tuple(scenarios)
    if radii is not None:
        changes["radii"] = check_radii(radii)
    if seed is not None:
        changes["seed"] = seed
    if quick:
        changes.update(onset=QUICK_ONSET, steps=QUICK_STEPS)
    return replace(PROTOCOLS[robot], **changes)  # type: ignore[arg-type]
