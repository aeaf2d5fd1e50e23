# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Interface of a physics engine for limits of joints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from isaaclab.assets import Articulation


class EngineJoints(ABC):
    """The joints of one robot in one engine; every tensor has the rows of all envs."""

    def __init__(self, asset: Articulation) -> None:
        self.asset = asset

    @abstractmethod
    def write_position_limits(
        self, lower: torch.Tensor, upper: torch.Tensor, soft: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor
    ) -> None:
        """Write lower and upper limits, shape (E, J), and soft limits for ``asset.data``, (E, J, 2), all [rad].

        ``faulty`` (E, J) marks joints that a fault limits, ``envs`` (E,) the envs that are written.
        """

    @abstractmethod
    def write_velocity_limits(self, speed: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        """Write velocity limits [rad/s], shape (E, J); the other arguments are as above."""

    @abstractmethod
    def read_passive(self) -> torch.Tensor:
        """Return viscous damping [N*m*s/rad], static and dynamic friction [N*m] of the joints, shape (E, J, 3)."""

    @abstractmethod
    def write_passive(self, values: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        """Write what :meth:`read_passive` returns; the other arguments are as above."""

    @abstractmethod
    def write_effort_limits(self, effort: torch.Tensor, envs: torch.Tensor) -> None:
        """Write torque limits [N*m], shape (E, J), of the drives that implicit actuators use."""
