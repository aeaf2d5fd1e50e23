# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A critic that is told every fault: ``agent.critic_sees_faults=true``.

How much reward is still to come depends on what is broken, and true joint positions hardly say that. The critic is gone
when the policy walks, so it may know. The paper's reads true sensor values and is not told; the default is the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from umc.utils.errors import UmcError

if TYPE_CHECKING:
    import torch

LIVE_GROUP = "live_faults"
"""Observation group of :class:`umc.mdp.LiveFaultsCfg`."""


def inform_critic(env_cfg: Any, agent_cfg: Any) -> None:
    """Adds what is broken to what the critic reads, in place, if the agent asks for it.

    Args:
        env_cfg: The task's cfg.
        agent_cfg: The agent's.
    """
    if not getattr(agent_cfg, "critic_sees_faults", False):
        return
    from umc.mdp import LiveFaultsCfg

    env_cfg.observations.live_faults = LiveFaultsCfg()
    others = [name for name in agent_cfg.obs_groups["critic"] if name != LIVE_GROUP]
    agent_cfg.obs_groups = {**agent_cfg.obs_groups, "critic": [*others, LIVE_GROUP]}


def widened(given: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights of a critic for one that reads more columns after the same ones: the new ones do nothing at first.

    Args:
        given: Weights and observation statistics by name.
        wanted: Those of the critic that is to take them.

    Returns:
        Weights of the wanted shapes.

    Raises:
        UmcError: If the two differ in more than columns at the end.
    """
    import torch

    result = {}
    for name, value in given.items():
        shape = wanted[name].shape if name in wanted else value.shape
        more = shape[-1] - value.shape[-1] if value.dim() else 0
        if value.dim() != len(shape) or value.shape[:-1] != shape[:-1] or more < 0:
            raise UmcError("agent.critic_sees_faults needs a Stage 1 of the same sizes; repeat its agent.* overrides")
        result[name] = torch.cat((value, _first_guess(name, value, more)), dim=-1) if more else value
    return result


def _first_guess(name: str, value: torch.Tensor, columns: int) -> torch.Tensor:
    """Columns that change nothing: no weight, and statistics that leave zeros and ones nearly as they are."""
    blank = value.new_zeros((*value.shape[:-1], columns))
    if name.endswith(".var"):
        return blank + 1
    # as sure of it as of the others: no jump when the first fault sets in
    return blank + value.max() if name.endswith(".count") else blank
