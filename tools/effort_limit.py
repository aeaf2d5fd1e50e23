# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Measure whether an engine's own effort limit of a joint acts on applied torques: ``python -m tools.effort_limit``.

Three A1 hold their default pose. The first is healthy, the second has a limit of 0.05 N*m in the engine, as Isaac Gym
programs set one, the third the same limit as UMC's torque fault. A robot whose limit acts collapses. See
docs/results.md, "Two readings of the torque limit".
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from umc.utils.cli import Parser, run_main

LIMIT = 0.05
"""Effort limit [N*m]; A1 stands with up to 5 N*m."""

STEPS = 100
"""Env steps of 0.02 s."""

ROBOTS = ("healthy", "the engine's limit", "UMC's torque fault")


def main(argv: Sequence[str]) -> int:
    """Print trunk height and largest applied torque of the three robots."""
    parser = Parser(prog="python -m tools.effort_limit", description=(__doc__ or "").split(":")[0])
    parser.add_argument("--physics", choices=["ovphysx", "newton_mjwarp"], default="ovphysx")
    for name, height, torque in measure(parser.parse_args(argv).physics):
        print(f"{name}: trunk at {height:.3f} m, at most {torque:.2f} N*m applied", flush=True)
    return 0


def measure(physics: str) -> list[tuple[str, float, float]]:
    """Return trunk height [m] and largest applied torque [N*m] of every robot, with its name."""
    import torch
    from isaaclab.envs import ManagerBasedRLEnv
    from umc.mdp import FaultInjector
    from umc.utils.naming import load_tasks

    from tools.docs_figures import exact_cfg

    torch.set_num_threads(1)
    load_tasks()
    overrides = [f"physics={physics}", "env.scene.terrain=flat"]
    env = ManagerBasedRLEnv(exact_cfg("UMC-A1-Stage1", overrides, len(ROBOTS), 5 * STEPS))
    env.reset()
    robot: Any = env.scene["robot"]
    second = torch.tensor([1], dtype=torch.int32)
    robot.write_joint_effort_limit_to_sim_index(limits=torch.full((1, robot.num_joints), LIMIT), env_ids=second)
    injector = FaultInjector(env)
    for joint in injector.joint_names:
        injector.inject(2, joint, "effort", LIMIT)
    for _ in range(STEPS):
        env.step(torch.zeros(env.num_envs, robot.num_joints))
    heights = robot.data.root_pos_w.torch[:, 2].tolist()
    torques = robot.actuators.applied_effort.torch.abs().amax(dim=1).tolist()
    env.close()
    return list(zip(ROBOTS, heights, torques, strict=True))


if __name__ == "__main__":
    sys.exit(run_main(main, sys.argv[1:]))
