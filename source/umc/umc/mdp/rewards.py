# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Reward terms of the A1-Walk and unitree_rl_gym tasks that Isaac Lab does not have, and what they measure.

Shapes are (num_envs,) unless another is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from isaaclab.managers import ManagerTermBase, RewardTermCfg, SceneEntityCfg
from isaaclab.utils.array import index_fill_

from umc.mdp.fault_terms import fault_state
from umc.terrains.tracks import tracks_in

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedEnv, ManagerBasedRLEnv
    from isaaclab.sensors import ContactSensor
    from isaaclab.utils.warp import ProxyArray

CONTACT_THRESHOLD = 1.0
"""Net contact force above which a foot counts as standing [N] (the threshold of legged_gym)."""


def gait_phase(env: ManagerBasedRLEnv, period: float, offset: float = 0.0) -> torch.Tensor:
    """Phase in [0, 1) of a gait clock that starts with the episode: stride ``period`` [s], ``offset`` a share of it."""
    # the buffer does not exist yet when the observation manager measures its terms
    steps = getattr(env, "episode_length_buf", None)
    if steps is None:
        return torch.zeros(env.num_envs, device=env.device)
    return (steps * env.step_dt / period + offset) % 1.0


def foot_contact(env: ManagerBasedRLEnv, sensor_cfg: SceneEntityCfg) -> torch.Tensor:
    """Return which feet stand on the ground. Shape is (num_envs, num_feet)."""
    sensor = cast("ContactSensor", env.scene.sensors[sensor_cfg.name])
    forces = cast("ProxyArray", sensor.data.net_normal_forces_w)  # optional by its type only: every engine fills it
    return forces.torch[:, sensor_cfg.body_ids].norm(dim=-1) > CONTACT_THRESHOLD


def planar_velocity_error(
    env: ManagerBasedRLEnv, command_name: str, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")
) -> torch.Tensor:
    """Distance [m/s] between the commanded and the world-frame planar velocity."""
    asset: Articulation = env.scene[asset_cfg.name]
    command = env.command_manager.get_command(command_name)[:, :2]
    return (command - asset.data.root_lin_vel_w.torch[:, :2]).norm(dim=1)


def commanded_progress(
    env: ManagerBasedRLEnv, command_name: str, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")
) -> torch.Tensor:
    """Speed in the commanded direction as a share of the commanded speed, clamped to [-1, 1]; 0 without a command.

    Linear, where tracking kernels are flat far from the command: a slow robot gains by any speed.
    """
    asset: Articulation = env.scene[asset_cfg.name]
    command = env.command_manager.get_command(command_name)[:, :2]
    speed_squared = command.square().sum(1)
    product = (command * asset.data.root_lin_vel_b.torch[:, :2]).sum(1)
    share = product / speed_squared.clamp(min=torch.finfo(product.dtype).tiny)
    return torch.where(speed_squared > 0.0, share.clamp(-1.0, 1.0), 0.0)


def mechanical_power(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")) -> torch.Tensor:
    """Sum over the joints of the absolute mechanical power [W]."""
    asset: Articulation = env.scene[asset_cfg.name]
    return (asset.actuators.applied_effort.torch * asset.data.joint_vel.torch).abs().sum(1)


def effort_beyond(
    env: ManagerBasedRLEnv, limit: float, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")
) -> torch.Tensor:
    """Return whether the unclipped commanded torque of any joint exceeds a limit [N*m] (ParkourGym's indicator)."""
    asset: Articulation = env.scene[asset_cfg.name]
    return (asset.actuators.computed_effort.torch.abs() > limit).any(1).float()


def height_above_ground(env: ManagerBasedEnv, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")) -> torch.Tensor:
    """Return the height [m] of the robot's root above the ground under it.

    On ground without tracks, its height above the origin of its env.
    """
    asset: Articulation = env.scene[asset_cfg.name]
    position = asset.data.root_pos_w.torch
    tracks = tracks_in(env.scene)
    return position[:, 2] - (env.scene.env_origins[:, 2] if tracks is None else tracks.height_at(position))


def height_error_l2(
    env: ManagerBasedEnv, target_height: float, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")
) -> torch.Tensor:
    """Squared distance [m^2] of the root's height above the ground from a target [m]."""
    return (height_above_ground(env, asset_cfg) - target_height).square()


def joint_pos_l2(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg) -> torch.Tensor:
    """Sum of squared joint positions [rad^2] (keeps hip roll and yaw near zero)."""
    asset: Articulation = env.scene[asset_cfg.name]
    return asset.data.joint_pos.torch[:, asset_cfg.joint_ids].square().sum(1)


def foot_slip(env: ManagerBasedRLEnv, sensor_cfg: SceneEntityCfg, asset_cfg: SceneEntityCfg) -> torch.Tensor:
    """Sum over standing feet of their squared velocity [m^2/s^2]; both cfgs name the same feet."""
    asset: Articulation = env.scene[asset_cfg.name]
    speed = asset.data.body_lin_vel_w.torch[:, asset_cfg.body_ids].square().sum(-1)
    return (speed * foot_contact(env, sensor_cfg)).sum(1)


def swing_height_error(
    env: ManagerBasedRLEnv, target: float, sensor_cfg: SceneEntityCfg, asset_cfg: SceneEntityCfg
) -> torch.Tensor:
    """Sum over swinging feet of the squared distance [m^2] of the foot's frame from a target height [m]."""
    asset: Articulation = env.scene[asset_cfg.name]
    height = asset.data.body_pos_w.torch[:, asset_cfg.body_ids, 2] - env.scene.env_origins[:, 2:3]
    return ((height - target).square() * ~foot_contact(env, sensor_cfg)).sum(1)


def contact_follows_phase(
    env: ManagerBasedRLEnv, period: float, offsets: tuple[float, ...], stance: float, sensor_cfg: SceneEntityCfg
) -> torch.Tensor:
    """Return the number of feet that stand or swing as the gait clock asks.

    A stride takes ``period`` [s], of which a foot stands for the fraction ``stance``. ``offsets`` are the phase shifts
    of the feet, in the order of ``sensor_cfg.body_names`` (``preserve_order=True``).
    """
    phase = torch.stack([gait_phase(env, period, offset) for offset in offsets], dim=1)
    return (foot_contact(env, sensor_cfg) == (phase < stance)).sum(1).float()


def diagonal_support(env: ManagerBasedRLEnv, sensor_cfg: SceneEntityCfg, healthy_only: bool = False) -> torch.Tensor:
    """Return whether a quadruped stands on exactly one diagonal pair of feet, as in a trot.

    ``sensor_cfg`` names the feet front left, front right, rear left, rear right
    (``preserve_order=True``); with ``healthy_only``, robots with a joint fault get 0: they cannot trot.
    """
    front_left, front_right, rear_left, rear_right = foot_contact(env, sensor_cfg).unbind(1)
    trot = ((front_left == rear_right) & (front_right == rear_left) & (front_left != front_right)).float()
    return trot * _healthy(env) if healthy_only else trot


def _healthy(env: ManagerBasedRLEnv) -> torch.Tensor:
    """1 where no joint has a joint fault now (its sensor may be dead), else 0."""
    return (~fault_state(env).has_joint_fault.any(1)).float()


class uneven_duty(ManagerTermBase):
    """Inequality of the duty factors of the feet.

    Each foot's share of time on the ground is an exponential average; the term is the sum of squared differences from
    the mean over the feet. Standing and any even gait give 0, standing on one diagonal gives 1.
    """

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRLEnv) -> None:
        super().__init__(cfg, env)
        feet = foot_contact(env, cfg.params["sensor_cfg"]).shape[1]
        self._duty = torch.zeros(env.num_envs, feet, device=env.device)
        self._started = torch.zeros(env.num_envs, 1, dtype=torch.bool, device=env.device)

    def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
        """Forget the last episode of some envs, by default of all."""
        index_fill_(self._started, env_ids, False)

    def __call__(
        self, env: ManagerBasedRLEnv, sensor_cfg: SceneEntityCfg, time_constant: float, healthy_only: bool = False
    ) -> torch.Tensor:
        """Return the sum of squared differences [-] of averages over ``time_constant`` [s].

        With ``healthy_only``, robots with a joint fault get 0.
        """
        contact = foot_contact(env, sensor_cfg).float()
        duty = torch.lerp(self._duty, contact, env.step_dt / time_constant)
        # an episode starts with equal duty factors, whichever foot touches the ground first
        self._duty = torch.where(self._started, duty, contact.mean(1, keepdim=True))
        self._started[:] = True
        uneven = (self._duty - self._duty.mean(1, keepdim=True)).square().sum(1)
        return uneven * _healthy(env) if healthy_only else uneven


class yaw_drift(ManagerTermBase):
    """Deviation of the yaw rate from the command, averaged over strides.

    In a trot the trunk's yaw rate oscillates by more than a slow turn amounts to, so that a kernel on the yaw rate of
    each step hardly distinguishes a circle from a straight line.
    """

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRLEnv) -> None:
        super().__init__(cfg, env)
        self._drift = torch.zeros(env.num_envs, device=env.device)

    def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
        """Forget the last episode of some envs, by default of all."""
        index_fill_(self._drift, env_ids, 0.0)

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        command_name: str,
        time_constant: float,
        asset_cfg: SceneEntityCfg = SceneEntityCfg("robot"),
    ) -> torch.Tensor:
        """Return the absolute mean error of the yaw rate [rad/s] over ``time_constant`` [s]."""
        asset: Articulation = env.scene[asset_cfg.name]
        command = env.command_manager.get_command(command_name)[:, 2]
        error = asset.data.root_ang_vel_b.torch[:, 2] - command
        self._drift.lerp_(error, env.step_dt / time_constant)
        return self._drift.abs()


def only_positive(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Raise a negative total to zero, as ``only_positive_rewards`` of legged_gym; list it last, with weight 1.

    It also zeroes the terms of an env whose physics state is not finite (that env is reset in the same step), since
    one NaN reward would end the training.
    """
    # The manager has no public view of the weighted terms of the running step.
    terms = env.reward_manager._step_reward[:, :-1]
    terms.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
    return (-terms.sum(1)).clamp(min=0.0)
