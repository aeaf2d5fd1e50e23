# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Film a recording of a training (:mod:`umc.training.video`): the robot is put where it was, step by step."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.evaluation.session import open_session, without_policy
from umc.mdp.fault_terms import FAULTS_TERM
from umc.rendering.film_cfg import FilmCfg
from umc.rendering.layout import Heading, Moment, Take
from umc.utils.io import read_torch

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv


def film_recording(options: argparse.Namespace, overrides: Sequence[str]) -> int:
    """Write the MP4 ``--out`` of the recording ``--recording``, and return 0."""
    from umc.rendering.camera import CAMERA, camera_cfg
    from umc.rendering.film import write_film
    from umc.utils.console import quiet

    cfg, recording = FilmCfg(), read_torch(options.recording)
    steps = len(recording["root_pose"])
    with quiet():
        session = without_policy(options, overrides, options.task)
    env_cfg = session.env_cfg
    env_cfg.scene.num_envs, env_cfg.seed = 1, 0
    getattr(env_cfg.events, FAULTS_TERM).params["ledger"] = None  # it is the training's
    setattr(env_cfg.scene, CAMERA, camera_cfg(*cfg.size))
    with open_session(session) as (env, _):
        take = replay(env, recording, cfg)
        heading = Heading(f"{session.task}, env step {recording['step']:,} of the training", steps, env.step_dt, None)
        write_film(Path(options.out), [take], heading, 1.0 / (env.step_dt * cfg.every))
    return 0


def replay(env: ManagerBasedRLEnv, recording: dict[str, Any], cfg: FilmCfg) -> Take:
    """Put the robot of env 0 where it was, step by step, and render it."""
    import torch

    from umc.mdp import fault_state
    from umc.rendering.camera import FollowCamera

    env.reset()
    state, take, robot = fault_state(env), Take("env 0"), env.scene["robot"]
    camera: FollowCamera | None = None
    start, before = torch.zeros(2), -1
    for number, (pose, joints) in enumerate(zip(recording["root_pose"], recording["joint_pos"], strict=True)):
        pose = pose.to(env.device)
        pose[:3] += env.scene.env_origins[0]
        robot.write_root_pose_to_sim_index(root_pose=pose[None])
        robot.write_joint_position_to_sim_index(position=joints[None].to(env.device))
        env.sim.forward()
        env.scene.update(dt=env.step_dt)
        state.live.copy_(recording["live"][number][None])
        episode_step = int(recording["episode_step"][number])
        camera = camera or FollowCamera(env, state, cfg.view)
        if episode_step <= before or number == 0:
            camera.restart()
            start = pose[:2].cpu()
        before = episode_step
        if number % cfg.every == 0:  # a clip of one step has a frame, too
            camera.follow()
            take.frames.append(camera.render())
            take.moments.append(Moment(number + 1, float((pose[:2].cpu() - start).norm())))
    return take
