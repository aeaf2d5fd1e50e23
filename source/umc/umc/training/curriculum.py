# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Gives an environment the fault curriculum of its agent."""

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


def curriculum_stages(spec: AgentSpec, iterations: int, num_steps_per_env: int) -> list[tuple[int, Ratios]]:
    """An agent's curriculum in env steps.

    Args:
        spec: The agent.
        iterations: Iterations that it is spread over, at least one a stage.
        num_steps_per_env: Env steps of an iteration.

    Returns:
        First env step of each stage, and its odds.

    Raises:
        UmcError: If they are too few to have every stage.
    """
    if iterations < len(spec.curriculum):
        raise UmcError(
            f"{iterations} iterations cannot hold the {len(spec.curriculum)} stages of {spec.name}; "
            "give a higher --max_iterations, or agent.curriculum_iterations"
        )
    return [(round(share * iterations) * num_steps_per_env, ratios) for share, ratios in spec.curriculum]


def add_curriculum(env_cfg: Any, stages: list[tuple[int, Ratios]]) -> None:
    """Lets the odds of an environment's faults change while it trains.

    Args:
        env_cfg: Env cfg; changed in place.
        stages: As from :func:`curriculum_stages`.

    Raises:
        UmcError: If the environment has a curriculum of its own.
    """
    if env_cfg.curriculum is not None:
        raise UmcError("the task has a curriculum of its own; choose an agent without one")
    term: Any = mdp.fault_curriculum  # Isaac Lab takes a class here and does not declare it
    env_cfg.curriculum = FaultCurriculumCfg(faults=CurriculumTermCfg(func=term, params={"stages": stages}))
