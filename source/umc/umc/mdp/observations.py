# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Observation terms: readings of faulty sensors, joint mask, fault flag, gait clock, a critic's privileged inputs."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
from isaaclab.actuators import newton as drives  # loaded when it is used: umc.utils.lazy_imports
from isaaclab.envs import mdp as lab
from isaaclab.managers import ManagerTermBase, ObservationTermCfg, SceneEntityCfg
from isaaclab.utils.noise import NoiseCfg
from isaaclab.utils.string import string_to_callable

from umc.faults.apply import ImuChannel, SensorChannel
from umc.faults.detection import class_columns
from umc.faults.kinds import ACTION, ANGULAR_VELOCITY, GRAVITY, POSITION, VELOCITY
from umc.mdp.fault_terms import fault_term
from umc.mdp.rewards import gait_phase
from umc.models.layout import JointLayout
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedEnv, ManagerBasedRLEnv

QUANTITIES = {
    lab.joint_pos: POSITION,
    lab.joint_pos_rel: POSITION,
    lab.joint_vel: VELOCITY,
    lab.joint_vel_rel: VELOCITY,
    lab.last_action: ACTION,
}
"""What Isaac Lab's own terms report."""

IMU_QUANTITIES = {lab.base_ang_vel: ANGULAR_VELOCITY, lab.projected_gravity: GRAVITY}
"""What those of the base report."""


def entries(cfg: Any) -> dict[str, Any]:
    """Return the terms and settings of a configclass or dict by name, in order, to read or change them."""
    return cfg if isinstance(cfg, dict) else vars(cfg)


def group_terms(env: ManagerBasedEnv, group: str) -> dict[str, ObservationTermCfg]:
    """Return the terms of an observation group of a running env by name, in order, to read or change them."""
    terms = entries(entries(env.observation_manager.cfg)[group])
    return {name: terms[name] for name in env.observation_manager.active_terms[group]}


class _Sensor(ManagerTermBase):
    """A signal that is noisy and can be wrong.

    Isaac Lab adds a term's noise after the term, to dead sensors, too. This term therefore applies the noise itself, if
    its group has ``enable_corruption``, and the faults afterwards; scale, clip and history keep a 0.
    """

    _known: ClassVar[Mapping[Callable[..., Any], str]]
    _choices: ClassVar[str]
    """Quantities of Isaac Lab's own terms, and all that there are, as text."""

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedEnv) -> None:
        super().__init__(cfg, env)
        params: dict[str, Any] = cfg.params
        func = params["func"]
        # a cfg that went through Hydra names its functions
        self._func: Callable[..., torch.Tensor] = string_to_callable(func) if isinstance(func, str) else func
        self.quantity: str = params.get("quantity") or self._known.get(self._func, "")
        """What it reports, as :attr:`umc.faults.kinds.SensorContext.quantity`."""
        if self.quantity not in self._known.values():
            raise UmcError(
                f"{type(self).__name__} does not know what {self._func.__name__} reports; set quantity to"
                f" {self._choices}"
            )
        chosen = {
            name: copy.deepcopy(one.default)
            for name, one in inspect.signature(self._func).parameters.items()
            if isinstance(one.default, SceneEntityCfg) and name != "asset_cfg"
        }
        self._kwargs: dict[str, Any] = {**chosen, **(params.get("func_params") or {})}
        for value in self._kwargs.values():
            if isinstance(value, SceneEntityCfg):  # Isaac Lab resolves those of a term's own parameters
                value.resolve(env.scene)
        self._corrupts: bool | None = None

    def _signal(self, env: ManagerBasedEnv, noise: NoiseCfg | None) -> torch.Tensor:
        """Return what working sensors report."""
        signal = self._func(env, **self._kwargs)
        if noise is not None and self._is_corrupted(env):
            signal = noise.func(signal, noise)
        return signal

    def _is_corrupted(self, env: ManagerBasedEnv) -> bool:
        """Return whether the group that this term belongs to wants noise."""
        if self._corrupts is None:
            # while the observation manager measures its terms, it is not there yet; widths do not depend on noise
            manager = getattr(env, "observation_manager", None)
            if manager is None:
                return False
            self._corrupts = any(
                entries(manager.cfg)[group].enable_corruption
                for group in manager.active_terms
                if any(term.func is self for term in group_terms(env, group).values())
            )
        return self._corrupts


class joint_sensor(_Sensor):
    """A signal with one column per joint, as the joint's sensor reports it: noisy, and wrong where it is faulty."""

    _known = QUANTITIES
    _choices = f"'{POSITION}' [rad], '{VELOCITY}' [rad/s] or '{ACTION}'"

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedEnv) -> None:
        super().__init__(cfg, env)
        params: dict[str, Any] = cfg.params
        asset_cfg = params.get("asset_cfg")
        if asset_cfg is not None and "asset_cfg" in inspect.signature(self._func).parameters:
            self._kwargs["asset_cfg"] = asset_cfg
        joint_ids: Sequence[int] | slice = slice(None) if asset_cfg is None else asset_cfg.joint_ids
        self.reports_all = joint_ids == slice(None)
        """Whether it reports all joints of the robot in its order."""
        if asset_cfg is not None and not isinstance(joint_ids, slice):
            self.reports_all = list(joint_ids) == list(range(env.scene[asset_cfg.name].num_joints))
        self._channel = SensorChannel(self.quantity, env.step_dt, joints=_columns(joint_ids, env.device))

    def __call__(
        self,
        env: ManagerBasedEnv,
        func: Callable[..., torch.Tensor],
        noise: NoiseCfg | None = None,
        asset_cfg: SceneEntityCfg | None = None,
        quantity: str | None = None,
        func_params: Mapping[str, Any] | None = None,
    ) -> torch.Tensor:
        """Return the signal, shape (num_envs, num_joints), whose true values are those of the term ``func``.

        ``asset_cfg`` names the joints that it reports, in its order, by default all; ``quantity`` what it reports:
        ``position`` [rad], ``velocity`` [rad/s] or ``action``, known for Isaac Lab's own terms.
        """
        return self._channel.read(fault_term(env).advance(), self._signal(env, noise))


class imu_sensor(_Sensor):
    """Angular velocity or direction of gravity of the base, as its inertial sensor reports it: noisy, or wrong."""

    _known = IMU_QUANTITIES
    _choices = f"'{ANGULAR_VELOCITY}' [rad/s] or '{GRAVITY}'"

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedEnv) -> None:
        super().__init__(cfg, env)
        self._channel = ImuChannel(self.quantity, env.step_dt)

    def __call__(
        self,
        env: ManagerBasedEnv,
        func: Callable[..., torch.Tensor],
        noise: NoiseCfg | None = None,
        quantity: str | None = None,
        func_params: Mapping[str, Any] | None = None,
    ) -> torch.Tensor:
        """Return the signal, shape (num_envs, 3), whose true values are those of the term ``func``.

        ``quantity`` is what it reports: ``angular_velocity`` [rad/s] or ``gravity``, known for Isaac Lab's own terms.
        """
        return self._channel.read(fault_term(env).advance(), self._signal(env, noise))


def without_sensor(term: ObservationTermCfg) -> ObservationTermCfg:
    """Return an observation term as working sensors without noise would report it."""
    found, func = copy.copy(term), cast("Any", term.func)
    found.noise = None
    if isinstance(func, type) and issubclass(func, _Sensor):
        params: dict[str, Any] = term.params
        wrapped = params["func"]
        found.func = string_to_callable(wrapped) if isinstance(wrapped, str) else wrapped
        found.params = {**(params.get("func_params") or {})}
        if params.get("asset_cfg") is not None and "asset_cfg" in inspect.signature(found.func).parameters:
            found.params["asset_cfg"] = params["asset_cfg"]
    return found


def joint_layout(env: ManagerBasedEnv, group: str = "policy") -> JointLayout:
    """Return which columns of an observation group report which joint; UmcError if it does not report all joints.

    Position, velocity and last action of all joints have to come from :class:`joint_sensor` terms without history.
    """
    terms, dims = group_terms(env, group), env.observation_manager.group_obs_term_dim[group]
    names = fault_term(env).state.joint_names
    starts: dict[str, int] = {}
    width = 0
    for term, shape in zip(terms.values(), dims, strict=True):
        sensor = term.func
        if isinstance(sensor, joint_sensor) and tuple(shape) == (len(names),) and sensor.reports_all:
            starts.setdefault(sensor.quantity, width)
        width += math.prod(shape)
    missing = [quantity for quantity in (POSITION, VELOCITY, ACTION) if quantity not in starts]
    if missing:
        raise UmcError(
            f"observation group '{group}' does not report the {missing[0]} of all joints in the robot's order; a "
            "detector needs it"
        )
    columns = [
        tuple(starts[quantity] + joint for quantity in (POSITION, VELOCITY, ACTION)) for joint in range(len(names))
    ]
    return JointLayout(tuple(names), width, tuple(columns))


def joint_mask(env: ManagerBasedEnv, asset_cfg: SceneEntityCfg | None = None) -> torch.Tensor:
    """Return 1 for each joint that the policy has to mask, since its sensor is reported dead, else 0.

    Shape is (num_envs, num_joints): the joints of ``asset_cfg`` in its order; by default all.
    """
    mask = fault_term(env).detect().joint_mask
    return (mask if asset_cfg is None else mask[:, _columns(asset_cfg.joint_ids, env.device)]).float()


def fault_flag(env: ManagerBasedEnv) -> torch.Tensor:
    """Return +1 where a joint fault is reported, else -1, three times over. Shape is (num_envs, 3)."""
    return fault_term(env).detect().fault_flag.clone()


def fault_class(env: ManagerBasedEnv) -> torch.Tensor:
    """Return 1 in the column of the reported class of joint faults, in the order of FAULT_CLASSES, else 0.

    Shape is (num_envs, 3).
    """
    found = fault_term(env).detect()
    return class_columns(found.has_joint_fault, found.range_reduced)


def live_faults(env: ManagerBasedEnv) -> torch.Tensor:
    """Return 1 where a joint has a fault of a kind now, detected or not, else 0: privileged inputs of a critic.

    Shape is (num_envs, num_kinds * num_joints): all joints for the first kind that the task plans, then for the next.
    """
    return fault_term(env).advance().live_planned.flatten(1).float()


def zeros(env: ManagerBasedEnv, width: int) -> torch.Tensor:
    """Zeros in the columns of a signal that the policy does not get. Shape is (num_envs, width)."""
    return torch.zeros(env.num_envs, width, device=env.device)


def forward_and_turn(env: ManagerBasedRLEnv, command_name: str) -> torch.Tensor:
    """Return the forward speed [m/s] and yaw rate [rad/s] of a command. Shape is (num_envs, 2)."""
    return env.command_manager.get_command(command_name)[:, ::2]


def phase_clock(env: ManagerBasedRLEnv, period: float) -> torch.Tensor:
    """Sine and cosine of the gait clock with a stride of ``period`` [s]. Shape is (num_envs, 2)."""
    angle = 2.0 * math.pi * gait_phase(env, period)
    return torch.stack((angle.sin(), angle.cos()), dim=1)


class randomized_physics(ManagerTermBase):
    """Start-up randomisation of each env: trunk mass and centre of mass, motor strength of every joint.

    Friction is left out: the engines draw it per shape and offer no common way to read it.
    """

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedEnv) -> None:
        super().__init__(cfg, env)
        self._values: torch.Tensor | None = None

    def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
        """Read the values again when all envs are reset at once: the first time, start-up events have just run."""
        if env_ids is None or isinstance(env_ids, slice):
            self._values = None

    def __call__(self, env: ManagerBasedEnv, asset_cfg: SceneEntityCfg, actuator: str) -> torch.Tensor:
        """Return mass over its mean [-], centre of mass [m] (3) and gain over its mean per joint [-].

        Shape is (num_envs, 4 + num_joints). ``asset_cfg`` names the body, ``actuator`` the group of actuators.
        """
        if self._values is None:
            asset: Articulation = env.scene[asset_cfg.name]
            mass = asset.data.body_mass.torch[:, asset_cfg.body_ids].reshape(env.num_envs, 1)
            com = asset.data.body_com_pos_b.torch[:, asset_cfg.body_ids].reshape(env.num_envs, 3)
            gain = drives.read_group_parameter(asset.actuators, actuator, "controller", "kp").reshape(env.num_envs, -1)
            self._values = torch.cat((mass / mass.mean(), com, gain / gain.mean(0)), dim=1).clone()
        return self._values


def _columns(joint_ids: Sequence[int] | slice | torch.Tensor, device: str) -> torch.Tensor | slice:
    """Return the columns of joints on the device: indexing with a list would make the host wait for a GPU."""
    return joint_ids if isinstance(joint_ids, slice | torch.Tensor) else _columns_on(tuple(joint_ids), device)


@cache
def _columns_on(joint_ids: tuple[int, ...], device: str) -> torch.Tensor:
    return torch.tensor(joint_ids, device=device)
