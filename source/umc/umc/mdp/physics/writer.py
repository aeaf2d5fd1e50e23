# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Writes joint limits into any engine, and restores the healthy ones to the bit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from isaaclab.actuators import ImplicitActuator
from isaaclab.actuators import newton as drives  # loaded when it is used: umc.utils.lazy_imports

from umc.faults.kinds import JointLimits
from umc.faults.state import known_empty
from umc.mdp.physics.engine import EngineJoints
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.assets import Articulation

_EFFORT_PARAMETERS = ("max_effort", "max_motor_effort")
"""Names of the largest torque of an ideal PD actuator and of a DC motor."""


class JointLimitWriter:
    """Position, torque and speed limits of one robot's joints, and the damping and friction that faults add.

    Healthy limits are read when an env is limited, not once at the start: limits that other events randomise are
    restored. Only PhysX's own writers wait for a CUDA device. Raises UmcError if the robot's engine or its actuators
    cannot be limited.
    """

    def __init__(self, asset: Articulation) -> None:
        engine = _engine_joints(asset)
        self._position = _PositionChannel(asset, engine)
        self._effort = _EffortChannel(asset, engine)
        self._velocity = _VelocityChannel(asset, engine)
        self._passive = _PassiveChannel(asset, engine)
        self._channels = (self._position, self._effort, self._velocity, self._passive)

    @property
    def healthy(self) -> JointLimits:
        """Limits of all envs without faults: the engine's values, before :meth:`write` where a fault is on."""
        lower, upper = self._position.healthy().unbind(-1)
        return JointLimits(lower, upper, self._effort.healthy(), self._velocity.healthy())

    @property
    def nominal(self) -> JointLimits:
        """Limits of healthy joints, as the first env has them. Shapes are (J,)."""
        return JointLimits(*(limit[0] for limit in vars(self.healthy).values()))

    def write(self, limits: JointLimits, changed: torch.Tensor, passive: bool = True) -> None:
        """Write the limits of the envs in a mask, shape (E,); limits that equal the healthy ones are restored.

        Without ``passive`` no fault adds damping or friction, and the engine is not asked for them.
        """
        if known_empty(changed):
            return
        self._position.write(torch.stack((limits.lower, limits.upper), dim=-1), changed)
        self._effort.write(limits.effort, changed)
        self._velocity.write(limits.velocity, changed)
        if passive:
            self._passive.add(limits.damping, limits.friction, changed)

    def restore(self, envs: torch.Tensor) -> None:
        """Restore the limits of the envs in a mask, shape (E,), limited or not."""
        for channel in self._channels:
            channel.restore(envs)


class _Channel(ABC):
    """One quantity; remembers the values that it overwrites, per env."""

    def __init__(self, asset: Articulation, engine: EngineJoints) -> None:
        self.asset, self.engine = asset, engine
        self.limited = torch.zeros(asset.num_instances, dtype=torch.bool, device=asset.device)
        """Envs in which this quantity is limited. Shape is (E,)."""
        self._remembered = self.read()

    def healthy(self) -> torch.Tensor:
        """Healthy values of all envs. Shape is (E, J, ...)."""
        values = self.read()
        return torch.where(_rows(self.limited, values), self._remembered, values)

    def write(self, values: torch.Tensor, changed: torch.Tensor) -> None:
        """See :meth:`JointLimitWriter.write`."""
        healthy = self.healthy()
        faulty = values != healthy
        faulty = faulty.any(dim=-1) if faulty.dim() > 2 else faulty
        faulty &= changed.unsqueeze(1)
        limited = faulty.any(dim=1)
        touched = limited | (self.limited & changed)
        if not known_empty(touched):
            self._remember(healthy)
            self.apply(torch.where(_rows(touched, values), values, healthy), faulty, touched)
            self.limited = torch.where(changed, limited, self.limited)

    def restore(self, envs: torch.Tensor) -> None:
        """See :meth:`JointLimitWriter.restore`."""
        touched = envs & self.limited
        if not known_empty(touched):
            nothing = torch.zeros(self._remembered.shape[:2], dtype=torch.bool, device=envs.device)
            self.apply(self._remembered, nothing, touched)
            self.limited = self.limited & ~touched

    def _remember(self, healthy: torch.Tensor) -> None:
        self._remembered = healthy

    @abstractmethod
    def read(self) -> torch.Tensor:
        """Return the engine's values."""

    @abstractmethod
    def apply(self, values: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        """Write the rows of the envs in a mask."""


class _PositionChannel(_Channel):
    """Lower and upper limits, and the soft limits, which follow so that rewards see the reduced range."""

    def __init__(self, asset: Articulation, engine: EngineJoints) -> None:
        super().__init__(asset, engine)
        self._soft = asset.data.soft_joint_pos_limits.torch.clone()

    def read(self) -> torch.Tensor:
        return self.asset.data.joint_pos_limits.torch.clone()

    def apply(self, values: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        lower, upper = values.unbind(-1)
        middle, reach = values.mean(-1), 0.5 * self.asset.cfg.soft_joint_pos_limit_factor * (upper - lower)
        narrow = torch.stack((middle - reach, middle + reach), dim=-1)
        self.engine.write_position_limits(
            lower, upper, torch.where(faulty.unsqueeze(-1), narrow, self._soft), faulty, envs
        )

    def _remember(self, healthy: torch.Tensor) -> None:
        super()._remember(healthy)
        soft = self.asset.data.soft_joint_pos_limits.torch
        self._soft = torch.where(_rows(self.limited, soft), self._soft, soft)


class _EffortChannel(_Channel):
    """Largest torque: of the clamps of explicit actuators, which every engine runs, and of the engine's drives."""

    def __init__(self, asset: Articulation, engine: EngineJoints) -> None:
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
        super().__init__(asset, engine)

    def read(self) -> torch.Tensor:
        efforts = self.asset.data.joint_effort_limits.torch.clone()
        for group, parameter, columns in self._clamps:
            efforts[:, columns] = drives.read_group_parameter(self.asset.actuators, group, "clamping", parameter)
        return efforts

    def apply(self, values: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        effort = torch.where(envs.unsqueeze(1), values, self.read())
        for group, parameter, columns in self._clamps:
            drives.write_group_parameter(self.asset.actuators, group, "clamping", parameter, effort[:, columns])
        if self._has_drives:
            limits = self.asset.data.joint_effort_limits.torch
            self.engine.write_effort_limits(torch.where(self._driven, effort, limits), envs)


class _VelocityChannel(_Channel):
    """Largest speed."""

    def read(self) -> torch.Tensor:
        return self.asset.data.joint_vel_limits.torch.clone()

    def apply(self, values: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        self.engine.write_velocity_limits(values, faulty, envs)


class _PassiveChannel(_Channel):
    """Viscous damping, static and dynamic friction."""

    _used = False

    def restore(self, envs: torch.Tensor) -> None:
        if self._used:  # a GPU does not tell whether an env is limited
            super().restore(envs)

    def add(self, damping: torch.Tensor, friction: torch.Tensor, changed: torch.Tensor) -> None:
        """Add to the healthy values of the envs in a mask."""
        self._used = True
        added = torch.stack((damping, friction, friction), dim=-1)
        # an engine that keeps them in host memory is not asked without need
        if not known_empty(changed & (self.limited | (added != 0.0).flatten(1).any(dim=1))):
            self.write(self.healthy() + added, changed)

    def read(self) -> torch.Tensor:
        return self.engine.read_passive()

    def apply(self, values: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        self.engine.write_passive(values, faulty, envs)


def _clamp_parameter(asset: Articulation, group: str) -> str:
    for parameter in _EFFORT_PARAMETERS:
        try:
            drives.read_group_parameter(asset.actuators, group, "clamping", parameter)
        except ValueError:
            continue
        return parameter
    raise UmcError(
        f"actuator group '{group}' has no torque limit that a fault could lower; give IdealPDActuatorCfg or DCMotorCfg"
        " an actuator_effort_limit, and leave SimulationCfg.use_newton_actuators on"
    )


def _engine_joints(asset: Articulation) -> EngineJoints:
    # an engine is imported only where it is in use: installations may lack the others
    if asset.__backend_name__ == "newton":
        from umc.mdp.physics.newton_joints import NewtonJoints

        return NewtonJoints(asset)
    from umc.mdp.physics.physx_joints import PhysxJoints

    return PhysxJoints(asset)


def _rows(envs: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return a mask of envs that broadcasts over their joints."""
    return envs.view(-1, *(1,) * (like.dim() - 1))
