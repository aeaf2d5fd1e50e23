# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What the policy learns of faults: dead joints read 0, masked joints are marked, detected faults are flagged."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import torch
from isaaclab.managers import ManagerTermBase, ObservationTermCfg, SceneEntityCfg
from isaaclab.utils.noise import NoiseCfg

from .events import fault_state

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedEnv


class joint_sensor(ManagerTermBase):
    """A signal with one column per joint, as the joint's sensor reports it: noisy, and exactly 0 where it is dead.

    Isaac Lab adds a term's own noise after the term, to dead joints, too. This term therefore applies the noise itself
    and zeroes afterwards; scale, clip and history keep a 0. The noise follows the group's ``enable_corruption``, as
    a term's own would.
    """

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedEnv) -> None:
        super().__init__(cfg, env)
        func = cast(Callable[..., torch.Tensor], cfg.params["func"])
        asset_cfg = cfg.params.get("asset_cfg")
        self._kwargs = {}
        if asset_cfg is not None and "asset_cfg" in inspect.signature(func).parameters:
            self._kwargs["asset_cfg"] = asset_cfg
        self._corrupts: bool | None = None

    def __call__(
        self,
        env: ManagerBasedEnv,
        func: Callable[..., torch.Tensor],
        noise: NoiseCfg | None = None,
        asset_cfg: SceneEntityCfg | None = None,
    ) -> torch.Tensor:
        """Measures.

        Args:
            env: The environment.
            func: The term that gives the true signal.
            noise: Noise of working sensors.
            asset_cfg: The joints that ``func`` reports, in its order; all joints if not given.

        Returns:
            The signal. Shape is (num_envs, num_joints).
        """
        signal = func(env, **self._kwargs)
        if noise is not None and self._is_corrupted(env):
            signal = noise.func(signal, noise)
        dead = fault_state(env).sensor_dead
        if asset_cfg is not None:
            dead = dead[:, asset_cfg.joint_ids]
        return signal.masked_fill(dead, 0.0)

    def _is_corrupted(self, env: ManagerBasedEnv) -> bool:
        """Whether the group that this term belongs to wants noise."""
        if self._corrupts is None:
            # while the observation manager measures its terms, it is not there yet; widths do not depend on noise
            manager = getattr(env, "observation_manager", None)
            if manager is None:
                return False
            self._corrupts = any(
                group.enable_corruption
                for group in vars(manager.cfg).values()
                if any(getattr(term, "func", None) is self for term in vars(group).values())
            )
        return self._corrupts


def joint_mask(env: ManagerBasedEnv, joint_ids: Sequence[int] | None = None) -> torch.Tensor:
    """Which joints the policy must not listen to.

    Args:
        env: The environment.
        joint_ids: The policy's joints, in its order; all joints if not given.

    Returns:
        1 for a masked joint, else 0. Shape is (num_envs, num_joints).
    """
    mask = fault_state(env).joint_mask
    return (mask if joint_ids is None else mask[:, list(joint_ids)]).float()


def fault_flag(env: ManagerBasedEnv) -> torch.Tensor:
    """Whether a joint fault has been detected.

    Args:
        env: The environment.

    Returns:
        +1 where it has, else -1, three times over. Shape is (num_envs, 3).
    """
    return fault_state(env).fault_flag.clone()
