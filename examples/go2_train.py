# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""From Isaac Lab's Go2 task to a policy that tolerates faults, on two CPU cores.

``python examples/go2_train.py --healthy --out logs/go2_healthy`` trains without faults;
``--load logs/go2_healthy/model.pt --out logs/go2_faults`` goes on with them; ``--evaluate CHECKPOINT CHECKPOINT``
compares the two under the same faults.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from go2_faults import faulty_go2, make

HEALTHY, MIXED, FAULTY = (1, 0, 0, 0), (3, 1, 1, 1), (0, 1, 1, 1)
"""Odds of episodes without fault, with dead sensors only, with detected and with undetected joint faults."""

GROUPS = {"actor": ["policy", "joint_mask", "fault_flag"], "critic": ["policy"]}
"""What the networks read: the actor also sees which sensors are dead, and whether a fault has been detected."""

SPEED = 0.5
"""Forward command of an evaluation [m/s]."""


def for_two_cores(cfg: Any) -> Any:
    """Make the task learnable from a million env steps: straight ahead, with rewards that pay for any progress."""
    from isaaclab.envs.mdp import is_alive
    from isaaclab.managers import RewardTermCfg, SceneEntityCfg
    from umc import mdp

    command, rewards, sensors = cfg.commands.base_velocity, cfg.rewards, cfg.observations.policy
    ahead, feet = {"command_name": "base_velocity"}, [f"{leg}_calf" for leg in ("FL", "FR", "RL", "RR")]
    contacts = SceneEntityCfg("contact_forces", body_names=feet, preserve_order=True)
    # one command, and starts from which the robot does not fall
    command.ranges.lin_vel_x, command.ranges.lin_vel_y, command.ranges.heading = (SPEED, SPEED), (0.0, 0.0), (0.0, 0.0)
    command.rel_standing_envs, cfg.events.push_robot = 0.0, None
    cfg.events.reset_base.params["pose_range"]["yaw"] = (0.0, 0.0)
    cfg.events.reset_robot_joints.params["position_range"] = (0.8, 1.2)
    # without `alive` the robot learns to fall at once, without the two after it to stand still
    rewards.alive = RewardTermCfg(func=is_alive, weight=0.5)
    rewards.progress = RewardTermCfg(func=mdp.commanded_progress, weight=3.0, params=ahead)
    rewards.trot = RewardTermCfg(func=mdp.diagonal_support, weight=1.0, params={"sensor_cfg": contacts})
    rewards.track_lin_vel_xy_exp.weight = 3.0
    rewards.feet_air_time.weight, rewards.feet_air_time.params["threshold"] = 1.0, 0.2
    rewards.base_height_l2.params["target_height"] = 0.33
    # observations of about the same size
    sensors.joint_vel.scale, sensors.base_ang_vel.scale = 0.05, 0.25
    return cfg


def runner(env: Any, out: Path | None = None, load: Path | None = None) -> Any:
    """Return rsl_rl's runner with Isaac Lab's own agent for this task, tuned for few robots."""
    from importlib.metadata import version

    from isaaclab_rl.rsl_rl import RslRlSymmetryCfg, RslRlVecEnvWrapper, handle_deprecated_rsl_rl_cfg
    from isaaclab_tasks.core.velocity.config.go2.agents.rsl_rl_ppo_cfg import UnitreeGo2FlatPPORunnerCfg
    from rsl_rl.runners import OnPolicyRunner
    from umc.rl.symmetry import add_mirrored
    from umc.utils.console import quiet

    agent: Any = UnitreeGo2FlatPPORunnerCfg()
    agent.device, agent.obs_groups = env.device, GROUPS
    agent.actor.distribution_cfg.init_std = 0.5  # [-], half of the agent's
    learning = agent.algorithm
    learning.entropy_coef, learning.desired_kl, learning.num_learning_epochs = 0.002, 0.02, 3
    learning.symmetry_cfg = RslRlSymmetryCfg(use_data_augmentation=True, data_augmentation_func=add_mirrored)
    settings = handle_deprecated_rsl_rl_cfg(agent, version("rsl-rl-lib")).to_dict()
    with quiet():  # it prints the networks
        made = OnPolicyRunner(RslRlVecEnvWrapper(env), settings, None if out is None else str(out), env.device)
    if load is not None:
        made.load(str(load))
    return made


def train(args: argparse.Namespace) -> None:
    """Train; with faults, half of the episodes stay healthy."""
    env = make(for_two_cores(faulty_go2(ratios=HEALTHY if args.healthy else MIXED)), args.physics, args.num_envs)
    learner = runner(env, args.out, args.load)
    begin = time.monotonic()
    learner.learn(args.iterations, init_at_random_ep_len=True)
    learner.save(str(args.out / "model.pt"))
    minutes = (time.monotonic() - begin) / 60.0
    print(f"{args.iterations} iterations in {minutes:.1f} min; checkpoint: {args.out / 'model.pt'}")


def evaluate(args: argparse.Namespace) -> None:
    """Print how far policies walk, and how many robots fall, under the same faults."""
    import torch
    from umc import mdp

    ratios = HEALTHY if args.healthy else FAULTY
    cfg = for_two_cores(faulty_go2(ratios=ratios, seed=1))
    env = make(cfg, args.physics, args.num_envs)
    for path in args.evaluate:
        learner = runner(env, load=path)
        policy = learner.get_inference_policy(device=env.device)
        mdp.fault_state(env).episode.fill_(-1)  # every policy has the faults of episode 0
        torch.manual_seed(0)
        env.reset()
        obs = learner.env.get_observations()
        start = env.scene["robot"].data.root_pos_w.torch[:, 0].clone()
        up, ahead = torch.ones(args.num_envs, dtype=torch.bool, device=env.device), torch.zeros_like(start)
        for _ in range(args.steps):
            with torch.inference_mode():
                obs, _, done, _ = learner.env.step(policy(obs))
            up &= ~done.bool()
            ahead = torch.where(up, env.scene["robot"].data.root_pos_w.torch[:, 0] - start, ahead)
        fell = 100.0 * (~up).float().mean()
        print(f"{path}: {ahead.mean():.2f} m ahead in {args.steps * env.step_dt:.0f} s, {fell:.0f} % fell", flush=True)
    broken = "none" if args.healthy else "all"
    print(f"{args.num_envs} robots, {broken} of which break; the command is {SPEED} m/s straight ahead")


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=150, help="iterations of the training")
    parser.add_argument("--num_envs", type=int, default=256, help="number of robots")
    parser.add_argument("--healthy", action="store_true", help="train or evaluate without faults")
    parser.add_argument("--load", type=Path, metavar="CHECKPOINT", help="start the training from it")
    parser.add_argument("--out", type=Path, default=Path("logs/go2_faults"), help="folder of the training")
    parser.add_argument("--evaluate", type=Path, nargs="+", metavar="CHECKPOINT", help="compare policies instead")
    parser.add_argument("--steps", type=int, default=500, help="env steps of an evaluation, at most 999")
    parser.add_argument("--physics", default="ovphysx", choices=("newton_mjwarp", "ovphysx"), help="engine")
    args = parser.parse_args()
    missing = [str(path) for path in (args.load, *(args.evaluate or ())) if path is not None and not path.is_file()]
    if missing:
        parser.error(f"no checkpoint at {missing[0]}")
    if not 1 <= args.steps <= 999 or min(args.iterations, args.num_envs) < 1:
        parser.error("--iterations, --num_envs and --steps must be at least 1, --steps at most 999")
    print("loading Isaac Lab ...", flush=True)
    evaluate(args) if args.evaluate else train(args)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # closing an engine may hang
