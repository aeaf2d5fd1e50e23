# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a physics engine has to offer so that faults can limit joints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from isaaclab.assets import Articulation


class EngineJoints(ABC):
    """The joints of one robot in one engine; every tensor has the rows of all envs.

    Args:
        asset: The robot.
    """

    def __init__(self, asset: Articulation) -> None:
        self.asset = asset

    @abstractmethod
    def write_positions(
        self, lower: torch.Tensor, upper: torch.Tensor, soft: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor
    ) -> None:
        """Limits where joints of some envs can go.

        Args:
            lower: Lowest position [rad]. Shape is (E, J).
            upper: Highest position [rad]. Shape is (E, J).
            soft: Soft limits to be shown [rad]. Shape is (E, J, 2).
            faulty: Joints whose limits are a fault's. Shape is (E, J).
            envs: Envs to write. Shape is (E,).
        """

    @abstractmethod
    def write_speeds(self, speed: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        """Limits how fast joints of some envs move.

        Args:
            speed: Largest speed [rad/s]. Shape is (E, J).
            faulty: Joints whose limit is a fault's. Shape is (E, J).
            envs: Envs to write. Shape is (E,).
        """

    @abstractmethod
    def write_drive_efforts(self, effort: torch.Tensor, envs: torch.Tensor) -> None:
        """Limits the torque of the engine's own drives, which implicit actuators use.

        Args:
            effort: Largest torque [N*m]. Shape is (E, J).
            envs: Envs to write. Shape is (E,).
        """


def engine_joints(asset: Articulation) -> EngineJoints:
    """The joints of a robot in the engine that it lives in.

    Args:
        asset: The robot.

    Returns:
        Their writer.
    """
    # an engine is imported only where it is in use: installations may lack the others
    if asset.__backend_name__ == "newton":
        from umc.mdp.physics.newton_joints import NewtonJoints

        return NewtonJoints(asset)
    from umc.mdp.physics.physx_joints import PhysxJoints

    return PhysxJoints(asset)
