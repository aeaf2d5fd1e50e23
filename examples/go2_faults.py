# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults for a robot and a task that are not UMC's: Isaac Lab's own Go2 velocity task.

``./isaaclab.sh -p examples/go2_faults.py`` runs it with random actions and prints which joints break when.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

GO2_USD = Path(__file__).parents[1] / "tests" / "data" / "go2.usda"
"""Unitree Go2; the README beside it names its source."""


def faulty_go2() -> Any:
    """Return Isaac Lab's task with faults."""
    from umc import mdp

    cfg = stock_go2()

    # -------------------------------- five lines, for any robot and any manager-based task --------------------------
    mdp.add_faults(
        cfg,
        severity={"rom": 0.3, "effort": 5.0, "velocity": {"uniform": [2.0, 4.0]}},
        num_joints=(1, 3),
    )
    # ----------------------------------------------------------------------------------------------------------------
    return cfg


def stock_go2() -> Any:
    """Return Isaac Lab's flat Go2 task, with local files in place of its downloads."""
    from isaaclab_tasks.core.velocity.config.go2.flat_env_cfg import UnitreeGo2FlatEnvCfg
    from umc.terrains import FLAT_GROUND_CFG

    cfg: Any = UnitreeGo2FlatEnvCfg()
    cfg.scene.terrain = FLAT_GROUND_CFG
    cfg.scene.sky_light.spawn.texture_file = None
    cfg.commands.base_velocity.debug_vis = False
    cfg.scene.robot.spawn.usd_path = str(GO2_USD)
    cfg.scene.robot.joint_ordering = "physx"  # one order of joints on every engine
    cfg.rewards.feet_air_time.params["sensor_cfg"].body_names = ".*_calf"  # the feet of this file belong to the calves
    return cfg


def make(cfg: Any, physics: str, num_envs: int) -> Any:
    """Make an environment as Isaac Lab's commands do."""
    import umc.utils.patches
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab_tasks.utils import resolve_presets
    from umc.tasks.device import DEFAULT_DEVICE

    umc.utils.patches.apply()
    cfg = resolve_presets(cfg, [physics])
    cfg.scene.num_envs, cfg.sim.device = num_envs, DEFAULT_DEVICE
    return ManagerBasedRLEnv(cfg)


def print_changes(state: Any, known: Any) -> Any:
    """Print faults that differ from ``known``; return the current ones. Both have the shape (envs, kinds, joints)."""
    for env in (known != state.live).any(dim=(1, 2)).nonzero().flatten().tolist():
        now = {
            joint: [
                f"{kind.name} {state.severity[env, number, column].item():.3g} {kind.unit}".rstrip()
                for number, kind in enumerate(state.kinds)
                if state.live[env, number, column]
            ]
            for column, joint in enumerate(state.joint_names)
        }
        broken = "; ".join(f"{joint}: {', '.join(faults)}" for joint, faults in now.items() if faults)
        print(f"env {env}, episode {int(state.episode[env])}, step {int(state.step[env])}: {broken or 'all healthy'}")
    return state.live.clone()


def main() -> int:
    """Run the example; return the exit status."""
    parser = argparse.ArgumentParser(description="Break joints of Isaac Lab's Go2 and print which and when.")
    parser.add_argument("--steps", type=int, default=300, help="env steps")
    parser.add_argument("--num_envs", type=int, default=4, help="number of robots")
    parser.add_argument("--physics", default="newton_mjwarp", choices=("newton_mjwarp", "ovphysx"), help="engine")
    args = parser.parse_args()
    if min(args.steps, args.num_envs) < 1:
        parser.error("--steps and --num_envs must be at least 1")

    import torch
    from umc import mdp

    env = make(faulty_go2(), args.physics, args.num_envs)
    env.reset()
    state = mdp.fault_state(env)
    print(f"{args.num_envs} robots, {args.steps} steps of {env.step_dt:g} s; faults as they set in:")
    known = state.live.clone()
    for _ in range(args.steps):
        env.step(0.5 * torch.randn(args.num_envs, len(state.joint_names), device=env.device))
        known = print_changes(state, known)
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the teardown of an engine may hang
