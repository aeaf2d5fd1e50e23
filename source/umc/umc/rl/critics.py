# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Two variants of the critic, which the trained policy does not need.

``agent.critic_sees_faults=true``: a privileged critic that observes every fault. The return to come depends on what is
broken, and true joint positions hardly show that; the paper's critic observes true sensor values only.

``agent.mlp_critic=true``: an MLP, whatever the actor is. On a CPU an MLP of the paper's sizes costs a tenth of the
paper's transformer, which saves nearly half of the learning time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from umc.utils.errors import UmcError

if TYPE_CHECKING:
    import torch

LIVE_GROUP = "live_faults"
"""Observation group of :class:`umc.mdp.LiveFaultsCfg`."""

MLP_CRITIC_KEY = "agent.mlp_critic"
"""The option as an override token names it."""

MLP_WEIGHTS = "core.layers."
"""What the names of an MLP's weights start with."""


def add_privileged_faults(env_cfg: Any, agent_cfg: Any) -> None:
    """Add the faults to the critic's observations, in place, if ``agent_cfg.critic_sees_faults``."""
    if not agent_cfg.critic_sees_faults:
        return
    from umc.mdp import LiveFaultsCfg

    env_cfg.observations.live_faults = LiveFaultsCfg()
    others = [name for name in agent_cfg.obs_groups["critic"] if name != LIVE_GROUP]
    agent_cfg.obs_groups = {**agent_cfg.obs_groups, "critic": [*others, LIVE_GROUP]}


def widen_critic(given: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Extend a critic's weights to the shapes of ``wanted``, with new columns at the end that do nothing at first."""
    import torch

    result = {}
    for name, value in given.items():
        shape = wanted[name].shape if name in wanted else value.shape
        more = shape[-1] - value.shape[-1] if value.dim() else 0
        if value.dim() != len(shape) or value.shape[:-1] != shape[:-1] or more < 0:
            raise UmcError("agent.critic_sees_faults needs a Stage 1 of the same sizes; repeat its agent.* overrides")
        result[name] = torch.cat((value, _neutral_columns(name, value, more)), dim=-1) if more else value
    return result


def _neutral_columns(name: str, value: torch.Tensor, columns: int) -> torch.Tensor:
    """Make columns that change nothing: zero weights, and statistics that leave zeros and ones nearly as they are."""
    blank = value.new_zeros((*value.shape[:-1], columns))
    if name.endswith(".var"):
        return blank + 1
    # the same count as the other columns: no jump of the statistics at the first fault
    return blank + value.max() if name.endswith(".count") else blank


def use_mlp_critic(agent_cfg: Any) -> None:
    """Make the critic an MLP, in place, if ``agent_cfg.mlp_critic``; it keeps ``hidden_dims`` if any were given."""
    from umc.rl.model_cfg import UmcMlpModelCfg

    before = agent_cfg.critic
    if not agent_cfg.mlp_critic or isinstance(before, UmcMlpModelCfg):
        return
    critic = UmcMlpModelCfg(joint_names=before.joint_names, joint_start=before.joint_start)
    given = before.hidden_dims  # a model of one's own leaves the field MISSING
    critic.hidden_dims = list(given) if isinstance(given, Sequence) and given else critic.hidden_dims
    critic.obs_normalization = before.obs_normalization
    agent_cfg.critic = critic


def is_mlp_critic(names: Iterable[str]) -> bool:
    """Return whether a critic is an MLP, by the names of its weights; a network of one's own has others, too."""
    core = [name for name in names if name.startswith("core.")]
    return bool(core) and all(name.startswith(MLP_WEIGHTS) for name in core)


def needs_mlp_critic(names: Iterable[str], agent_cfg: Any) -> bool:
    """Return whether an agent has to switch to an MLP critic to load a critic with weights of these names."""
    from umc.rl.model_cfg import UmcMlpModelCfg

    return is_mlp_critic(names) and not isinstance(agent_cfg.critic, UmcMlpModelCfg)
