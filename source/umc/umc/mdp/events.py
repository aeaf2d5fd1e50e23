# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Event terms of faults: one plans them at reset, one switches them on and off in every env step."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from isaaclab.managers import EventTermCfg, ManagerTermBase, SceneEntityCfg
from isaaclab.utils.string import string_to_callable

from umc.faults import (
    FaultCases,
    FaultReplay,
    FaultsCfg,
    FaultSchedule,
    FaultState,
    JointKind,
    JointLimits,
    LedgerWriter,
    clear_faults,
    draw_source,
    find_kind,
    inject_fault,
)
from umc.faults.cfg import EVENT_FIELDS, faults_cfg
from umc.faults.severity import FRACTION
from umc.faults.state import known_empty
from umc.mdp.actions import check_command_faults
from umc.mdp.curricula import has_fault_curriculum
from umc.mdp.detection import DetectionCfg, DetectorInEnv, make_detection
from umc.mdp.fault_log import FaultLog
from umc.mdp.fault_terms import fault_term
from umc.mdp.imu import check_imu_sensors
from umc.mdp.observations import entries
from umc.mdp.physics import JointLimitWriter
from umc.utils.distributed import ranks_from_env
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedRLEnv

_newest: weakref.ref[ManagerBasedRLEnv] | None = None


class joint_faults(ManagerTermBase):
    """Event that switches faults on and off and writes them into physics; owner of the :class:`~umc.faults.FaultState`.

    Its parameters are ``asset_cfg`` (the robot and the joints that can fail) and the fields of
    :class:`~umc.faults.FaultsCfg` except ``joint_names``. Use it with ``mode="interval"``,
    ``interval_range_s=(0.0, 0.0)`` and ``is_global_time=True``: such a term runs in every env step, after resets and
    before observations. :func:`reset_faults` has to be the first reset term.
    """

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedRLEnv) -> None:
        super().__init__(cfg, env)
        params: dict[str, Any] = dict(cfg.params)
        asset_cfg: SceneEntityCfg = params.pop("asset_cfg", SceneEntityCfg("robot"))
        faults = faults_cfg(None, {**params, "joint_names": asset_cfg.joint_names})
        self.asset_name = asset_cfg.name
        self.asset: Articulation = env.scene[asset_cfg.name]
        _check_order(env.cfg)
        writer = JointLimitWriter(self.asset) if _has_fraction([faults.severity, faults.cases]) else None
        self.source = _plan_source(faults, env, self.asset, None if writer is None else writer.nominal)
        if writer is None and has_fault_curriculum(env.cfg) and _limits_joints(self.source):
            writer = JointLimitWriter(self.asset)  # of a curriculum's mild severities
            self.source = _plan_source(faults, env, self.asset, writer.nominal)
        check_command_faults(env.cfg, self.source.kinds, self.asset, asset_cfg.name)
        check_imu_sensors(env.cfg, self.source.kinds)
        ranks = ranks_from_env()
        if ranks.is_distributed and faults.ledger is not None:
            raise UmcError("a ledger is written by one process; leave it out where several train together")
        # processes that train together must not encounter the same faults; cases are assigned within one process
        first_env = 0 if isinstance(self.source, FaultCases) else ranks.first_env(env.num_envs)
        self.state = FaultState(self.source, env.num_envs, first_env)
        self._detection = make_detection(env, self.state)
        self.writer: JointLimitWriter | None = None
        """Writes limits into physics; None in a task without joint faults."""
        has_faults = self.source.has_faults or has_fault_curriculum(env.cfg)
        if has_faults and _limits_joints(self.source):
            self.writer = writer or JointLimitWriter(self.asset)
            if not isinstance(self.source, FaultReplay):
                # not by a nominal of the schedule, which ledgers hold and which fractions alone need
                self.source.require_limits(self.writer.nominal)
        self.log = FaultLog(env, self.state) if has_faults and isinstance(self.source, FaultSchedule) else None
        """What trainings log about the scenarios; None for a healthy stage, and where faults are assigned."""
        self.ledger: LedgerWriter | None = None
        if faults.ledger is not None:
            schedule = self.source.schedule if isinstance(self.source, FaultReplay) else self.source
            self.ledger = LedgerWriter(
                faults.ledger,
                self.state,
                schedule if isinstance(schedule, FaultSchedule) else None,
                robot=Path(getattr(self.asset.cfg.spawn, "usd_path", asset_cfg.name)).stem,
                step_dt=env.step_dt,
            )
        # envs whose faults have changed since they were last written into physics
        self._pending = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
        global _newest
        _newest = weakref.ref(env)

    @property
    def schedule(self) -> FaultSchedule:
        """The schedule, of which a curriculum changes odds and level; raises UmcError for cases and replays."""
        if not isinstance(self.source, FaultSchedule):
            raise UmcError("the faults of this environment are cases or a replay; leave the fault curriculum out")
        return self.source

    @property
    def detector(self) -> Any:
        """The detector that reports faults to the policy; None for another source."""
        return self._detection if isinstance(self._detection, DetectorInEnv) else None

    def set_detection(self, cfg: DetectionCfg) -> None:
        """Change what reports faults to the policy from the next observation on; call it before a reset of all envs."""
        self._detection = make_detection(self._env, self.state, cfg)

    def prepare_limits(self) -> None:
        """Allow manual joint faults in a task without joint faults; raises UmcError if its joints cannot be limited."""
        if self.writer is None:
            self.writer = JointLimitWriter(self.asset)

    def inject_fault(self, env_id: int, joint: int, kind: str, severity: float, detected: bool | None = None) -> None:
        """Let a joint fail from the next step on, until the episode ends; see :func:`umc.faults.inject_fault`."""
        found = find_kind(kind)
        check_command_faults(self._env.cfg, [found], self.asset, self.asset_name)
        check_imu_sensors(self._env.cfg, [found])
        if isinstance(found, JointKind):
            self.prepare_limits()
        self._record_changes(env_id, inject_fault(self.state, env_id, joint, found, severity, detected))

    def clear_faults(self, env_id: int, joint: int | None = None) -> None:
        """End the faults of a joint, or of all, from the next step on; see :func:`umc.faults.clear_faults`."""
        self._record_changes(env_id, clear_faults(self.state, env_id, joint))

    def _record_changes(self, env_id: int, faults: list[int]) -> None:
        if self.ledger is not None and faults:
            self.ledger.record_changes(env_id, faults)

    def reset_faults(self, env_ids: torch.Tensor | slice) -> None:
        """Restore the physics of some envs and plan their next faults."""
        ids = torch.arange(self.num_envs, device=self.device)[env_ids if isinstance(env_ids, slice) else env_ids.long()]
        if self.source.has_faults and _limits_joints(self.source):
            self.prepare_limits()  # a curriculum of the user's may have raised odds that were 0
        if self.writer is not None:
            envs = torch.zeros_like(self._pending)
            envs.index_fill_(0, ids, True)  # envs[ids] = True would upload the number, and wait for the GPU
            self.writer.restore(envs)
        self._pending.index_fill_(0, ids, False)
        if self.log is not None:
            self.log.episodes_end(ids)
        self.state.reset(ids)
        if self.ledger is not None:
            self.ledger.record_plans(ids, cast("ManagerBasedRLEnv", self._env).episode_length_buf[ids])

    def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
        """Log falls and episode lengths by scenario; Isaac Lab calls this while it fills ``extras["log"]``."""
        entry = None if self.log is None else self.log.entry()
        if entry:
            self._env.extras["log"].update(entry)

    def advance(self) -> FaultState:
        """Switch faults on and off for observations of this env step; physics follows when the event manager calls.

        Every observation term calls this, and only the first call of an env step has an effect: observations of an
        episode's last step are computed before the event, and have to show a fault that sets in with that step.
        """
        step = cast("ManagerBasedRLEnv", self._env).episode_length_buf
        if not self.state.has_advanced(step):
            self._pending |= self.state.advance(step, self.asset.data.joint_pos.torch)
        return self.state

    def detect(self) -> Any:
        """Return what reports the faults of this env step: its ``joint_mask`` and ``fault_flag``."""
        state = self.advance()
        if self._detection is None:
            return state
        self._detection.update()
        return self._detection

    def __call__(self, env: ManagerBasedRLEnv, env_ids: torch.Tensor | None, **params: Any) -> None:
        """Switch due faults on and ended ones off."""
        self.advance()
        changed = self._pending
        if self.writer is not None and self.state.depends_on_torque:
            changed = changed | self.state.update_memory(self.asset.actuators.applied_effort.torch, self._env.step_dt)
        if known_empty(changed):
            return
        limits = None
        if self.writer is not None:
            limits = self.state.limits(self.writer.healthy)
            passive = any(isinstance(kind, JointKind) and kind.adds_passive for kind in self.state.kinds)
            self.writer.write(limits, changed, passive)
        if self.ledger is not None:
            self.ledger.record_switches(self._pending, limits)
        self._pending.fill_(False)


def _signature() -> inspect.Signature:
    """Parameters that Isaac Lab's managers check and Hydra's overrides may name."""
    defaults = {"asset_cfg": SceneEntityCfg("robot"), **{field.name: field.default for field in EVENT_FIELDS}}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = [inspect.Parameter(name, kind) for name in ("self", "env", "env_ids")]
    return inspect.Signature([*first, *(inspect.Parameter(name, kind, default=it) for name, it in defaults.items())])


cast("Any", joint_faults.__call__).__signature__ = _signature()


def _check_order(env_cfg: Any) -> None:
    """Raise UmcError unless :func:`reset_faults` is the first reset term, without which no episode has a plan."""
    terms = entries(env_cfg.events).values()
    funcs = [term.func for term in terms if isinstance(term, EventTermCfg) and term.mode == "reset"]
    first = string_to_callable(funcs[0]) if funcs and isinstance(funcs[0], str) else (*funcs, None)[0]
    if first is not reset_faults:
        raise UmcError(
            "umc.mdp.reset_faults is not the first reset event; put it first (FaultEventsCfg as the last of several "
            "base classes)"
        )


def _limits_joints(source: FaultSchedule | FaultCases | FaultReplay) -> bool:
    return any(isinstance(kind, JointKind) for kind in source.kinds)


def _has_fraction(value: Any) -> bool:
    """Return whether some severity is a part of a healthy limit."""
    if isinstance(value, Mapping):
        return FRACTION in value or any(_has_fraction(part) for part in value.values())
    return isinstance(value, list | tuple) and any(_has_fraction(part) for part in value)


def _plan_source(
    faults: FaultsCfg, env: ManagerBasedRLEnv, asset: Articulation, nominal: JointLimits | None
) -> FaultSchedule | FaultCases | FaultReplay:
    timing: dict[str, Any] = {"episode_length": env.max_episode_length, "device": env.device}
    if faults.replay is not None:
        if has_fault_curriculum(env.cfg):
            raise UmcError(
                "a replay has no curriculum; leave out fault_curriculum, agent.sample_failures and"
                " agent.severity_iterations"
            )
        return FaultReplay(faults.replay, asset.joint_names, step_dt=env.step_dt, **timing)
    return draw_source(asset.joint_names, faults, env.num_envs, nominal=nominal, **timing)


def newest_env() -> ManagerBasedRLEnv | None:
    """Return the last environment made with a ``faults`` event; None if there is none, or it has been closed."""
    env = None if _newest is None else _newest()
    return None if env is None or getattr(env, "_is_closed", True) else env


def reset_faults(env: ManagerBasedRLEnv, env_ids: torch.Tensor | slice) -> None:
    """Restore limits before other reset terms read them, and plan the next faults; has to be the first reset term."""
    fault_term(env).reset_faults(env_ids)
