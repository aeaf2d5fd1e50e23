# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A project of your own: a robot, two kinds of faults and a model that UMC does not have."""

from umc.rl.agents import AgentSpec
from umc.tasks.registration import register_agent, register_robot

from . import faults

register_robot("Solo12", "my_extension.task")

register_agent(
    AgentSpec("residual_mlp", network="residual_mlp", purpose="MLP with skip connections", stage1="residual_mlp"),
    "my_extension.model:RESIDUAL_MLP",
)

__all__ = ["faults"]
