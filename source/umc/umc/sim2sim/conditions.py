# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How robots start in plain MuJoCo and when they have fallen: the tasks' figures, which a test holds against them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from umc.utils.errors import UmcError

Range = tuple[float, float]

FORCE_THRESHOLD = 1.0
"""Contact force at which a body counts as touching the ground [N]: that of the tasks' terminations and rewards."""

FORCE_HISTORY = 3
"""Physics steps whose contacts a termination looks at: the contact sensor's ``history_length``."""

SOFT_LIMIT_FACTOR = 0.9
"""Share of the joint range in which robots start (umc.robots.spawn)."""

_ODD = 0x9E3779B1
"""Knuth's multiplier, which spreads members over the seeds, as umc.evaluation.starts does."""


@dataclass(frozen=True)
class Conditions:
    """What a robot's tasks randomise at the start of an evaluation, and what they call a fall."""

    height: float
    """Height of the base at the start [m]."""
    friction: Range
    """Friction of the whole robot [-]."""
    payload: Range
    """Mass added to the base, which grows as a whole [kg]."""
    joints: Range
    """Factor of the default joint angles [-]."""
    velocity: Range
    """Each component of the base's linear [m/s] and angular [rad/s] velocity."""
    yaw: Range
    """Heading [rad]."""
    forbidden: tuple[str, ...]
    """Bodies (regular expressions) whose touch is a fall."""
    feet: tuple[str, ...]
    """Bodies that carry the feet."""
    com: tuple[Range, Range, Range] = ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0))
    """Shift of the base's centre of mass along x, y, z [m]."""
    gains: Range = (1.0, 1.0)
    """Factor of each joint's stiffness, and of its damping [-]."""
    max_roll: float | None = None
    """Roll that is a fall [rad]."""
    max_pitch: float | None = None
    """Pitch that is a fall [rad]."""
    min_height: float | None = None
    """Height of the base below which it is a fall [m]."""


_QUADRUPED = Conditions(
    height=0.38,
    friction=(0.5, 1.5),
    payload=(1.0, 3.0),
    joints=(0.5, 1.5),
    velocity=(-0.2, 0.2),
    yaw=(-0.1, 0.1),
    forbidden=("trunk",),
    feet=("FL_calf", "FR_calf", "RL_calf", "RR_calf"),
    com=((-0.05, 0.15), (-0.1, 0.1), (-0.05, 0.05)),
    gains=(0.9, 1.1),
    max_roll=0.8,
    max_pitch=1.6,
    min_height=0.15,
)

_HUMANOID = Conditions(
    height=0.8,
    friction=(0.55, 1.125),
    payload=(-1.0, 3.0),
    joints=(0.5, 1.5),
    velocity=(-0.5, 0.5),
    yaw=(-np.pi, np.pi),
    forbidden=("pelvis",),
    feet=("left_ankle_roll_link", "right_ankle_roll_link"),
    max_roll=0.8,
    max_pitch=1.0,
)

CONDITIONS = {
    "a1": _QUADRUPED,
    "solo8": replace(
        _QUADRUPED,
        height=0.26,
        friction=(0.75, 1.125),
        payload=(0.16, 0.48),
        joints=(0.9, 1.1),
        forbidden=("base_link", ".*_UPPER_LEG"),
        feet=("FL_LOWER_LEG", "FR_LOWER_LEG", "HL_LOWER_LEG", "HR_LOWER_LEG"),
        max_roll=None,
        max_pitch=None,
        min_height=None,
    ),
    "g1": _HUMANOID,
    "h1": replace(_HUMANOID, height=1.07, feet=("left_ankle_link", "right_ankle_link")),
}
"""By robot. The names of the tasks' terms stand in tests/evaluation/test_mujoco_conditions.py."""


def conditions_of(robot: str) -> Conditions:
    """The figures of a robot.

    Args:
        robot: Name of the robot, as checkpoints have it.

    Returns:
        Its conditions.

    Raises:
        UmcError: If there is no such robot.
    """
    if robot.lower() not in CONDITIONS:
        raise UmcError(f"no conditions for robot {robot} in MuJoCo; choose one of {', '.join(sorted(CONDITIONS))}")
    return CONDITIONS[robot.lower()]


@dataclass(frozen=True)
class Start:
    """One robot's draw from its conditions."""

    friction: float
    payload: float
    com: np.ndarray
    """Shape is (3,)."""
    stiffness: np.ndarray
    """Factor by joint. Shape is (J,)."""
    damping: np.ndarray
    """Factor by joint. Shape is (J,)."""
    yaw: float
    velocity: np.ndarray
    """Linear, then angular. Shape is (6,)."""
    joints: np.ndarray
    """Factor by joint. Shape is (J,)."""


def draw_start(conditions: Conditions, seed: int, member: int, num_joints: int) -> Start:
    """Draws a start from (seed, member) alone: the same in every scenario, batch and process.

    Isaac Lab's own draws come from another generator: pairs of robots share their faults, not their starts.

    Args:
        conditions: The robot's conditions.
        seed: Seed of the setting.
        member: Which robot of its cell it is.
        num_joints: Number of joints.

    Returns:
        The start.
    """
    random = np.random.default_rng([seed * _ODD % 2**31, member])
    return Start(
        friction=random.uniform(*conditions.friction),
        payload=random.uniform(*conditions.payload),
        com=np.array([random.uniform(*one) for one in conditions.com]),
        stiffness=random.uniform(*conditions.gains, num_joints),
        damping=random.uniform(*conditions.gains, num_joints),
        yaw=random.uniform(*conditions.yaw),
        velocity=random.uniform(*conditions.velocity, 6),
        joints=random.uniform(*conditions.joints, num_joints),
    )
