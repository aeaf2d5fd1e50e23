# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults for a task that is not UMC's: Isaac Lab's own Go2 velocity task.

``./isaaclab.sh -p examples/go2_faults.py`` lets four robots act at random and prints which joint of which robot breaks,
and what the fault does to it. ``go2_train.py`` beside it trains on the same task.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

KINDS = ("effort", "velocity", "rom", "dead")
"""Faults of the robots, one kind each, in turn."""

FIRST_JOINT = 12
"""Column of the first joint position in the observation."""


def faulty_go2(**changes: Any) -> Any:
    """Return Isaac Lab's flat Go2 task with faults; ``changes`` are parameters of the faults."""
    from isaaclab_tasks.core.velocity.config.go2.flat_env_cfg import UnitreeGo2FlatEnvCfg
    from umc import mdp
    from umc.tasks.offline import make_offline

    cfg: Any = UnitreeGo2FlatEnvCfg()
    for line in make_offline(cfg):  # leave it out where Isaac Lab's asset server can be reached
        print(f"offline: {line}")
    faults = {
        "severity": {"rom": 0.3, "effort": 5.0, "velocity": {"uniform": [2.0, 4.0]}},  # [-], [N*m], [rad/s]
        "num_joints": (1, 3),
        "onset_range": (25, 125),  # [env steps]
    }
    mdp.add_faults(cfg, **{**faults, **changes})
    return cfg


def make(cfg: Any, physics: str, num_envs: int) -> Any:
    """Make the environment as Isaac Lab's commands do, without its tables."""
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab_tasks.utils import resolve_presets
    from umc.tasks.device import DEFAULT_DEVICE
    from umc.utils.console import filter_physx_messages, ignore_known_warnings, quiet

    cfg = resolve_presets(cfg, [physics])
    cfg.scene.num_envs, cfg.sim.device, cfg.seed = num_envs, DEFAULT_DEVICE, 0
    print(f"starting {num_envs} robots on {physics} ...", flush=True)
    ignore_known_warnings()
    filter_physx_messages(cfg, cfg.sim.device)
    with quiet():
        return ManagerBasedRLEnv(cfg)


def measure(env: Any, steps: int) -> dict[str, Any]:
    """Act at random; return what every joint did in each step, by kind of fault: (steps, envs, joints)."""
    import torch
    from umc import mdp

    robot, state = env.scene["robot"], mdp.fault_state(env)
    rows: dict[str, list[torch.Tensor]] = {kind: [] for kind in KINDS}
    known = state.live.clone()
    for _ in range(steps):
        obs = env.step(torch.randn(env.num_envs, len(state.joint_names), device=env.device))[0]["policy"]
        rows["effort"].append(robot.actuators.applied_effort.torch.abs().clone())
        rows["velocity"].append(robot.data.joint_vel.torch.abs().clone())
        rows["rom"].append(robot.data.joint_pos_limits.torch.diff(dim=-1).squeeze(-1).clone())
        rows["dead"].append(obs[:, FIRST_JOINT : FIRST_JOINT + len(state.joint_names)].abs().clone())
        for number, kind, joint in (state.live & ~known).nonzero().tolist():
            severity = f"{state.severity[number, kind, joint].item():.3g} {state.kinds[kind].unit}"
            fault = "dead" if state.kinds[kind].name == "dead" else f"{state.kinds[kind].name} {severity}"
            print(f"step {int(state.step[number]):>3}: robot {number}, {state.joint_names[joint]}: {fault}", flush=True)
        known = state.live.clone()
    return {kind: torch.stack(values) for kind, values in rows.items()}


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description="Break joints of Isaac Lab's Go2; print which, when and what follows.")
    parser.add_argument("--steps", type=int, default=200, help="env steps")
    parser.add_argument("--num_envs", type=int, default=4, help="number of robots")
    parser.add_argument("--physics", default="ovphysx", choices=("newton_mjwarp", "ovphysx"), help="engine")
    args = parser.parse_args()
    if min(args.steps, args.num_envs) < 1:
        parser.error("--steps and --num_envs must be at least 1")
    print("loading Isaac Lab ...", flush=True)
    from umc import mdp

    cfg = faulty_go2(scenario=list(KINDS))
    cfg.terminations.base_contact = None  # a robot that has fallen goes on
    env = make(cfg, args.physics, args.num_envs)
    env.reset()
    state = mdp.fault_state(env)
    for number, fails in enumerate(state.joints.tolist()):
        joints = [name for name, one in zip(state.joint_names, fails, strict=True) if one]
        print(f"robot {number}: {KINDS[number % len(KINDS)]} at step {int(state.onset[number])}: {', '.join(joints)}")
    rows = measure(env, min(args.steps, env.max_episode_length - 1))
    titles = ("largest torque [N*m]", "largest speed [rad/s]", "range of motion [rad]", "largest position read [rad]")
    print(f"\n{'robot':<7}{'joint':<17}{'':<29}{'before':>7}{'after':>7}")
    for number, kind, joint in state.live.nonzero().tolist():
        name, start = state.kinds[kind].name, int(state.onset[number])
        seen = rows[name][:, number, joint]
        if start >= len(seen):  # it began in the last step
            continue
        before, after = seen[: start - 1].max().item(), seen[start:].max().item()
        title = titles[KINDS.index(name)]
        print(f"{number:<7}{state.joint_names[joint]:<17}{title:<29}{before:7.2f}{after:7.2f}")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # closing an engine may hang
