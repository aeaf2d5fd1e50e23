# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Writes joint faults into the physics of some envs, and takes them back to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from isaaclab.actuators.newton import read_group_parameter, write_group_parameter

from umc.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.assets import Articulation

    from umc.faults import FaultState

EFFORT_PARAMETERS = ("max_effort", "max_motor_effort")
"""What an ideal PD actuator and a DC motor call their largest torque."""


class JointFaultWriter:
    """Limits range of motion, torque and speed of joints, per env, and restores them.

    What it overwrites is read at onset, not once at the start: limits that other events randomise come back as they
    were.

    Args:
        asset: The robot.
        physics_dt: Physics step [s].
    """

    def __init__(self, asset: Articulation, physics_dt: float) -> None:
        self._asset = asset
        self._efforts = [_GroupEffort(asset, name) for name in asset.actuators]
        shape = (asset.num_instances, asset.num_joints)
        self._position_limits = torch.zeros(*shape, 2, device=asset.device)
        self._soft_limits = torch.zeros(*shape, 2, device=asset.device)
        self._default_pos = torch.zeros(shape, device=asset.device)
        self._velocity_limits = torch.zeros(shape, device=asset.device)
        self._has_window = torch.zeros(asset.num_instances, dtype=torch.bool, device=asset.device)
        self._is_slow = self._has_window.clone()

    def limit(self, env_ids: torch.Tensor, state: FaultState) -> None:
        """Writes the live faults of some healthy envs.

        Args:
            env_ids: The envs, dtype int64. Shape is (N,).
            state: The fault state, the envs' faults active.
        """
        for effort in self._efforts:
            effort.limit(env_ids, state.effort_limited, state.effort_limit)
        slow = env_ids[state.velocity_limited[env_ids].any(dim=1)]
        if len(slow):
            self._limit_velocity(slow, state)
        stiff = env_ids[state.rom_limited[env_ids].any(dim=1)]
        if len(stiff):
            self._limit_position(stiff, state)

    def restore(self, env_ids: torch.Tensor) -> None:
        """Takes the faults of some envs back.

        Args:
            env_ids: The envs, dtype int64, with faults that :meth:`limit` wrote. Shape is (N,).
        """
        if not len(env_ids):
            return
        for effort in self._efforts:
            effort.restore(env_ids)
        slow = env_ids[self._is_slow[env_ids]]
        if len(slow):
            self._write_velocity_limits(slow, self._velocity_limits[slow])
            self._is_slow[slow] = False
        stiff = env_ids[self._has_window[env_ids]]
        if len(stiff):
            self._write_position_limits(stiff, self._position_limits[stiff])
            self._asset.data.soft_joint_pos_limits.torch[stiff] = self._soft_limits[stiff]
            self._has_window[stiff] = False

    def _limit_velocity(self, env_ids: torch.Tensor, state: FaultState) -> None:
        healthy = self._asset.data.joint_vel_limits.torch[env_ids].clone()
        self._velocity_limits[env_ids] = healthy
        self._is_slow[env_ids] = True
        capped = torch.minimum(healthy, state.velocity_limit[env_ids])
        self._write_velocity_limits(env_ids, torch.where(state.velocity_limited[env_ids], capped, healthy))

    def _write_velocity_limits(self, env_ids: torch.Tensor, limits: torch.Tensor) -> None:
        self._asset.write_joint_velocity_limit_to_sim_index(limits=limits, env_ids=env_ids.int())

    def _limit_position(self, env_ids: torch.Tensor, state: FaultState) -> None:
        """Shrinks the range of motion to a window that holds the joint's position, so that nothing kicks."""
        data = self._asset.data
        limits = data.joint_pos_limits.torch[env_ids].clone()
        self._position_limits[env_ids] = limits
        self._soft_limits[env_ids] = data.soft_joint_pos_limits.torch[env_ids]
        self._default_pos[env_ids] = data.default_joint_pos.torch[env_ids]
        self._has_window[env_ids] = True
        window = rom_window(
            limits, data.joint_pos.torch[env_ids], state.rom_fraction[env_ids], state.placement[env_ids]
        )
        faulty = state.rom_limited[env_ids].unsqueeze(-1)
        self._write_position_limits(env_ids, torch.where(faulty, window, limits))

    def _write_position_limits(self, env_ids: torch.Tensor, limits: torch.Tensor) -> None:
        self._asset.write_joint_position_limit_to_sim_index(
            limits=limits, env_ids=env_ids.int(), warn_limit_violation=False
        )
        # the writer clamps the default pose for good
        self._asset.data.default_joint_pos.torch[env_ids] = self._default_pos[env_ids]


def rom_window(
    limits: torch.Tensor, position: torch.Tensor, fraction: torch.Tensor, placement: torch.Tensor
) -> torch.Tensor:
    """Range of motion that is left of a joint: a window that holds its position.

    A joint that is already beyond a limit gets the window at that limit, and is pushed no harder than before.

    Args:
        limits: Lower and upper limit [rad]. Shape is (..., 2).
        position: Joint position [rad]. Shape is (...).
        fraction: Width of the window over the range [-]. Shape is (...).
        placement: 0 for the lowest window that holds the position, 1 for the highest. Shape is (...).

    Returns:
        Lower and upper end of the window [rad]. Shape is (..., 2).
    """
    lower, upper = limits.unbind(-1)
    width = fraction * (upper - lower)
    held = torch.minimum(torch.maximum(position, lower), upper)
    lowest, highest = torch.maximum(held - width, lower), torch.minimum(held, upper - width)
    start = torch.maximum(lowest + placement * (highest - lowest), lower)
    return torch.stack((start, torch.minimum(start + width, upper)), dim=-1)


class _GroupEffort:
    """The largest torque of one actuator group."""

    def __init__(self, asset: Articulation, name: str) -> None:
        self._asset, self._name = asset, name
        _, names = asset.find_joints(asset.cfg.actuators[name].joint_names_expr)
        self._joint_ids = [asset.joint_names.index(joint) for joint in names]
        self._parameter = self._find_parameter()
        self._healthy = self._read().clone()

    def limit(self, env_ids: torch.Tensor, limited: torch.Tensor, limit: torch.Tensor) -> None:
        faulty = limited[env_ids][:, self._joint_ids]
        healthy = self._read()[env_ids]
        self._healthy[env_ids] = healthy
        capped = torch.minimum(healthy, limit[env_ids][:, self._joint_ids])
        self._write(env_ids, torch.where(faulty, capped, healthy))

    def restore(self, env_ids: torch.Tensor) -> None:
        self._write(env_ids, self._healthy[env_ids])

    def _find_parameter(self) -> str:
        for parameter in EFFORT_PARAMETERS:
            try:
                read_group_parameter(self._asset.actuators, self._name, "clamping", parameter)
            except ValueError:
                continue
            return parameter
        raise UmcError(
            f"actuator group '{self._name}' has no torque limit that can be lowered; use IdealPDActuatorCfg or"
            " DCMotorCfg with actuator_effort_limit, and leave SimulationCfg.use_newton_actuators on"
        )

    def _read(self) -> torch.Tensor:
        return read_group_parameter(self._asset.actuators, self._name, "clamping", self._parameter)

    def _write(self, env_ids: torch.Tensor, values: torch.Tensor) -> None:
        write_group_parameter(self._asset.actuators, self._name, "clamping", self._parameter, values, env_ids=env_ids)
