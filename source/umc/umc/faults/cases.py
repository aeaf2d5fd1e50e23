# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Deals several schedules out over envs, so that one simulation holds a whole grid of conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from inspect import signature
from typing import Any

import torch

from umc.faults.checks import check_mapping, is_list_of
from umc.faults.kinds import FaultKind
from umc.faults.plan import FaultPlan
from umc.faults.random import seed_word
from umc.faults.scenarios import Scenario
from umc.faults.schedule import FaultSchedule, Identity
from umc.utils.errors import UmcError

_KNOWN = frozenset(signature(FaultSchedule).parameters)
"""What a case can change."""


class FaultCases:
    """One schedule per case; every env meets one case as one of its members.

    A plan depends on (the case's seed, member) only, and so do the random numbers of noise and lost commands: member 3
    of a case breaks the same way in whatever env, batch or order it is simulated. Every episode of an env brings the
    same until :meth:`deal` is called again.

    Args:
        joint_names: All joints, in the order of observations.
        cases: What each case changes of the parameters of :class:`FaultSchedule`; ``joint_names`` in a case names
            the joints that can fail, and its severities come on top of the shared ones.
        num_envs: Number of envs.
        **common: Parameters that all cases share.

    Raises:
        UmcError: If there is no case, or one makes no sense.
    """

    def __init__(
        self, joint_names: Sequence[str], cases: Sequence[Mapping[str, Any]], num_envs: int, **common: Any
    ) -> None:
        if not is_list_of(lambda case: isinstance(case, Mapping), cases) or not cases:
            raise UmcError("cases must be a list of one or several mappings")
        kinds = list(dict.fromkeys(kind for case in cases for kind in _kinds_of(case, joint_names, common)))
        self.schedules = [_schedule(case, joint_names, {**common, "kinds": kinds}) for case in cases]
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
        number = torch.arange(num_envs, device=self.device)
        self.deal(number % len(cases), number // len(cases))

    @property
    def num_faults(self) -> int:
        """Most faults of an episode."""
        return max(schedule.num_faults for schedule in self.schedules)

    @property
    def breaks(self) -> bool:
        """Whether any env can get a fault."""
        return any(schedule.breaks for schedule in self.schedules)

    def typical_severity(self, kind: str, joint: int) -> float | None:
        """The middle of what the first case draws that knows the kind; see :meth:`FaultSchedule.typical_severity`.

        Args:
            kind: A kind of fault.
            joint: Number of the joint.

        Returns:
            Severity, in the kind's unit; None if no case draws any.
        """
        found = (schedule.typical_severity(kind, joint) for schedule in self.schedules)
        return next((severity for severity in found if severity is not None), None)

    def deal(self, case: torch.Tensor, member: torch.Tensor) -> None:
        """Says what each env meets from its next reset on; to be called right before it.

        Args:
            case: Number of the case, dtype int64. Shape is (E,).
            member: Which member of the case, dtype int64. Shape is (E,).
        """
        self.case, self.member = case.to(self.device), member.to(self.device)

    def draw(self, env_ids: torch.Tensor, episode: torch.Tensor) -> FaultPlan:
        """Plans of some envs.

        Args:
            env_ids: The envs, dtype int64. Shape is (N,).
            episode: Not used: every episode of an env is that of its member.

        Returns:
            The plans.
        """
        parts, order = [], []
        for number, schedule in enumerate(self.schedules):
            mine = (self.case[env_ids] == number).nonzero().squeeze(1)
            if not len(mine):
                continue
            plan = schedule.draw(self.member[env_ids[mine]], torch.zeros_like(mine))
            parts.append(_widen(plan, self._scenario_ids[number][plan.scenario], self.num_faults))
            order.append(mine)
        place = torch.cat(order).argsort()
        return FaultPlan(
            **{
                field.name: torch.cat([getattr(part, field.name) for part in parts])[place]
                for field in fields(FaultPlan)
            }
        )

    def identity(self, env_ids: torch.Tensor, episode: torch.Tensor) -> Identity:
        """Says what random numbers are drawn for: env and episode do not count, nor how often an env was reset.

        Args:
            env_ids: The envs, dtype int64. Shape is (N,).
            episode: Not used, as for plans.

        Returns:
            The case's seed, and the member as the env, in episode 0: what the case's schedule alone would draw for.
        """
        return self._seeds[self.case[env_ids]], self.member[env_ids], torch.zeros_like(env_ids)


def _widen(plan: FaultPlan, scenario: torch.Tensor, num_faults: int) -> FaultPlan:
    """Adds faults that never set in, so that all plans have the same shape."""
    values = {field.name: getattr(plan, field.name) for field in fields(FaultPlan)} | {"scenario": scenario}
    missing = num_faults - scenario.shape[1]
    if missing:
        # a repeated fault without joints does nothing
        values = {
            name: torch.cat([value, value[:, :1].expand(-1, missing, *value.shape[2:])], dim=1)
            for name, value in values.items()
        }
        values["joints"] = values["joints"].clone()
        values["joints"][:, -missing:] = False
    return FaultPlan(**values)


def _schedule(case: Mapping[str, Any], joint_names: Sequence[str], common: Mapping[str, Any]) -> FaultSchedule:
    own = dict(case)
    unknown = [name for name in own if name not in _KNOWN]
    if unknown:
        raise UmcError(f"a case has no parameter '{unknown[0]}'; see umc.faults.FaultSchedule for those it has")
    if "joint_names" in own:
        own["candidates"] = own.pop("joint_names")
    own["severity"] = {
        **check_mapping("severity", common.get("severity")),
        **check_mapping("severity", own.get("severity")),
    }
    return FaultSchedule(joint_names, **{**common, **own})


def _kinds_of(case: Mapping[str, Any], joint_names: Sequence[str], common: Mapping[str, Any]) -> list[str]:
    return [kind.name for kind in _schedule(case, joint_names, common).kinds]
