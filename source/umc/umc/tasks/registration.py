# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Register a robot's task with all its agents, or an agent with all robots."""

from typing import Any

import gymnasium as gym

from umc.rl.agents import AGENTS, EXTENSION_NETWORKS, AgentSpec
from umc.utils.errors import UmcError
from umc.utils.naming import LIBRARIES, TASK_NAME, entry_point, task_parts


def register_robot(robot: str, module: str) -> None:
    """Register ``UMC-<robot>-Stage1`` and ``-Stage2`` with Isaac Lab's environment class and all agents.

    The module has the env cfg classes ``<robot>Stage1EnvCfg`` and ``<robot>Stage2EnvCfg``, and as its ``__getattr__``
    the method ``cfg`` of a :class:`umc.tasks.ppo.RobotAgents`. It is imported when one of its cfgs is needed.
    """
    for stage in (1, 2):
        agents: dict[str, Any] = {}
        for spec in AGENTS.values():
            agents |= _entries(spec, robot.lower(), stage, module)
        gym.register(
            id=f"UMC-{robot}-Stage{stage}",
            entry_point="isaaclab.envs:ManagerBasedRLEnv",
            disable_env_checker=True,
            kwargs={
                "env_cfg_entry_point": f"{module}:{robot}Stage{stage}EnvCfg",
                "default_agent": "rsl_rl",
                # Isaac Lab's own commands look for this name
                "rsl_rl_cfg_entry_point": agents[entry_point(next(iter(AGENTS)))],
                **agents,
            },
        )


def register_agent(spec: AgentSpec, network: str) -> None:
    """Add an agent of your own to every robot: to the tasks that are registered, and to those that will be."""
    known = AGENTS.get(spec.name)
    if known not in (None, spec):
        raise UmcError(f"there is an agent named '{spec.name}' already; choose another name")
    own = EXTENSION_NETWORKS.get(spec.network)
    taken = own is None and any(other.network == spec.network for other in AGENTS.values())
    if taken or own not in (None, network):
        raise UmcError(f"there is a network named '{spec.network}' already; choose another name")
    AGENTS[spec.name] = spec
    EXTENSION_NETWORKS[spec.network] = network
    for task, registered in gym.registry.items():
        if TASK_NAME.fullmatch(task):
            module = registered.kwargs["env_cfg_entry_point"].split(":")[0]
            registered.kwargs.update(_entries(spec, *task_parts(task), module))


def _entries(spec: AgentSpec, robot: str, stage: int, module: str) -> dict[str, Any]:
    """Return what a task registers of an agent, one cfg for both libraries, if it is trained there."""
    if not spec.trains(robot, stage):
        return {}
    return dict.fromkeys(
        (entry_point(spec.name, library) for library in LIBRARIES), f"{module}:{spec.name}_stage{stage}"
    )
