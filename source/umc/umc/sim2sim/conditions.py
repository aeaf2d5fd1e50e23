# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How robots start in plain MuJoCo, when they have fallen and how noisy their sensors are, as ``policy.json`` says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from umc.utils.errors import UmcError

Range = tuple[float, float]
Vector = NDArray[np.float64]

SEED_FACTOR = 0x9E3779B1
"""Knuth's multiplier, which spreads members over the seeds, as umc.evaluation.starts does."""


@dataclass(frozen=True)
class Conditions:
    """What a task randomises at the start of an evaluation, and what it calls a fall, as ``policy.json`` names it."""

    feet: Sequence[str]
    """Bodies (regular expressions) that carry the feet."""

    # start
    base_height_m: float
    friction: Range
    """Friction of the whole robot [-]."""
    added_base_mass_kg: Range
    """The base's inertia is scaled with it."""
    base_com_shift_m: Sequence[Range]
    """Along x, y, z."""
    kp_factor: Range
    """Factor of each joint's stiffness [-]."""
    kd_factor: Range
    """Factor of each joint's damping [-]."""
    yaw_rad: Range
    base_velocity_m_rad_per_s: Sequence[Range]
    """Linear x, y, z [m/s], then angular x, y, z [rad/s]."""
    joint_position_factor: Range
    """Factor of the default joint angles [-]."""
    soft_limit_factor: float
    """Share of the joint range in which robots start."""

    # fall
    contact_bodies: Sequence[str]
    """Bodies (regular expressions) whose contact with the ground is a fall."""
    contact_force_N: float
    """Force at which a body counts as in contact."""
    contact_history_steps: int
    """Physics steps whose contacts a termination looks at."""
    max_roll_rad: float | None
    max_pitch_rad: float | None
    min_height_m: float | None
    """Height of the base below which a robot has fallen."""

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Conditions:
        """Take over the content of an exported ``policy.json``."""
        figures = {"feet": description["feet"], **description["start"], **description["fall"]}
        return cls(**{field.name: figures[field.name] for field in fields(cls)})


@dataclass(frozen=True)
class Start:
    """One robot's draw from its conditions; factors by joint have shape (J,)."""

    friction: float
    added_mass: float
    com_shift: Vector
    kp_factor: Vector
    kd_factor: Vector
    yaw: float
    velocity: Vector
    """Linear, then angular. Shape is (6,)."""
    joint_factor: Vector


def draw_start(conditions: Conditions, seed: int, member: int, num_joints: int) -> Start:
    """Draw a start from (seed, member) alone: the same in every scenario, batch and process.

    Isaac Lab uses another generator: paired robots share their faults, not their starts.
    """
    random = np.random.default_rng([seed * SEED_FACTOR % 2**31, member])
    return Start(
        friction=random.uniform(*conditions.friction),
        added_mass=random.uniform(*conditions.added_base_mass_kg),
        com_shift=np.array([random.uniform(*one) for one in conditions.base_com_shift_m]),
        kp_factor=random.uniform(*conditions.kp_factor, num_joints),
        kd_factor=random.uniform(*conditions.kd_factor, num_joints),
        yaw=random.uniform(*conditions.yaw_rad),
        velocity=np.array([random.uniform(*one) for one in conditions.base_velocity_m_rad_per_s]),
        joint_factor=random.uniform(*conditions.joint_position_factor, num_joints),
    )


NOISY = ("joint_pos_rel", "joint_vel_rel", "base_ang_vel", "projected_gravity")
"""Observation functions of the sensors, in the order in which noise is added."""

NO_NOISE = {"uniform": (0.0, 0.0)}


class SensorNoise:
    """The noise that a task adds to what robots measure.

    Raises:
        UmcError: If the policy's description does not say how noisy the sensors are, or plain MuJoCo has no such noise.
    """

    def __init__(self, description: Mapping[str, Any]) -> None:
        found: dict[str, Mapping[str, Any]] = {}
        for term in description["observations"]["policy"]:
            if "noise" not in term:
                raise UmcError("policy.json does not say how noisy the sensors are; export the policy again")
            if (noise := term["noise"]) is None:
                continue
            function = term["function"]
            if function not in NOISY or "other" in noise:
                raise UmcError(
                    "plain MuJoCo has uniform and normal noise of sensors, which is added; that of "
                    f"{function} ({', '.join(map(str, noise.values()))}) is another; leave noise out, or use Isaac Lab"
                )
            found[function] = noise
        self._noises = [next(iter(found.get(function, NO_NOISE).items())) for function in NOISY]

    def draw(self, seed: int, member: int) -> Callable[..., list[Vector]]:
        """Return a function that adds a robot's noise to its signals, in the order of NOISY.

        What it adds depends on (seed, member) alone.
        """
        random = np.random.default_rng([seed * SEED_FACTOR % 2**31, member, 1])  # another stream than that of its start

        def add(*signals: Vector) -> list[Vector]:
            return [
                signal + getattr(random, distribution)(*parameters, signal.shape)
                for signal, (distribution, parameters) in zip(signals, self._noises, strict=True)
            ]

        return add
