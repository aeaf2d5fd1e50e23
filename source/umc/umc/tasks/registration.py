# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""One call that registers a robot's task with all its agents."""

import gymnasium as gym

from umc.rl.agents import AGENTS, entry_point
from umc.rl.skrl.entry import skrl_entry


def register_task(robot: str, stage: int, package: str, env_cfg: str) -> None:
    """Registers ``UMC-<robot>-Stage<stage>`` with Isaac Lab's environment class and the agents of that stage.

    Args:
        robot: Name of the robot as it stands in the task id.
        stage: 1 (no faults) or 2 (all faults).
        package: Package that holds ``env_cfg`` and ``agents`` modules; imported when the task is made, not before.
        env_cfg: Name of the env cfg class.
    """
    agents = {
        entry_point(spec.name): f"{package}.agents:{spec.name}_stage{stage}"
        for spec in AGENTS.values()
        if stage in spec.stages
    }
    twins = {
        entry_point(spec.name, "skrl"): skrl_entry(agents[entry_point(spec.name)])
        for spec in AGENTS.values()
        if stage in spec.stages
    }
    gym.register(
        id=f"UMC-{robot}-Stage{stage}",
        entry_point="isaaclab.envs:ManagerBasedRLEnv",
        disable_env_checker=True,
        kwargs={
            "env_cfg_entry_point": f"{package}.env_cfg:{env_cfg}",
            "default_agent": "rsl_rl",
            # Isaac Lab's own commands look for this name
            "rsl_rl_cfg_entry_point": next(iter(agents.values())),
            **agents,
            **twins,
        },
    )
