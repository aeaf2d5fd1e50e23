# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Event terms that break joints: one looks at every step whether faults are due, one ends them at reset."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from isaaclab.managers import EventTermCfg, ManagerTermBase, SceneEntityCfg

from umc.faults import (
    ONSET_RANGE,
    FaultCases,
    FaultReplay,
    FaultSchedule,
    FaultState,
    JointKind,
    JointLimits,
    LedgerWriter,
    break_joint,
    find_kind,
    heal_joint,
)
from umc.faults.severity import FRACTION
from umc.mdp.actions import check_command_faults
from umc.mdp.curricula import has_fault_curriculum
from umc.mdp.physics import JointLimitWriter
from umc.utils.distributed import ranks_from_env
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedEnv, ManagerBasedRLEnv

FAULTS_TERM = "faults"
"""Name of the :class:`joint_faults` term in every task's events."""

_newest: weakref.ref[ManagerBasedRLEnv] | None = None


class joint_faults(ManagerTermBase):
    """Switches faults on at their step and writes them into physics; owns the :class:`~umc.faults.FaultState`.

    To be used with ``mode="interval"``, ``interval_range_s=(0.0, 0.0)``, ``is_global_time=True``: such a term runs in
    every step, after resets and before observations. :func:`begin_fault_episode` has to be the first reset term.
    """

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedRLEnv) -> None:
        super().__init__(cfg, env)
        asset_cfg: SceneEntityCfg = cfg.params.get("asset_cfg", SceneEntityCfg("robot"))
        self.asset_name = asset_cfg.name
        """Its name in the scene."""
        self.asset: Articulation = env.scene[asset_cfg.name]
        """The robot that breaks."""
        writer = JointLimitWriter(self.asset) if _asks_for_nominal(cfg.params, env.cfg) else None
        nominal = None if writer is None else _first_env(writer.healthy)
        self.source: FaultSchedule | FaultCases | FaultReplay = _plan_source(
            cfg.params, env, self.asset, asset_cfg, nominal
        )
        """Draws the plans."""
        check_command_faults(env.cfg, self.source.kinds, asset_cfg.name)
        ranks = ranks_from_env()
        if ranks.several and cfg.params.get("ledger") is not None:
            raise UmcError("a ledger is written by one process; leave it out where several train together")
        # processes that train together must not meet the same faults; cases are dealt out within one process
        first_env = 0 if isinstance(self.source, FaultCases) else ranks.first_env(env.num_envs)
        self.state = FaultState(self.source, env.num_envs, first_env)
        """Plans and live faults of all envs."""
        self.writer: JointLimitWriter | None = None
        """What faults do to physics; None in a task that never breaks a joint."""
        breaks = self.source.breaks or has_fault_curriculum(env.cfg)
        if breaks and any(isinstance(kind, JointKind) for kind in self.source.kinds):
            self.writer = writer or JointLimitWriter(self.asset)
        self.ledger: LedgerWriter | None = None
        """What happens, written down; None if it is not."""
        path: Any = cfg.params.get("ledger")
        if path is not None:
            schedule = self.source.schedule if isinstance(self.source, FaultReplay) else self.source
            self.ledger = LedgerWriter(
                path,
                self.state,
                schedule if isinstance(schedule, FaultSchedule) else None,
                robot=Path(getattr(self.asset.cfg.spawn, "usd_path", asset_cfg.name)).stem,
                step_dt=env.step_dt,
            )
        # envs whose faults have changed since physics last heard of them
        self._pending = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
        global _newest
        _newest = weakref.ref(env)

    @property
    def schedule(self) -> FaultSchedule:
        """The schedule, of which a curriculum changes odds and level.

        Raises:
            UmcError: If envs meet cases or a ledger instead.
        """
        if not isinstance(self.source, FaultSchedule):
            raise UmcError("the faults of this environment are cases or a replay; they have no odds to change")
        return self.source

    def get_ready(self) -> None:
        """Lets joints of this environment be broken by hand, even if its task never breaks one.

        Raises:
            UmcError: If its engine or its actuators cannot be limited.
        """
        if self.writer is None:
            self.writer = JointLimitWriter(self.asset)

    def break_joint(self, env_id: int, joint: int, kind: str, severity: float, detected: bool | None = None) -> None:
        """Lets a joint fail from the next step on, until the episode ends; see :func:`umc.faults.break_joint`.

        Args:
            env_id: The env.
            joint: Number of the joint.
            kind: How it fails.
            severity: How hard, in the kind's unit.
            detected: Whether the policy is told; if not said, the paper's rule decides.

        Raises:
            UmcError: If an argument makes no sense, or the environment cannot carry the fault out.
        """
        found = find_kind(kind)
        check_command_faults(self._env.cfg, [found], self.asset_name)
        if isinstance(found, JointKind):
            self.get_ready()
        self._amended(env_id, break_joint(self.state, env_id, joint, found, severity, detected))

    def heal_joint(self, env_id: int, joint: int | None = None) -> None:
        """Ends faults from the next step on; see :func:`umc.faults.heal_joint`.

        Args:
            env_id: The env.
            joint: Number of the joint; all joints if not given.

        Raises:
            UmcError: If an argument makes no sense.
        """
        self._amended(env_id, heal_joint(self.state, env_id, joint))

    def _amended(self, env_id: int, faults: list[int]) -> None:
        if self.ledger is not None and faults:
            self.ledger.amend(env_id, faults)

    def begin_episode(self, env_ids: torch.Tensor | slice) -> None:
        """Restores the physics of some envs and plans their next faults.

        Args:
            env_ids: The envs.
        """
        ids = torch.arange(self.num_envs, device=self.device)[env_ids if isinstance(env_ids, slice) else env_ids.long()]
        if self.writer is not None:
            envs = torch.zeros_like(self._pending)
            envs[ids] = True
            self.writer.restore(envs)
        self._pending[ids] = False
        self.state.begin_episode(ids)
        if self.ledger is not None:
            self.ledger.begin(ids, cast("ManagerBasedRLEnv", self._env).episode_length_buf[ids])

    def advance(self) -> FaultState:
        """Switches faults on and off as far as observations show them; physics follows in this term's own turn.

        Observations of the last step of an episode are made before this term's turn: asking here lets them show a
        fault that sets in with this very step.

        Returns:
            The state of this env step.
        """
        position = self.asset.data.joint_pos.torch
        self._pending |= self.state.advance(self._env.episode_length_buf, position)
        return self.state

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_ids: torch.Tensor | None,
        severity: Mapping[str, Any] | None = None,
        asset_cfg: SceneEntityCfg = SceneEntityCfg("robot"),
        ratios: Sequence[float] | Mapping[str, float] = (1.0, 1.0, 1.0, 1.0),
        scenario: int | str | Sequence[int | str] | None = None,
        scenarios: Mapping[str, Any] | None = None,
        num_joints: tuple[int, int] = (2, 4),
        num_faults: tuple[int, int] = (1, 1),
        onset_range: tuple[int, int] = ONSET_RANGE,
        onset: int | Sequence[int] | None = None,
        duration: int | tuple[int, int] | None = None,
        period: int | tuple[int, int] | None = None,
        duty: float = 0.5,
        seed: int = 0,
        cases: Sequence[Mapping[str, Any]] | None = None,
        ledger: str | None = None,
        replay: str | None = None,
    ) -> None:
        """Switches due faults on and ended ones off.

        Args:
            env: The environment.
            env_ids: Not used: a term of global time gets None.
            severity: See :class:`~umc.faults.FaultSchedule`, as for all that follow; by kind.
            asset_cfg: The robot, and the joints that can fail.
            ratios: How often each scenario is drawn.
            scenario: Scenarios dealt out instead.
            scenarios: Scenarios of your own.
            num_joints: Fewest and most faulty joints of a fault.
            num_faults: Fewest and most faults of an episode.
            onset_range: First and last onset [env steps].
            onset: Onsets to choose from instead [env steps].
            duration: How long a fault lasts [env steps].
            period: From one return of an intermittent fault to the next [env steps].
            duty: Part of the period that it is on [-].
            seed: Seed of every draw.
            cases: Conditions that envs get in turn, each changing the above; see :class:`~umc.faults.FaultCases`.
            ledger: File that records what happens; it must not exist (see docs/ledger.md).
            replay: Ledger whose faults are met, whatever the other parameters say.
        """
        self.advance()
        if self._pending.device.type == "cpu" and not self._pending.any():
            return
        limits = None
        if self.writer is not None:
            limits = self.state.limits(self.writer.healthy)
            self.writer.write(limits, self._pending)
        if self.ledger is not None:
            self.ledger.switch(self._pending, limits)
        self._pending.fill_(False)


def _asks_for_nominal(params: Mapping[str, Any], env_cfg: Any) -> bool:
    """Whether severities depend on what healthy joints can do: as fractions, or as mild ones of a curriculum."""

    def has_fraction(value: Any) -> bool:
        if isinstance(value, Mapping):
            return FRACTION in value or any(has_fraction(part) for part in value.values())
        return isinstance(value, list | tuple) and any(has_fraction(part) for part in value)

    return has_fraction([params.get("severity"), params.get("cases")]) or has_fault_curriculum(env_cfg)


def _first_env(limits: JointLimits) -> JointLimits:
    """Limits of the first env, before any event has randomised them; every shape is (J,)."""
    return JointLimits(limits.lower[0], limits.upper[0], limits.effort[0], limits.velocity[0])


def _plan_source(
    params: Mapping[str, Any],
    env: ManagerBasedRLEnv,
    asset: Articulation,
    asset_cfg: SceneEntityCfg,
    nominal: JointLimits | None,
) -> FaultSchedule | FaultCases | FaultReplay:
    """Who plans the faults that the term's parameters ask for."""
    if params.get("replay") is not None:
        if has_fault_curriculum(env.cfg):
            raise UmcError("a replay has no curriculum; take fault_curriculum out of the environment's curriculum")
        return FaultReplay(
            params["replay"],
            asset.joint_names,
            step_dt=env.step_dt,
            episode_length=env.max_episode_length,
            device=env.device,
        )
    own = ("asset_cfg", "cases", "ledger", "replay")
    kwargs: dict[str, Any] = {name: value for name, value in params.items() if name not in own} | {
        "candidates": asset_cfg.joint_names,
        "episode_length": env.max_episode_length,
        "device": env.device,
        "nominal": nominal,
    }
    if params.get("cases") is not None:
        return FaultCases(asset.joint_names, params["cases"], env.num_envs, **kwargs)
    return FaultSchedule(asset.joint_names, **kwargs)


def joint_faults_of(env: ManagerBasedEnv) -> joint_faults:
    """The term that breaks an environment's joints.

    Args:
        env: The environment.

    Returns:
        Its ``faults`` event term.

    Raises:
        UmcError: If the environment has no such term.
    """
    manager = env.event_manager
    if FAULTS_TERM not in manager.active_terms.get("interval", ()):
        raise UmcError(f"the environment has no '{FAULTS_TERM}' interval event; add umc.mdp.joint_faults to its events")
    return cast(joint_faults, manager.get_term_cfg(FAULTS_TERM).func)


def fault_state(env: ManagerBasedEnv) -> FaultState:
    """The one fault state of an environment, for whoever may read it.

    Args:
        env: The environment.

    Returns:
        The state that the ``faults`` event term owns, as of this env step.

    Raises:
        UmcError: If the environment has no such term.
    """
    return joint_faults_of(env).state


def newest_env() -> ManagerBasedRLEnv | None:
    """The last environment that was made with a :class:`joint_faults` term.

    Returns:
        The environment; None if there is none, or it has been closed or forgotten.
    """
    env = None if _newest is None else _newest()
    return None if env is None or getattr(env, "_is_closed", True) else env


def begin_fault_episode(env: ManagerBasedRLEnv, env_ids: torch.Tensor | slice) -> None:
    """Reset term, first in the list: ends faults before others read limits and default pose, plans the next ones.

    Args:
        env: The environment.
        env_ids: The envs that are reset.
    """
    joint_faults_of(env).begin_episode(env_ids)
