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
    def write_positions(
        self, lower: torch.Tensor, upper: torch.Tensor, soft: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor
    ) -> None:
        """Write lower, upper, shape (E, J), and soft limits to show, (E, J, 2), all [rad], of the masked envs, (E,)."""

    @abstractmethod
    def write_speeds(self, speed: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        """Write speed limits [rad/s], shape (E, J), of the masked envs, (E,); those of faulty joints are a fault's."""

    @abstractmethod
    def read_passive(self) -> torch.Tensor:
        """Return viscous damping [N*m*s/rad], static and dynamic friction [N*m] of the joints, shape (E, J, 3)."""

    @abstractmethod
    def write_passive(self, values: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        """Write what :meth:`read_passive` returns of the masked envs, (E,); that of faulty joints is a fault's."""

    @abstractmethod
    def write_drive_efforts(self, effort: torch.Tensor, envs: torch.Tensor) -> None:
        """Write torque limits [N*m], shape (E, J), of the engine's own drives, which implicit actuators use."""
