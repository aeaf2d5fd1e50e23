# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Fault curricula: odds and severity of faults change while an agent trains."""

from collections.abc import Sequence
from typing import Any

from isaaclab.managers import CurriculumTermCfg
from isaaclab.utils import configclass

from umc import mdp
from umc.mdp.fault_terms import FAULTS_TERM
from umc.rl.agents import AgentSpec, Ratios
from umc.utils.errors import UmcError


@configclass
class FaultCurriculumCfg:
    """The ``curriculum`` of an environment whose faults change while it trains."""

    faults: CurriculumTermCfg | None = None
    failures: CurriculumTermCfg | None = None


def add_curriculum(
    env_cfg: Any, agent_cfg: Any, spec: AgentSpec, started: Sequence[tuple[int, Ratios]] = ()
) -> list[tuple[int, Ratios]]:
    """Give an env cfg the curricula of an agent and its options; return first env step and odds of each stage.

    A run that is prolonged keeps the stages that it ``started`` with, or it would go back to an earlier one.
    """
    growing, sampling = agent_cfg.severity_iterations, agent_cfg.sample_failures
    if not (spec.curriculum or growing or sampling):
        return []
    if env_cfg.curriculum is not None:
        raise UmcError("the task has a curriculum of its own; choose an agent, and agent.* options, without one")
    term = getattr(env_cfg.events, FAULTS_TERM, None)
    assigned = [] if term is None else [name for name in ("cases", "replay") if term.params.get(name) is not None]
    if assigned:
        raise UmcError(
            f"env.events.{FAULTS_TERM}.params.{assigned[0]} assigns all faults, which no curriculum changes; "
            "leave it out, or choose an agent, and agent.* options, without a curriculum"
        )
    if spec.curriculum and sampling:
        raise UmcError(f"{spec.name} chooses the odds of faults itself; leave agent.sample_failures out")
    steps = agent_cfg.num_steps_per_env
    iterations = agent_cfg.curriculum_iterations or agent_cfg.max_iterations
    if iterations < len(spec.curriculum):
        raise UmcError(
            f"{iterations} iterations cannot hold the {len(spec.curriculum)} stages of {spec.name}; "
            "give a higher --max_iterations, or agent.curriculum_iterations"
        )
    stages = list(started) or [(round(share * iterations) * steps, ratios) for share, ratios in spec.curriculum]
    params: dict[str, Any] = {"stages": stages} if stages else {}
    if growing:
        params["level_ramp"] = (0, growing * steps)
    terms: list[Any] = [mdp.fault_curriculum, mdp.failure_sampling]  # Isaac Lab takes a class and does not declare it
    env_cfg.curriculum = FaultCurriculumCfg(
        faults=CurriculumTermCfg(func=terms[0], params=params) if params else None,
        failures=CurriculumTermCfg(func=terms[1]) if sampling else None,
    )
    return stages
