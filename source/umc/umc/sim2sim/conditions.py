# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How robots start in plain MuJoCo and when they have fallen: the figures of the task, read from ``policy.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from umc.utils.errors import UmcError

Range = tuple[float, float]
Vector = NDArray[np.float64]

_ODD = 0x9E3779B1
"""Knuth's multiplier, which spreads members over the seeds, as umc.evaluation.starts does."""


@dataclass(frozen=True)
class Conditions:
    """What a task randomises at the start of an evaluation, and what it calls a fall."""

    height: float
    """Height of the base at the start [m]."""
    friction: Range
    """Friction of the whole robot [-]."""
    payload: Range
    """Mass added to the base, whose inertia is scaled with it [kg]."""
    com: tuple[Range, Range, Range]
    """Shift of the base's centre of mass along x, y, z [m]."""
    stiffness: Range
    """Factor of each joint's stiffness [-]."""
    damping: Range
    """Factor of each joint's damping [-]."""
    yaw: Range
    """Heading [rad]."""
    velocity: tuple[Range, ...]
    """Base velocity: linear x, y, z [m/s], then angular x, y, z [rad/s]."""
    joints: Range
    """Factor of the default joint angles [-]."""
    soft_limit_factor: float
    """Share of the joint range in which robots start."""
    feet: tuple[str, ...]
    """Bodies (regular expressions) that carry the feet."""
    forbidden: tuple[str, ...]
    """Bodies (regular expressions) whose contact with the ground is a fall."""
    contact_force: float
    """Force at which a body counts as in contact [N]."""
    contact_history: int
    """Physics steps whose contacts a termination looks at."""
    max_roll: float | None
    """Roll beyond which a robot has fallen [rad]."""
    max_pitch: float | None
    """Pitch beyond which a robot has fallen [rad]."""
    min_height: float | None
    """Height of the base below which a robot has fallen [m]."""

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Conditions:
        """Read the content of an exported ``policy.json``; UmcError if it has no figures of the task."""
        try:
            start, fall = description["start"], description["fall"]
        except KeyError as error:
            raise UmcError(
                "policy.json has no start and fall figures (an export of an older UMC); export the checkpoint again"
            ) from error
        return cls(
            height=start["base_height_m"],
            friction=start["friction"],
            payload=start["added_base_mass_kg"],
            com=start["base_com_shift_m"],
            stiffness=start["kp_factor"],
            damping=start["kd_factor"],
            yaw=start["yaw_rad"],
            velocity=start["base_velocity_m_rad_per_s"],
            joints=start["joint_position_factor"],
            soft_limit_factor=start["soft_limit_factor"],
            feet=tuple(description["feet"]),
            forbidden=tuple(fall["contact_bodies"]),
            contact_force=fall["contact_force_N"],
            contact_history=fall["contact_history_steps"],
            max_roll=fall["max_roll_rad"],
            max_pitch=fall["max_pitch_rad"],
            min_height=fall["min_height_m"],
        )


@dataclass(frozen=True)
class Start:
    """One robot's draw from its conditions; factors by joint have shape (J,)."""

    friction: float
    payload: float
    com: Vector
    stiffness: Vector
    damping: Vector
    yaw: float
    velocity: Vector
    """Linear, then angular. Shape is (6,)."""
    joints: Vector


def draw_start(conditions: Conditions, seed: int, member: int, num_joints: int) -> Start:
    """Draw a start from (seed, member) alone: the same in every scenario, batch and process.

    Isaac Lab uses another generator: paired robots share their faults, not their starts.
    """
    random = np.random.default_rng([seed * _ODD % 2**31, member])
    return Start(
        friction=random.uniform(*conditions.friction),
        payload=random.uniform(*conditions.payload),
        com=np.array([random.uniform(*one) for one in conditions.com]),
        stiffness=random.uniform(*conditions.stiffness, num_joints),
        damping=random.uniform(*conditions.damping, num_joints),
        yaw=random.uniform(*conditions.yaw),
        velocity=np.array([random.uniform(*one) for one in conditions.velocity]),
        joints=random.uniform(*conditions.joints, num_joints),
    )
