# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A picture of a task's robot as it stands without a policy: ``python -m tools.portrait UMC-H1-Stage1``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from umc.evaluation.session import USAGE_ERROR
from umc.utils.errors import UmcError

SIZE = 800
"""Width and height of what the camera sees [px]."""

CROP = (160, 144, 640, 624)
"""The part of it that holds the robot: left, upper, right and lower edge [px]."""

SETTLED = 30
"""Env steps after which it is taken: 0.6 s, when the robot has met the ground; the humanoids fall a second later."""


def take(task: str, path: Path, overrides: Sequence[str] = ()) -> None:
    """Let the robot of a task stand on its default pose and write a picture of it."""
    import torch
    from isaaclab.envs import ManagerBasedRLEnv
    from umc.evaluation.conditions import make_calm, set_healthy
    from umc.mdp import fault_state
    from umc.rendering.camera import CAMERA, FollowCamera, camera_cfg
    from umc.rendering.writers import write_png
    from umc.tasks.registry import checked_task
    from umc.training.task_cfg import resolve_cfgs

    torch.set_num_threads(1)
    env_cfg, _ = resolve_cfgs(checked_task(task), None, list(overrides))
    env_cfg.sim.device = "cpu"
    make_calm(env_cfg, (0.0, 0.0, 0.0), 1, SETTLED, seed=1)
    set_healthy(env_cfg)
    for name, term in vars(env_cfg.terminations).items():
        if hasattr(term, "func"):
            setattr(env_cfg.terminations, name, None)
    env_cfg.events.reset_joints.params["position_range"] = (1.0, 1.0)
    env_cfg.events.reset_base.params.update(pose_range={}, velocity_range={})
    setattr(env_cfg.scene, CAMERA, camera_cfg(SIZE, SIZE))
    env = ManagerBasedRLEnv(env_cfg)
    env.reset()
    camera = FollowCamera(env, fault_state(env), "front")
    for _ in range(SETTLED):
        env.step(torch.zeros(1, env.action_manager.total_action_dim))
        camera.follow()
        frame = camera.render()
    left, upper, right, lower = CROP
    write_png(path, frame[upper:lower, left:right])


def main() -> int:
    """Take the picture that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.portrait", description=__doc__)
    parser.add_argument("task", help="id of the task")
    parser.add_argument("--out", type=Path, required=True, help="PNG to write")
    options, overrides = parser.parse_known_args()
    try:
        take(options.task, options.out, overrides)
    except UmcError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE_ERROR
    print(f"picture: {options.out}")
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # the teardown of an engine may hang
