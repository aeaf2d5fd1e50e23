# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""An MLP for the critic of any actor: ``agent.mlp_critic=true``.

The paper's transformer has a critic of its own size, and the two cost the same. On a CPU an MLP of the paper's sizes
costs a tenth of it, so that nearly half of the learning is saved. The critic is gone when the policy walks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

KEY = "agent.mlp_critic"
"""The option as an override token names it."""

MLP_WEIGHTS = "core.layers."
"""What the names of an MLP's weights begin with."""


def exchange_critic(agent_cfg: Any) -> None:
    """Make the critic an MLP, in place, if the agent asks for it.

    ``hidden_dims`` of the critic, if any were given, are taken over; its other options are the MLP's.

    Args:
        agent_cfg: The agent's cfg.
    """
    if not getattr(agent_cfg, "mlp_critic", False):
        return
    from umc.rl.model_cfg import UmcMlpModelCfg

    before = agent_cfg.critic
    critic = UmcMlpModelCfg(joint_names=before.joint_names, joint_start=before.joint_start)
    critic.hidden_dims = list(before.hidden_dims) or critic.hidden_dims
    critic.obs_normalization = before.obs_normalization
    agent_cfg.critic = critic


def is_mlp(names: Iterable[str]) -> bool:
    """Whether a critic is an MLP, by the names of its weights."""
    return any(name.startswith(MLP_WEIGHTS) for name in names)


def needs_option(names: Iterable[str], agent_cfg: Any) -> bool:
    """Whether a run has to exchange its critic to take over another run's.

    Args:
        names: Names of the other critic's weights.
        agent_cfg: The agent's cfg.

    Returns:
        Whether the other is an MLP, and this one would be none.
    """
    from umc.rl.model_cfg import UmcMlpModelCfg

    return is_mlp(names) and not isinstance(agent_cfg.critic, UmcMlpModelCfg)
