# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Curriculum terms: odds and severity of faults over the course of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isaaclab.managers import ManagerTermBase
from isaaclab.utils.string import string_to_callable

from umc.faults.cfg import is_list_of, is_number
from umc.mdp.fault_terms import fault_term
from umc.mdp.observations import entries
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    import torch
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab.managers import CurriculumTermCfg


class fault_curriculum(ManagerTermBase):
    """Curriculum of the odds of scenarios and of the level of severity over the number of env steps.

    Plans are made at resets: new odds take effect in an env's next episode. The paper's curriculum (no fault,
    undetectable, sensor only, detectable) is a list of ratios.
    """

    def __init__(self, cfg: CurriculumTermCfg, env: ManagerBasedRLEnv) -> None:
        super().__init__(cfg, env)
        stages: Any = cfg.params.get("stages", ())
        if not is_list_of(lambda stage: is_list_of(lambda _: True, stage, 2) and _is_step(stage[0]), stages):
            raise UmcError(
                f"stages {stages} must list pairs of a first env step and ratios, such as [(0, (1, 0, 0, 0))]"
            )
        self._stages: list[tuple[int, Any]] = list(stages)
        firsts = [first for first, _ in self._stages]
        if firsts != sorted(set(firsts)):
            raise UmcError(f"the stages of a fault curriculum must start one after another; they start at {firsts}")
        for _, ratios in self._stages:
            fault_term(env).schedule.checked_ratios(ratios)
        self._ramp: Any = cfg.params.get("level_ramp")
        fits = is_list_of(_is_step, self._ramp, 2) and 0 <= self._ramp[0] < self._ramp[1]
        if self._ramp is not None and not fits:
            raise UmcError(f"level_ramp {self._ramp} must be a first and a later last env step, such as (0, 5000)")
        self._stage = -1

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_ids: Sequence[int] | torch.Tensor | slice,
        stages: Sequence[tuple[int, Sequence[float] | Mapping[str, float]]] = (),
        level_ramp: tuple[int, int] | None = None,
    ) -> dict[str, float]:
        """Set odds and level of the next plans, and return them for the log.

        ``stages`` are first env steps (``env.common_step_counter``) and ratios; ``level_ramp`` are the env steps
        between which the severity grows from nothing to its full measure.
        """
        step, schedule = env.common_step_counter, fault_term(env).schedule
        stage = sum(step >= first for first, _ in self._stages) - 1
        if stage != self._stage and stage >= 0:
            schedule.set_ratios(self._stages[stage][1])
        self._stage = stage
        if self._ramp is not None:
            first, last = self._ramp
            schedule.set_level(min(max((step - first) / (last - first), 0.0), 1.0))
        return {"stage": float(stage), "level": schedule.level}


def _is_step(value: Any) -> bool:
    """Return whether a value is an env step; floats such as 1e5 are, if they are whole."""
    return is_number(value) and value.is_integer()


class failure_sampling(ManagerTermBase):
    """Curriculum that draws a scenario the more often, the more robots fall in it.

    The scenario with the highest rate of falls keeps its odds, one without falls gets ``least`` of them. A resumed run
    measures anew.
    """

    def __init__(self, cfg: CurriculumTermCfg, env: ManagerBasedRLEnv) -> None:
        super().__init__(cfg, env)
        schedule = fault_term(env).schedule
        if schedule.ratios is None:
            raise UmcError("scenarios are assigned to envs here; leave failure_sampling out")
        self._odds: dict[str, float] = schedule.ratios
        self._counted = dict.fromkeys(self._odds, (0.0, 0.0))
        """Episodes and falls that the odds have taken into account, by scenario; older ones weigh half."""
        self._next = 0

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_ids: Sequence[int] | torch.Tensor | slice,
        least: float = 0.25,
        interval: int = 480,
    ) -> dict[str, float]:
        """Change the odds of the next plans every ``interval`` env steps, and return their shares for the log."""
        term = fault_term(env)
        if env.common_step_counter >= self._next and term.log is not None:
            self._next = env.common_step_counter + interval
            new = term.log.take_counts()
            for name, (episodes, falls) in self._counted.items():
                more = new.get(name, (0.0, 0.0))
                self._counted[name] = (0.5 * episodes + more[0], 0.5 * falls + more[1])
            rates = {name: falls / episodes if episodes else 0.0 for name, (episodes, falls) in self._counted.items()}
            most = max(rates.values())
            share = {name: least + (1.0 - least) * (rate / most if most else 1.0) for name, rate in rates.items()}
            term.schedule.set_ratios({name: odds * share[name] for name, odds in self._odds.items()})
        odds = term.schedule.ratios
        return {name: value / sum(odds.values()) for name, value in odds.items()}


CURRICULA = (fault_curriculum, failure_sampling)
"""Terms that change the odds of faults."""


def has_fault_curriculum(env_cfg: Any) -> bool:
    """Return whether an environment's cfg has one of :data:`CURRICULA`."""
    terms = entries(env_cfg.curriculum).values() if getattr(env_cfg, "curriculum", None) is not None else ()
    # a cfg that went through Hydra names its functions
    functions = [func for term in terms if (func := getattr(term, "func", None)) is not None]
    found = [string_to_callable(func) if isinstance(func, str) else func for func in functions]
    return any(isinstance(func, type) and issubclass(func, CURRICULA) for func in found)
