# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The torque limits of a robot's motors, whatever kind of actuator they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from isaaclab.actuators import ImplicitActuator
from isaaclab.actuators.newton import read_group_parameter, write_group_parameter

from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.assets import Articulation

    from umc.mdp.physics.engine import EngineJoints

EFFORT_PARAMETERS = ("max_effort", "max_motor_effort")
"""What an ideal PD actuator and a DC motor call their largest torque."""


class Motors:
    """Torque limits of all joints: the clamps of explicit actuators, which every engine runs, and the engine's drives.

    Args:
        asset: The robot.
        engine: Its joints in the engine.

    Raises:
        UmcError: If an actuator has no torque limit that can be lowered.
    """

    def __init__(self, asset: Articulation, engine: EngineJoints) -> None:
        self._asset, self._engine = asset, engine
        self._clamps: list[tuple[str, str, torch.Tensor]] = []
        self._driven = torch.ones(asset.num_joints, dtype=torch.bool, device=asset.device)
        for group in asset.actuators:
            if isinstance(asset.actuators[group], ImplicitActuator):
                continue
            _, names = asset.find_joints(asset.cfg.actuators[group].joint_names_expr)
            columns = torch.tensor([asset.joint_names.index(name) for name in names], device=asset.device)
            self._clamps.append((group, _clamp_parameter(asset, group), columns))
            self._driven[columns] = False
        self._has_drives = bool(self._driven.any())

    def read(self) -> torch.Tensor:
        """Return the largest torques [N*m] now. Shape is (E, J)."""
        efforts = self._asset.data.joint_effort_limits.torch.clone()
        for group, parameter, columns in self._clamps:
            efforts[:, columns] = read_group_parameter(self._asset.actuators, group, "clamping", parameter)
        return efforts

    def write(self, effort: torch.Tensor, envs: torch.Tensor) -> None:
        """Write the largest torques [N*m], shape (E, J), of the masked envs, (E,)."""
        current = self.read()
        effort = torch.where(envs.unsqueeze(1), effort, current)
        for group, parameter, columns in self._clamps:
            write_group_parameter(self._asset.actuators, group, "clamping", parameter, effort[:, columns])
        if self._has_drives:
            limits = self._asset.data.joint_effort_limits.torch
            self._engine.write_drive_efforts(torch.where(self._driven, effort, limits), envs)


def _clamp_parameter(asset: Articulation, group: str) -> str:
    for parameter in EFFORT_PARAMETERS:
        try:
            read_group_parameter(asset.actuators, group, "clamping", parameter)
        except ValueError:
            continue
        return parameter
    raise UmcError(
        f"actuator group '{group}' has no torque limit that a fault could lower; give IdealPDActuatorCfg or DCMotorCfg"
        " an actuator_effort_limit, and leave SimulationCfg.use_newton_actuators on"
    )
