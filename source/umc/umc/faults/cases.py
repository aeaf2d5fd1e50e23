# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Assigns several schedules to envs, so that one simulation holds a grid of conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import torch

from umc.faults.cfg import NOT_OF_ONE_SCHEDULE, FaultsCfg, check_mapping, faults_cfg, is_list_of
from umc.faults.kinds import FaultKind, JointLimits
from umc.faults.plan import FaultPlan, widen_plan
from umc.faults.random import seed_word
from umc.faults.scenarios import Scenario
from umc.faults.schedule import FaultSchedule, RandomKey
from umc.utils.errors import UmcError


class FaultCases:
    """One schedule per case; every env is assigned one case, of which it is one member.

    A plan depends on (the case's seed, member) only, and so do the random numbers of noise and lost commands: member 3
    of a case breaks the same way in whatever env, batch or order it is simulated. Every episode of an env repeats the
    same plan until :meth:`assign` is called again.

    Each case changes fields of ``faults``, a :class:`FaultsCfg`; its severities are added to the shared ones.
    ``environment`` is ``episode_length``, ``nominal`` and ``device`` of :class:`FaultSchedule`, and fields of
    ``faults`` as a shorthand. Raises UmcError if there is no case, or one is invalid.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        cases: Sequence[Mapping[str, Any]],
        num_envs: int,
        /,
        faults: FaultsCfg | None = None,
        **environment: Any,
    ) -> None:
        if not is_list_of(lambda case: isinstance(case, Mapping), cases) or not cases:
            raise UmcError("cases must be a list of one or several mappings")
        shared = {name: environment.pop(name) for name in _FIELDS if name in environment}
        cfgs = [_case_cfg(faults_cfg(faults, shared), case) for case in cases]
        kinds = [kind.name for cfg in cfgs for kind in FaultSchedule(joint_names, cfg, **environment).kinds]
        kinds = list(dict.fromkeys(kinds))
        self.schedules = [FaultSchedule(joint_names, cfg, **{**environment, "kinds": kinds}) for cfg in cfgs]
        first = self.schedules[0]
        self.joint_names = first.joint_names
        self.kinds: tuple[FaultKind, ...] = first.kinds
        self.joint_ids = first.joint_ids
        self.device = first.device
        self.seed = first.seed
        self._seeds = torch.tensor([seed_word(schedule.seed) for schedule in self.schedules], device=self.device)
        self.scenarios: tuple[Scenario, ...] = tuple(
            dict.fromkeys(scenario for schedule in self.schedules for scenario in schedule.scenarios)
        )
        self._scenario_ids = [
            torch.tensor([self.scenarios.index(scenario) for scenario in schedule.scenarios], device=self.device)
            for schedule in self.schedules
        ]
        self._plans: FaultPlan | None = None
        """Those of all envs, drawn once: a case and a member have one."""
        number = torch.arange(num_envs, device=self.device)
        self.assign(number % len(cases), number // len(cases))

    @property
    def num_faults(self) -> int:
        """Most faults of an episode."""
        return max(schedule.num_faults for schedule in self.schedules)

    @property
    def has_faults(self) -> bool:
        """Whether any env can get a fault."""
        return any(schedule.has_faults for schedule in self.schedules)

    def require_limits(self, nominal: JointLimits) -> None:
        """As :meth:`FaultSchedule.require_limits`, of all cases."""
        for schedule in self.schedules:
            schedule.require_limits(nominal)

    def typical_severity(self, kind: str, joint: int) -> float | None:
        """As :meth:`FaultSchedule.typical_severity`, of the first case that draws the kind, else of any."""

        def draws(schedule: FaultSchedule) -> bool:
            return any(kind in scenario.kinds for scenario in schedule.scenarios)

        drawn_first = sorted(self.schedules, key=draws, reverse=True)
        found = (schedule.typical_severity(kind, joint) for schedule in drawn_first)
        return next((severity for severity in found if severity is not None), None)

    def assign(self, case: torch.Tensor, member: torch.Tensor) -> None:
        """Assign a case and a member to each env from its next reset on; both int64 of shape (E,)."""
        self.case, self.member = case.to(self.device), member.to(self.device)
        self._plans = None

    def draw(self, env_ids: torch.Tensor, episode: torch.Tensor) -> FaultPlan:
        """Draw the plans of some envs, int64 of shape (N,); every episode of an env is that of its member."""
        if self._plans is None:
            self._plans = self._draw_all()
        return self._plans.map(lambda column: column[env_ids])

    def _draw_all(self) -> FaultPlan:
        """Draw the plans of all envs."""
        parts, order = [], []
        for number, schedule in enumerate(self.schedules):
            mine = (self.case == number).nonzero().squeeze(1)
            if not len(mine):
                continue
            plan = schedule.draw(self.member[mine], torch.zeros_like(mine))
            plan = replace(plan, scenario=self._scenario_ids[number][plan.scenario])
            parts.append(widen_plan(plan, self.num_faults, len(self.kinds), range(len(self.kinds))))
            order.append(mine)
        place = torch.cat(order).argsort()
        columns = {field.name: [getattr(part, field.name) for part in parts] for field in fields(FaultPlan)}
        return FaultPlan(**{name: torch.cat(values)[place] for name, values in columns.items()})

    def random_key(self, env_ids: torch.Tensor, episode: torch.Tensor) -> RandomKey:
        """Return the case's seed, the member as the env, and episode 0: what the case's schedule alone would."""
        return self._seeds[self.case[env_ids]], self.member[env_ids], torch.zeros_like(env_ids)


_FIELDS = tuple(field.name for field in fields(FaultsCfg))


def _case_cfg(shared: FaultsCfg, case: Mapping[str, Any]) -> FaultsCfg:
    if ignored := [name for name in NOT_OF_ONE_SCHEDULE if case.get(name) is not None]:
        raise UmcError(f"a case has no '{ignored[0]}' of its own; give it beside cases")
    severity = check_mapping("severity", shared.severity) | check_mapping("severity", case.get("severity"))
    return faults_cfg(shared, {**case, "severity": severity}, "a case has")


def draw_source(
    joint_names: Sequence[str], faults: FaultsCfg, num_envs: int, /, **environment: Any
) -> FaultSchedule | FaultCases:
    """Return what draws these faults: the cases if there are any, else one schedule."""
    if faults.cases is None:
        return FaultSchedule(joint_names, faults, **environment)
    return FaultCases(joint_names, faults.cases, num_envs, faults, **environment)


def try_faults(
    joint_names: Sequence[str], faults: FaultsCfg, episode_length: int | None, where: str
) -> FaultSchedule | FaultCases:
    """Draw an episode of a robot without a simulation, whose limits are 1: they scale severities alone.

    Raises UmcError, which names ``where`` they come from, for faults that it cannot have.
    """
    one, env = torch.ones(len(joint_names)), torch.zeros(1, dtype=torch.long)
    healthy = JointLimits(-one, one, one, one)
    try:
        source = draw_source(joint_names, faults, 1, episode_length=episode_length, nominal=healthy)
        source.draw(env, env)
    except (TypeError, OverflowError) as error:  # such as a word instead of a number
        raise UmcError(f"faults cannot be drawn with {where}: {error}; correct them") from error
    return source
