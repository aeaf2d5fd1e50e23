# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Event terms that break joints: one looks at every step whether faults are due, one ends them at reset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from isaaclab.managers import EventTermCfg, ManagerTermBase, SceneEntityCfg

from umc.errors import UmcError
from umc.faults import ONSET_RANGE, FaultSchedule, FaultState

from .physics import JointFaultWriter

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedEnv, ManagerBasedRLEnv

FAULTS_TERM = "faults"
"""Name of the :class:`joint_faults` term in every task's events."""


class joint_faults(ManagerTermBase):
    """Switches faults on at their step and writes them into physics; owns the :class:`~umc.faults.FaultState`.

    To be used with ``mode="interval"``, ``interval_range_s=(0.0, 0.0)``, ``is_global_time=True``: such a term runs in
    every step, after resets and before observations. :func:`begin_fault_episode` has to be the first reset term.
    """

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedRLEnv) -> None:
        super().__init__(cfg, env)
        params: dict[str, Any] = {name: value for name, value in cfg.params.items() if name != "asset_cfg"}
        asset_cfg: SceneEntityCfg = cfg.params.get("asset_cfg", SceneEntityCfg("robot"))
        asset: Articulation = env.scene[asset_cfg.name]
        schedule = FaultSchedule(
            asset.joint_names,
            candidates=asset_cfg.joint_names,
            episode_length=env.max_episode_length,
            device=env.device,
            **params,
        )
        self.state = FaultState(schedule, env.num_envs)
        """Plans and live faults of all envs."""
        self._writer = JointFaultWriter(asset) if schedule.breaks else None

    def begin_episode(self, env_ids: torch.Tensor | slice) -> None:
        """Restores the physics of some envs and draws their next faults.

        Args:
            env_ids: The envs.
        """
        ids = torch.arange(self.num_envs, device=self.device)[env_ids if isinstance(env_ids, slice) else env_ids.long()]
        if self._writer is not None:
            self._writer.restore(ids[self.state.active[ids]])
        self.state.begin_episode(ids)

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_ids: torch.Tensor | None,
        effort_limit: float | Mapping[str, float],
        velocity_limit: float | Mapping[str, float],
        asset_cfg: SceneEntityCfg = SceneEntityCfg("robot"),
        ratios: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
        num_joints: tuple[int, int] = (2, 4),
        rom_fraction: float | Mapping[str, float] = 0.3,
        onset_range: tuple[int, int] = ONSET_RANGE,
        onset: int | Sequence[int] | None = None,
        scenario: int | Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        """Switches due faults on and ended ones off.

        Args:
            env: The environment.
            env_ids: Not used: a term of global time gets None.
            effort_limit: See :class:`~umc.faults.FaultSchedule`, as for all that follow; [N*m].
            velocity_limit: Speed that is left [rad/s].
            asset_cfg: The robot, and the joints that can fail.
            ratios: How often each subcategory is drawn.
            num_joints: Fewest and most faulty joints.
            rom_fraction: Part of the range of motion that is left [-].
            onset_range: First and last onset [env steps].
            onset: Onsets to choose from instead [env steps].
            scenario: Scenarios instead of the ratios.
            seed: Seed of every draw.
        """
        if self._writer is None:
            return
        self._switch_off(self.state.over(env.episode_length_buf))
        self._switch_on(self.state.due(env.episode_length_buf))

    def _switch_on(self, due: torch.Tensor) -> None:
        ids = due.nonzero().squeeze(1)
        if self._writer is not None and len(ids):
            self.state.activate(ids)
            self._writer.limit(ids, self.state)

    def _switch_off(self, over: torch.Tensor) -> None:
        ids = over.nonzero().squeeze(1)
        if self._writer is not None and len(ids):
            self._writer.restore(ids)
            self.state.recover(ids)


def fault_state(env: ManagerBasedEnv) -> FaultState:
    """The one fault state of an environment, for whoever may read it.

    Args:
        env: The environment.

    Returns:
        The state that the ``faults`` event term owns.

    Raises:
        UmcError: If the environment has no such term.
    """
    return _faults(env).state


def begin_fault_episode(env: ManagerBasedRLEnv, env_ids: torch.Tensor | slice) -> None:
    """Reset term, first in the list: ends faults before others read limits and default pose, draws the next ones.

    Args:
        env: The environment.
        env_ids: The envs that are reset.
    """
    _faults(env).begin_episode(env_ids)


def _faults(env: ManagerBasedEnv) -> joint_faults:
    manager = env.event_manager
    if FAULTS_TERM not in manager.active_terms.get("interval", ()):
        raise UmcError(f"the environment has no '{FAULTS_TERM}' interval event; add umc.mdp.joint_faults to its events")
    return cast(joint_faults, manager.get_term_cfg(FAULTS_TERM).func)
