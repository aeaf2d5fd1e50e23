# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Fault curricula: the odds of faults change while an agent trains."""

from dataclasses import MISSING
from typing import Any

from isaaclab.managers import CurriculumTermCfg
from isaaclab.utils import configclass

from umc import mdp
from umc.rl.agents import AgentSpec, Ratios
from umc.utils.errors import UmcError


@configclass
class FaultCurriculumCfg:
    """The ``curriculum`` of an environment whose odds of faults change while it trains."""

    faults: CurriculumTermCfg = MISSING  # pyright: ignore[reportAssignmentType]


def add_curriculum(env_cfg: Any, agent_cfg: Any, spec: AgentSpec) -> list[tuple[int, Ratios]]:
    """Give an env cfg the fault curriculum of an agent; return the first env step and the odds of each stage."""
    iterations = getattr(agent_cfg, "curriculum_iterations", 0) or agent_cfg.max_iterations  # skrl has no such field
    if iterations < len(spec.curriculum):
        raise UmcError(
            f"{iterations} iterations cannot hold the {len(spec.curriculum)} stages of {spec.name}; "
            "give a higher --max_iterations, or agent.curriculum_iterations"
        )
    if env_cfg.curriculum is not None:
        raise UmcError("the task has a curriculum of its own; choose an agent without one")
    steps = agent_cfg.num_steps_per_env
    stages = [(round(share * iterations) * steps, ratios) for share, ratios in spec.curriculum]
    term: Any = mdp.fault_curriculum  # Isaac Lab takes a class here and does not declare it
    env_cfg.curriculum = FaultCurriculumCfg(faults=CurriculumTermCfg(func=term, params={"stages": stages}))
    return stages
