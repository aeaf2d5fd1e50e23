# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Policies in a simulation that a notebook or a script steps itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

    from umc.rl.policy import Policy


def open_policies(
    *checkpoints: str, overrides: Sequence[str] = (), seed: int = 0, size: tuple[int, int] = (320, 220)
) -> tuple[ManagerBasedRLEnv, list[Policy]]:
    """Start a simulation of one healthy robot and load policies for it.

    Noise, pushes and changing commands are off, and nothing fails until :class:`umc.mdp.FaultInjector` breaks a joint.
    :class:`umc.rendering.camera.FollowCamera` films the robot.

    Args:
        checkpoints: Policies of one robot, as ``--checkpoint`` takes them, such as ``pretrained:a1_mlp_stage2``.
        overrides: Overrides of the env cfg, such as ``env.scene.terrain=flat``.
        seed: Seed of the start.
        size: Width and height of the camera's pictures [px].
    """
    from umc.utils.console import filter_physx_messages, ignore_known_warnings, quiet
    from umc.utils.naming import load_tasks

    ignore_known_warnings()
    with quiet():
        load_tasks()  # before anything that starts Warp, which has something to say on machines without a GPU
        import gymnasium as gym

        from umc.evaluation.arguments import parse
        from umc.evaluation.conditions import disable_training_randomization
        from umc.evaluation.protocol import protocol_for
        from umc.evaluation.session import prepare
        from umc.rendering.camera import CAMERA, camera_cfg

        options, tokens = parse([*overrides, "--checkpoint", *checkpoints], lambda _: None)
        session = prepare(options, tokens, stage=1)
        filter_physx_messages(session.env_cfg, session.device)
        protocol = protocol_for(session.info.robot)
        disable_training_randomization(session.env_cfg, protocol.command, 1, protocol.steps, seed)
        setattr(session.env_cfg.scene, CAMERA, camera_cfg(*size))
        env: Any = gym.make(session.task, cfg=session.env_cfg)
        return env.unwrapped, [one.load(env.unwrapped) for one in session.checkpoints]
