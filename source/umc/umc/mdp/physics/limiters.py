# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""One class per kind of joint fault: what it reads, writes and restores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from isaaclab.actuators.newton import read_group_parameter, write_group_parameter

from umc.errors import UmcError

from .window import rom_window

if TYPE_CHECKING:
    from isaaclab.assets import Articulation

    from umc.faults import FaultState

    from .newton_governor import NewtonGovernor

EFFORT_PARAMETERS = ("max_effort", "max_motor_effort")
"""What an ideal PD actuator and a DC motor call their largest torque."""


class JointLimiter(ABC):
    """A kind of joint fault, written for whole envs.

    Args:
        asset: The robot.
    """

    def __init__(self, asset: Articulation) -> None:
        self.asset = asset
        self.limited = torch.zeros(asset.num_instances, dtype=torch.bool, device=asset.device)
        """Envs that have this fault now. Shape is (num_envs,)."""

    def limit(self, env_ids: torch.Tensor, faulty: torch.Tensor, state: FaultState) -> None:
        """Remembers the healthy values of some envs and limits their faulty joints.

        Args:
            env_ids: Healthy envs, dtype int64. Shape is (N,).
            faulty: Their faulty joints, dtype bool. Shape is (N, J).
            state: Severities.
        """
        if len(env_ids):
            self.limited[env_ids] = True
            self._limit(env_ids, faulty, state)

    def restore(self, env_ids: torch.Tensor) -> None:
        """Writes the healthy values of some envs back.

        Args:
            env_ids: Limited envs, dtype int64. Shape is (N,).
        """
        if len(env_ids):
            self._restore(env_ids)
            self.limited[env_ids] = False

    @abstractmethod
    def faulty(self, state: FaultState) -> torch.Tensor:
        """Joints that have this fault. Shape is (E, J)."""

    @abstractmethod
    def _limit(self, env_ids: torch.Tensor, faulty: torch.Tensor, state: FaultState) -> None: ...

    @abstractmethod
    def _restore(self, env_ids: torch.Tensor) -> None: ...

    def _buffer(self, *width: int) -> torch.Tensor:
        return torch.zeros(self.asset.num_instances, self.asset.num_joints, *width, device=self.asset.device)


class EffortLimiter(JointLimiter):
    """Less torque: lowers the clamp of the explicit actuators, which both engines run.

    Raises:
        UmcError: If an actuator has no such clamp.
    """

    def __init__(self, asset: Articulation) -> None:
        super().__init__(asset)
        self._groups = {name: (_effort_parameter(asset, name), _joint_ids(asset, name)) for name in asset.actuators}
        self._healthy = self._buffer()

    def faulty(self, state: FaultState) -> torch.Tensor:
        """See the base class."""
        return state.effort_limited

    def _limit(self, env_ids: torch.Tensor, faulty: torch.Tensor, state: FaultState) -> None:
        self._healthy[env_ids] = healthy = self._read(env_ids)
        self._write(env_ids, torch.where(faulty, torch.minimum(healthy, state.effort_limit[env_ids]), healthy))

    def _restore(self, env_ids: torch.Tensor) -> None:
        self._write(env_ids, self._healthy[env_ids])

    def _read(self, env_ids: torch.Tensor) -> torch.Tensor:
        values = torch.zeros(len(env_ids), self.asset.num_joints, device=self.asset.device)
        for name, (parameter, joint_ids) in self._groups.items():
            group = read_group_parameter(self.asset.actuators, name, "clamping", parameter)
            values[:, joint_ids] = group[env_ids]
        return values

    def _write(self, env_ids: torch.Tensor, values: torch.Tensor) -> None:
        for name, (parameter, joint_ids) in self._groups.items():
            write_group_parameter(
                self.asset.actuators, name, "clamping", parameter, values[:, joint_ids], env_ids=env_ids
            )


class VelocityLimiter(JointLimiter):
    """Less speed: the engine's own joint limit on PhysX, a governor on Newton, whose solver ignores such limits.

    Args:
        asset: The robot.
        governor: Newton's governor; None on PhysX.
    """

    def __init__(self, asset: Articulation, governor: NewtonGovernor | None) -> None:
        super().__init__(asset)
        self._governor = governor
        self._healthy = self._buffer()

    def faulty(self, state: FaultState) -> torch.Tensor:
        """See the base class."""
        return state.velocity_limited

    def _limit(self, env_ids: torch.Tensor, faulty: torch.Tensor, state: FaultState) -> None:
        if self._governor is not None:
            self._governor.limit_velocity(env_ids, torch.where(faulty, state.velocity_limit[env_ids], torch.inf))
            return
        self._healthy[env_ids] = healthy = self.asset.data.joint_vel_limits.torch[env_ids]
        self._write(env_ids, torch.where(faulty, torch.minimum(healthy, state.velocity_limit[env_ids]), healthy))

    def _restore(self, env_ids: torch.Tensor) -> None:
        if self._governor is not None:
            self._governor.free_velocity(env_ids)
            return
        self._write(env_ids, self._healthy[env_ids])

    def _write(self, env_ids: torch.Tensor, limits: torch.Tensor) -> None:
        self.asset.write_joint_velocity_limit_to_sim_index(limits=limits, env_ids=env_ids.int())


class PositionLimiter(JointLimiter):
    """Less range of motion: the engine's joint limits; on Newton, where they are soft, the governor hardens them.

    Isaac Lab's writer clamps the default pose to the new limits and rescales the soft limits. The default pose is put
    back at once (actions are offsets from it); soft limits follow the window, so that rewards see what a joint can do.

    Args:
        asset: The robot.
        governor: Newton's governor; None on PhysX.
    """

    def __init__(self, asset: Articulation, governor: NewtonGovernor | None) -> None:
        super().__init__(asset)
        self._governor = governor
        self._limits, self._soft_limits, self._default_pos = self._buffer(2), self._buffer(2), self._buffer()

    def faulty(self, state: FaultState) -> torch.Tensor:
        """See the base class."""
        return state.rom_limited

    def _limit(self, env_ids: torch.Tensor, faulty: torch.Tensor, state: FaultState) -> None:
        data = self.asset.data
        self._limits[env_ids] = limits = data.joint_pos_limits.torch[env_ids]
        self._soft_limits[env_ids] = data.soft_joint_pos_limits.torch[env_ids]
        self._default_pos[env_ids] = data.default_joint_pos.torch[env_ids]
        position = data.joint_pos.torch[env_ids]
        window = rom_window(limits, position, state.rom_fraction[env_ids], state.placement[env_ids])
        self._write(env_ids, torch.where(faulty.unsqueeze(-1), window, limits))
        if self._governor is not None:
            lower, upper = window.unbind(-1)
            self._governor.limit_position(
                env_ids, torch.where(faulty, lower, -torch.inf), torch.where(faulty, upper, torch.inf)
            )

    def _restore(self, env_ids: torch.Tensor) -> None:
        self._write(env_ids, self._limits[env_ids])
        # the writer computes soft limits anew, and may round them differently
        self.asset.data.soft_joint_pos_limits.torch[env_ids] = self._soft_limits[env_ids]
        if self._governor is not None:
            self._governor.free_position(env_ids)

    def _write(self, env_ids: torch.Tensor, limits: torch.Tensor) -> None:
        self.asset.write_joint_position_limit_to_sim_index(
            limits=limits, env_ids=env_ids.int(), warn_limit_violation=False
        )
        self.asset.data.default_joint_pos.torch[env_ids] = self._default_pos[env_ids]


def _joint_ids(asset: Articulation, group: str) -> list[int]:
    _, names = asset.find_joints(asset.cfg.actuators[group].joint_names_expr)
    return [asset.joint_names.index(name) for name in names]


def _effort_parameter(asset: Articulation, group: str) -> str:
    for parameter in EFFORT_PARAMETERS:
        try:
            read_group_parameter(asset.actuators, group, "clamping", parameter)
        except ValueError:
            continue
        return parameter
    raise UmcError(
        f"actuator group '{group}' has no torque limit that a fault could lower; use IdealPDActuatorCfg or DCMotorCfg"
        " with actuator_effort_limit, and leave SimulationCfg.use_newton_actuators on"
    )
