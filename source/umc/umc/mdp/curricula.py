# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Curriculum terms: odds and severity of faults over the course of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isaaclab.managers import ManagerTermBase
from isaaclab.utils.string import string_to_callable

from umc.mdp.fault_terms import fault_term
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
        self._stages: list[tuple[int, Any]] = list(cfg.params.get("stages", ()))
        firsts = [first for first, _ in self._stages]
        if firsts != sorted(set(firsts)):
            raise UmcError(f"the stages of a fault curriculum must start one after another; they start at {firsts}")
        self._ramp: Any = cfg.params.get("level_ramp")
        if self._ramp is not None and not 0 <= self._ramp[0] < self._ramp[1]:
            raise UmcError(f"level_ramp {self._ramp} must be a first and a later last env step")
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


def has_fault_curriculum(env_cfg: Any) -> bool:
    """Return whether an environment's cfg has a :class:`fault_curriculum` term."""
    terms = vars(env_cfg.curriculum).values() if getattr(env_cfg, "curriculum", None) is not None else ()
    # a cfg that went through Hydra names its functions
    functions = [func for term in terms if (func := getattr(term, "func", None)) is not None]
    return any((string_to_callable(func) if isinstance(func, str) else func) is fault_curriculum for func in functions)
