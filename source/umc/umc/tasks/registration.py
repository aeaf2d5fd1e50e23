# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""One call that registers a robot's task with all its agents."""

import gymnasium as gym


def register_task(robot: str, stage: int, package: str, env_cfg: str) -> None:
    """Registers ``UMC-<robot>-Stage<stage>`` with Isaac Lab's environment class.

    Args:
        robot: Name of the robot as it stands in the task id.
        stage: 1 (no faults) or 2 (all faults).
        package: Package that holds ``env_cfg`` and ``agents`` modules; imported when the task is made, not before.
        env_cfg: Name of the env cfg class.
    """
    transformer = f"{package}.agents:{robot}TransformerStage{stage}Cfg"
    gym.register(
        id=f"UMC-{robot}-Stage{stage}",
        entry_point="isaaclab.envs:ManagerBasedRLEnv",
        disable_env_checker=True,
        kwargs={
            "env_cfg_entry_point": f"{package}.env_cfg:{env_cfg}",
            "default_agent": "rsl_rl",
            # Isaac Lab's own commands look for this name
            "rsl_rl_cfg_entry_point": transformer,
            "rsl_rl_transformer_cfg_entry_point": transformer,
            "rsl_rl_mlp_cfg_entry_point": f"{package}.agents:{robot}MlpStage{stage}Cfg",
        },
    )
