# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Shows and changes the faults of a running env joint by joint, for the viewer's and the Kit panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch

from umc.faults import CommandKind, FaultKind, JointLimits, find_kind
from umc.faults.kinds import KINDS, ImuKind
from umc.faults.manual import check_env
from umc.faults.severity import LARGEST_LIMIT, Severities
from umc.mdp.actions import CommandFaultsCfg
from umc.mdp.events import newest_env
from umc.mdp.fault_terms import fault_term
from umc.mdp.imu import has_imu_sensor
from umc.mdp.observations import entries
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedRLEnv

TYPICAL_PART = 0.3
"""Part of the healthy value that a severity starts with where the task names none: the paper's range of motion [-]."""

LEAST_PART = 0.01
"""Smallest part of the healthy value that a panel offers [-]; 0 would be another kind of fault."""

_RANGES: dict[str, tuple[float, float, float]] = {
    "braking": (0.1, 10.0, 3.0),
    "dead": (-1.0, 1.0, 0.0),
    "bias": (-0.5, 0.5, 0.3),
    "drift": (-1.0, 1.0, 0.4),
    "noise": (0.005, 0.3, 0.1),
    "imu_bias": (0.05, 3.0, 0.5),
    "imu_drift": (0.01, 1.0, 0.2),
    "dropped": (0.05, 1.0, 0.8),
    "delayed": (1.0, 10.0, 5.0),
    "burst_loss": (1.0, 50.0, 10.0),
    "growing_delay": (0.01, 1.0, 0.1),
    "backlash": (0.01, 1.0, 0.3),
}
"""Least, most and initial severity of kinds that have no healthy value, in the kind's unit. The initial one is that of
the pictures in docs/faults.md; the ends are what is just visible, and what no robot walks with."""


@dataclass(frozen=True)
class JointRow:
    """Faults of a joint now."""

    joint: str
    kinds: tuple[str, ...]
    """Kinds of faults that are on; none if it is healthy."""
    severities: tuple[float, ...]
    """Severity of each, in the kind's unit; 0 for a kind that has none."""
    severity: str
    """The severities with units, as text."""
    detected: bool
    since: float | None
    """Onset of the oldest of them since the episode's start [s]; None if it is healthy."""
    link: str
    """Name of the body that the joint moves."""
    fault_probability: tuple[float, float] | None = None
    """Probabilities of a sensor fault and of a joint fault as the detector says; None where none watches."""


@dataclass(frozen=True)
class SeverityRange:
    """Severities that a panel offers, in the kind's unit."""

    low: float
    high: float
    initial: float
    unit: str
    """The unit, without brackets."""


class FaultInjector:
    """Faults of a running environment, or of a wrapper around it, joint by joint.

    A manual fault sets in with the next env step and ends when it is cleared or at the episode's end; later draws do
    not change. Ledger, physics, mask and flag follow. On Newton with a CUDA graph, make the injector before the first
    step. Raises UmcError if the environment has no fault terms, or its joints cannot be limited.
    """

    def __init__(self, env: Any) -> None:
        self._env: ManagerBasedRLEnv = getattr(env, "unwrapped", env)
        self._term = fault_term(self._env)
        self._term.prepare_limits()
        self._state = self._term.state
        self._links: tuple[str, ...] | None = None

    @property
    def joint_names(self) -> tuple[str, ...]:
        """All joints of the robot, in its order."""
        return self._state.joint_names

    @property
    def num_envs(self) -> int:
        """Number of envs."""
        return self._state.num_envs

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of faults that :meth:`inject` takes; those of commands and the IMU only if the task applies them."""
        left_out: list[type[FaultKind]] = []
        if not any(isinstance(term, CommandFaultsCfg) for term in entries(self._env.cfg.actions).values()):
            left_out.append(CommandKind)
        if not has_imu_sensor(self._env.cfg):
            left_out.append(ImuKind)
        return tuple(name for name, kind in sorted(KINDS.items()) if not isinstance(kind, tuple(left_out)))

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the bodies that the joints move, in the order of joints."""
        if self._links is None:
            self._links = _links(self._env, self._term.asset_name, self.joint_names)
        return self._links

    def rows(self, env_id: int) -> list[JointRow]:
        """Return one row per joint of an env, in their order; raises UmcError if there is no such env."""
        state = self._state
        check_env(state, env_id)
        live, severity = state.live[env_id].tolist(), state.severity[env_id].tolist()
        detected = state.detected[env_id].tolist()
        onset = state.joint_onset[env_id].tolist()
        rows = []
        watching = self._term.detector
        fault_probability = None if watching is None else watching.faulty[env_id].tolist()
        for joint, name in enumerate(self.joint_names):
            on = [number for number in range(len(state.kinds)) if live[number][joint]]
            texts = [severity_text(state.kinds[number], severity[number][joint]) for number in on]
            rows.append(
                JointRow(
                    joint=name,
                    kinds=tuple(state.kinds[number].name for number in on),
                    severities=tuple(severity[number][joint] for number in on),
                    severity=", ".join(text for text in texts if text),
                    detected=detected[joint],
                    since=onset[joint] * self._env.step_dt if on else None,
                    link=self.links[joint],
                    fault_probability=None if fault_probability is None else tuple(fault_probability[joint]),
                )
            )
        return rows

    def severity_range(self, joint: str, kind: str) -> SeverityRange | None:
        """Return the severities to offer for a joint and kind; None for a kind that has none.

        Raises UmcError for unknown ones.
        """
        column, found = self._column(joint), find_kind(kind)
        if not found.unit:
            return None
        unit = found.unit.strip("[]")
        reference = found.severity_reference(self._nominal)
        if reference is not None:
            healthy = float(torch.as_tensor(reference).expand(len(self.joint_names))[column])
            if 0.0 < healthy < LARGEST_LIMIT:
                first = self._drawn(found, column) or TYPICAL_PART * healthy
                return SeverityRange(min(LEAST_PART * healthy, first), max(healthy, first), first, unit)
        low, high, usual = _RANGES[kind] if kind in _RANGES else _usual_range(found)
        first = self._drawn(found, column) or usual
        return SeverityRange(min(low, first), max(high, first), first, unit)

    def inject(
        self, env_id: int, joint: str, kind: str, severity: float | None = None, detected: bool | None = None
    ) -> None:
        """Inject a fault from the next step on; a second fault of the same kind replaces the first.

        It counts from the onset of the first: under a new rate, a drift is where this rate would have taken it.
        ``severity`` is in the kind's unit (default: the initial one of :meth:`severity_range`); ``detected`` is by
        default the paper's: when the joint also has a dead sensor. Raises UmcError for an unknown env, joint or kind,
        a severity out of range, or a fault that would have no effect on the joint, for want of a limit.
        """
        column, found = self._column(joint), find_kind(kind)
        if severity is None:
            bounds = self.severity_range(joint, kind)
            severity = 0.0 if bounds is None else bounds.initial
        Severities(found, float(severity), self.joint_names, [column], self._nominal, self._state.device)  # checks it
        self._term.inject_fault(env_id, column, kind, float(severity), detected)

    def clear(self, env_id: int, joint: str | None = None) -> None:
        """Clear the faults of a joint, or of all, from the next step on; those that have yet to set in stay planned."""
        self._term.clear_faults(env_id, None if joint is None else self._column(joint))

    @property
    def _nominal(self) -> JointLimits:
        """Limits of healthy joints. Shapes are (J,)."""
        writer = self._term.writer
        assert writer is not None  # the constructor has made it
        return writer.nominal

    def _drawn(self, kind: FaultKind, column: int) -> float | None:
        """Return the middle of the task's severities of a joint; None if it draws none."""
        typical = getattr(self._term.source, "typical_severity", None)
        drawn = None if typical is None else typical(kind.name, column)
        return None if drawn is None else float(f"{drawn:.6g}")  # a slider shows 0.9, not the float32 beside it

    def _column(self, joint: str) -> int:
        if joint not in self.joint_names:
            raise UmcError(f"the robot has no joint '{joint}'; choose from {', '.join(self.joint_names)}")
        return self.joint_names.index(joint)


def _usual_range(kind: FaultKind) -> tuple[float, float, float]:
    """Return the least, most and initial severity of somebody's kind: valid ones around the default, or above 0."""
    first = kind.default or 0.0
    if not kind.min_severity < first <= kind.max_severity:
        first = min(kind.min_severity + 1.0, 0.5 * (kind.min_severity + kind.max_severity))
    low, high = max(kind.min_severity, first - 1.0), min(kind.max_severity, first + 1.0)
    if low == kind.min_severity:  # which is no severity itself
        low += LEAST_PART * (high - low)
    return low, high, first


def newest_fault_injector() -> FaultInjector | None:
    """Return an injector of the environment that was made last; None if it has no fault terms or has been closed."""
    env = newest_env()
    return None if env is None else FaultInjector(env)


def severity_text(kind: FaultKind, severity: float) -> str:
    """Return a severity with its unit; empty for a kind that has none."""
    if not kind.unit:
        return ""
    unit = kind.unit.strip("[]")
    return f"{severity:.3g}" if unit == "-" else f"{severity:.3g} {unit}"


def _links(env: ManagerBasedRLEnv, asset_name: str, joint_names: tuple[str, ...]) -> tuple[str, ...]:
    """Read the bodies off the first env's stage, which every engine has."""
    from isaaclab.sim.utils import find_first_matching_prim
    from pxr import Usd, UsdPhysics

    path = cast("Articulation", env.scene[asset_name]).cfg.prim_path
    root: Any = find_first_matching_prim(path)
    found: dict[str, str] = {}
    if root:
        for prim in Usd.PrimRange(root, Usd.TraverseInstanceProxies()):
            joint: Any = UsdPhysics.Joint(prim)
            targets = joint.GetBody1Rel().GetTargets() if joint else []
            if targets:
                found[prim.GetName()] = targets[0].name
    missing = [name for name in joint_names if name not in found]
    if missing:
        raise UmcError(f"the stage holds no joint {missing[0]} below {path}: its links are unknown")
    return tuple(found[name] for name in joint_names)
