# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Replays the faults of a ledger, so that two policies encounter the same ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import torch

from umc.faults.kinds import FaultKind, find_kind
from umc.faults.ledger import MANUAL_FAULT, Ledger, LedgerFault, read_ledger
from umc.faults.plan import NEVER, NO_SCENARIO, FaultPlan, empty_plan, widen_plan
from umc.faults.random import seed_word
from umc.faults.schedule import FaultSchedule, RandomKey
from umc.utils.errors import UmcError

_ROUNDING = 1.0e-5
"""Relative difference that the same draw may have on another device [-]."""

_KEY = 2**31
"""Envs and episodes are smaller."""

_MAX_NUMBERS = 500_000_000
"""Most severities in the memory of a replay."""


class FaultReplay:
    """Plans of a ledger: episode k of env i is planned as it was recorded, on any engine and device.

    An episode that the ledger does not hold (a policy that falls earlier starts more of them; a run of more envs) is
    drawn as the recording run would have drawn it. Joints are found by name. The length of an env step [s] and of an
    episode [env steps] are compared with the ledger's.

    Raises UmcError if the ledger cannot be read, or is one of another robot or timing.
    """

    def __init__(
        self,
        ledger: Ledger | str | Path,
        joint_names: Sequence[str],
        *,
        step_dt: float | None = None,
        episode_length: int | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        self.ledger = ledger if isinstance(ledger, Ledger) else read_ledger(ledger)
        header, path = self.ledger.header, self.ledger.path
        self.joint_names, self.device = tuple(joint_names), torch.device(device)
        if set(joint_names) != set(header.joint_names) or len(joint_names) != len(header.joint_names):
            unknown = sorted(set(header.joint_names) ^ set(joint_names))
            raise UmcError(
                f"the ledger {path} is one of another robot ('{header.robot}', {len(header.joint_names)} joints; this"
                f" one has {len(joint_names)}): one of them lacks {', '.join(unknown[:3])}; replay it on its own robot"
            )
        if step_dt is not None and header.step_dt is not None and not math.isclose(step_dt, header.step_dt):
            raise UmcError(
                f"the ledger {path} counts env steps of {header.step_dt:g} s, this environment takes {step_dt:g} s;"
                " set decimation and sim.dt as they were"
            )
        faults = (fault for one in self.ledger.episodes.values() for fault in one.faults)
        # a fault that was injected in the last env step never sets in
        last = max((fault.onset or 0 for fault in faults if fault.scenario.name != MANUAL_FAULT), default=0)
        if episode_length is not None and last >= episode_length:
            raise UmcError(
                f"the ledger {path} has an onset at step {last}, but episodes end at step {episode_length};"
                " raise episode_length_s"
            )
        self.seed, self.scenarios = header.seed, header.scenarios
        self.num_faults = max([header.num_faults, *(len(one.faults) for one in self.ledger.episodes.values())])
        self.kinds: tuple[FaultKind, ...] = ledger_kinds(self.ledger)
        self.joint_ids = torch.tensor([header.joint_names.index(name) for name in joint_names], device=self.device)
        """Number of each joint in the ledger. Shape is (J,)."""
        self.schedule = _schedule(self.ledger, self.device)
        """Draws what the ledger does not hold; None if it cannot be drawn again."""

        episodes = self.ledger.episodes
        size = len(episodes) * self.num_faults * max(len(self.kinds), 1) * len(self.joint_names)
        if size > _MAX_NUMBERS:
            raise UmcError(
                f"the ledger {path} has {len(episodes)} episodes of up to {self.num_faults} faults, too many to hold;"
                " record fewer"
            )
        keys = torch.tensor(list(episodes) or [(0, 0)], device=self.device)
        self._keys, self._order = (keys[:, 0] * _KEY + keys[:, 1]).sort()
        """Envs and episodes of the ledger in ascending order, and their rows. Shapes are (R,)."""
        if episodes:
            recorded = self._recorded([one.faults for one in episodes.values()])
        else:
            self._keys.fill_(-1)
            recorded = empty_plan(1, self.num_faults, len(self.kinds), len(self.joint_names), self.device)
        self._why_not = self._compare(keys)
        self._plan = _with_joints(recorded, self.joint_ids)
        self._draws: torch.Tensor | None = None
        """Seed, env and episode of random numbers by row; None if all are the episodes' own. Shape is (R, 3)."""
        if any(one.draws is not None for one in self.ledger.episodes.values()):
            draws = [one.draws or (self.seed, *key) for key, one in self.ledger.episodes.items()]
            draws = [(seed_word(seed), env, episode) for seed, env, episode in draws]
            self._draws = torch.tensor(draws, device=self.device)

    @property
    def has_faults(self) -> bool:
        """Whether any env can get a fault."""
        return bool(self._plan.joints.any()) or (self.schedule is not None and self.schedule.has_faults)

    def draw(self, env_ids: torch.Tensor, episode: torch.Tensor) -> FaultPlan:
        """Return the plans of some envs and episodes, int64 of shape (N,).

        Raises UmcError if the ledger does not hold one and it cannot be drawn again.
        """
        row = self._rows(env_ids, episode)
        missing = row < 0
        plan = self._plan.map(lambda column: column[row.clamp(min=0)])
        if not missing.any():
            return plan
        if self.schedule is None or self._why_not is not None:
            first = int(missing.nonzero()[0])
            raise UmcError(
                f"the ledger {self.ledger.path} holds no episode {int(episode[first])} of env {int(env_ids[first])},"
                f" and {self._why_not}; record more episodes, or replay fewer"
            )
        drawn = self._drawn(self.schedule, env_ids[missing], episode[missing])
        drawn = _with_joints(drawn, self.joint_ids)
        for column in fields(plan):
            getattr(plan, column.name)[missing] = getattr(drawn, column.name)
        return plan

    def random_key(self, env_ids: torch.Tensor, episode: torch.Tensor) -> RandomKey:
        """Return seed, env and episode that the recording run drew random numbers for, each of shape (N,)."""
        if self._draws is None:
            return self.seed, env_ids, episode
        row = self._rows(env_ids, episode)
        own = torch.stack((torch.full_like(env_ids, seed_word(self.seed)), env_ids, episode), dim=1)
        seed, env, number = torch.where(row[:, None] < 0, own, self._draws[row.clamp(min=0)]).unbind(1)
        return seed, env, number

    def _rows(self, env_ids: torch.Tensor, episode: torch.Tensor) -> torch.Tensor:
        """Return the rows of the ledger's episodes; -1 for those that it does not hold. Shape is (N,)."""
        keys = env_ids * _KEY + episode
        place = torch.searchsorted(self._keys, keys).clamp(max=len(self._keys) - 1)
        return torch.where((self._keys[place] == keys) & (episode >= 0), self._order[place], -1)

    def _recorded(self, plans: Sequence[Sequence[LedgerFault]]) -> FaultPlan:
        """Plans of the ledger, joints in its order."""
        header = self.ledger.header
        joint = {name: number for number, name in enumerate(header.joint_names)}
        kind = {one.name: number for number, one in enumerate(self.kinds)}
        # filled on the CPU, number by number
        plan = empty_plan(len(plans), self.num_faults, len(kind), len(joint), torch.device("cpu"))

        def fill(row: int, number: int, fault: LedgerFault) -> None:
            drawn = fault.scenario in header.scenarios
            plan.scenario[row, number] = header.scenarios.index(fault.scenario) if drawn else NO_SCENARIO
            if fault.onset is None:
                return
            joints = [joint[name] for name in fault.joints]
            plan.joints[row, number, joints] = True
            plan.placement[row, number, joints] = torch.tensor(list(fault.placement.values()))
            plan.detected[row, number] = fault.detected
            for name in ("onset", "end", "period", "on"):
                steps = getattr(fault, name)
                getattr(plan, name)[row, number] = NEVER if steps is None else steps
            for name, severity in fault.severity.items():
                plan.kinds[row, number, kind[name]] = True
                plan.severity[row, number, kind[name], joints] = torch.tensor(list(severity.values()))

        for row, faults in enumerate(plans):
            for number, fault in enumerate(faults):
                fill(row, number, fault)
        return plan.map(lambda column: column.to(self.device))

    def _compare(self, keys: torch.Tensor) -> str | None:
        """Why further episodes cannot be drawn; None if they can."""
        if self.ledger.changes:
            return "its faults followed a curriculum (fault_curriculum), so they depend on when they were drawn"
        if self.schedule is None:
            return "its faults were not drawn from a schedule"
        if not self.ledger.episodes:
            return None
        episodes = self.ledger.episodes.values()
        recorded = self._recorded([one.faults if one.drawn is None else one.drawn for one in episodes])
        drawn = canonical_plan(self._drawn(self.schedule, keys[:, 0], keys[:, 1]))
        same = all(
            torch.allclose(getattr(drawn, field.name).double(), getattr(recorded, field.name).double(), rtol=_ROUNDING)
            for field in fields(FaultPlan)
        )
        made = f"another version ({self.ledger.header.umc}) drew them, or they repeat manual ones"
        return None if same else f"its faults are not those that this UMC draws: {made}"

    def _drawn(self, schedule: FaultSchedule, env_ids: torch.Tensor, episode: torch.Tensor) -> FaultPlan:
        """Plans of the schedule, their kinds in the order of this replay, with room for manual faults."""
        names = [kind.name for kind in self.kinds]
        places = [names.index(kind.name) for kind in schedule.kinds]
        return widen_plan(schedule.draw(env_ids, episode), self.num_faults, len(names), places)


def canonical_plan(plan: FaultPlan) -> FaultPlan:
    """Return a plan as a ledger keeps it: with 0, False and :data:`NEVER` wherever nothing depends on the value."""
    has_fault = plan.joints.any(2) & plan.kinds.any(2)
    joints, kinds = plan.joints & has_fault[..., None], plan.kinds & has_fault[..., None]
    hit = joints[:, :, None] & kinds[..., None]
    return FaultPlan(
        scenario=plan.scenario,
        joints=joints,
        kinds=kinds,
        detected=plan.detected & has_fault,
        onset=torch.where(has_fault, plan.onset, NEVER),
        end=torch.where(has_fault, plan.end, NEVER),
        period=torch.where(has_fault, plan.period, NEVER),
        on=torch.where(has_fault & (plan.period != NEVER), plan.on, NEVER),
        severity=torch.where(hit, plan.severity, 0.0),
        placement=torch.where(joints, plan.placement, 0.0),
    )


def _with_joints(plan: FaultPlan, joint_ids: torch.Tensor) -> FaultPlan:
    changes = {name: getattr(plan, name)[..., joint_ids] for name in ("joints", "severity", "placement")}
    return replace(plan, **changes)


def ledger_kinds(ledger: Ledger) -> tuple[FaultKind, ...]:
    """Return the kinds of a ledger in the order in which they act.

    Raises UmcError for an unknown one or another unit.
    """
    found = []
    for name, unit in (ledger.header.kinds | ledger.more_kinds).items():
        try:
            kind = find_kind(name)
        except UmcError as error:
            raise UmcError(f"the ledger {ledger.path}: {error}, or register kind '{name}' before the replay") from error
        if kind.unit != unit:
            raise UmcError(
                f"the ledger {ledger.path} gives '{name}' in {unit}, this UMC in {kind.unit}; record it again"
            )
        found.append(kind)
    return tuple(sorted(found, key=lambda kind: (kind.rank, kind.name)))


def _schedule(ledger: Ledger, device: torch.device) -> FaultSchedule | None:
    header = ledger.header
    if header.schedule is None:
        return None
    try:
        schedule = FaultSchedule.from_settings(header.joint_names, header.schedule, device)
    except UmcError as error:
        raise UmcError(f"the schedule of the ledger {ledger.path} is invalid: {error}; record it again") from error
    # the ledger of a replay may hold kinds of manual faults only
    if schedule.scenarios != header.scenarios or not {kind.name for kind in schedule.kinds} <= set(header.kinds):
        raise UmcError(
            f"the schedule of the ledger {ledger.path} has other scenarios or kinds than its header; record it again"
        )
    schedule.changes = ledger.changes
    return schedule
