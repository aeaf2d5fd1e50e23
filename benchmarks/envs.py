# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Env steps per second of UMC's tasks, beside Isaac Lab's own velocity task with the same robot; Markdown.

Both tasks run in processes of their own that take turns: while one steps, the other waits. They share robot, flat
ground, physics settings, and the paper's MLP, untrained, which acts on what the policy sees. UMC's task is Stage 2,
with all faults. On a CPU processor time counts, on CUDA the wall time. Isaac Lab has no task for Solo8: A1's takes it,
with the terminations of UMC's task, since each costs a reset.
Usage:

    ./isaaclab.sh -p benchmarks/envs.py [--robots A1 H1 G1 Solo8] [--engines newton_mjwarp ovphysx] [--num_envs 64 256]
    ./isaaclab.sh -p benchmarks/envs.py --device cuda --num_envs 4096 8192
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from common import ENGINES, ONE_THREAD, clock_name, clock_of, positive
from ratios import add_json_flag, save, spread
from solver_flags import add_solver_flags, set_solver, solver_flags

ROBOTS = ("A1", "H1", "G1", "Solo8")
TASKS = ("stock", "UMC")
TARGET = 0.9
"""Least share of the stock task's env steps per second that UMC allows itself [-]."""

MARK = "@envs "
"""Prefix of a child's answers; engines write to the same stream."""

BASE = {"A1": "trunk", "H1": "pelvis", "G1": "pelvis", "Solo8": "base_link"}
FEET = {"A1": ".*_calf", "H1": ".*_ankle_link", "G1": ".*_ankle_roll_link", "Solo8": ".*_LOWER_LEG"}
"""Bodies of UMC's robots that the stock tasks ask for: base, and those that carry the feet."""

WIDTHS = (256, 512, 256, 256)
"""The paper's MLP."""

NOISE = 0.1
"""Standard deviation of the actions around the network's [-]."""

WARM_UP = 25
"""Steps before the first block."""


def stock_task(robot: str) -> Any:
    """Return Isaac Lab's flat velocity task for UMC's robot, without a file to download, robot and physics."""
    from isaaclab_tasks.contrib.velocity.config.a1.flat_env_cfg import UnitreeA1FlatEnvCfg
    from isaaclab_tasks.core.velocity.config.g1.flat_env_cfg import G1FlatEnvCfg
    from isaaclab_tasks.core.velocity.config.h1.flat_env_cfg import H1FlatEnvCfg
    from umc.tasks.solo8 import BODIES_THAT_MUST_NOT_TOUCH

    cfgs = {"A1": UnitreeA1FlatEnvCfg, "Solo8": UnitreeA1FlatEnvCfg, "G1": G1FlatEnvCfg, "H1": H1FlatEnvCfg}
    cfg: Any = cfgs[robot]()
    cfg.scene.sky_light.spawn.texture_file = None
    cfg.commands.base_velocity.debug_vis = False
    for name in ("feet_air_time", "feet_slide", "air_time_variance"):
        term = getattr(cfg.rewards, name, None)
        for sensor in ("sensor_cfg", "asset_cfg"):
            if term is not None and sensor in term.params:
                term.params[sensor].body_names = FEET[robot]
    for name in ("arms", "fingers", "torso"):  # welded here
        if hasattr(cfg.rewards, f"joint_deviation_{name}"):
            setattr(cfg.rewards, f"joint_deviation_{name}", None)
    if robot == "H1":  # its joints' names end in _joint here
        cfg.rewards.dof_pos_limits.params["asset_cfg"].joint_names = ".*_ankle_joint"
        cfg.rewards.joint_deviation_hip.params["asset_cfg"].joint_names = [".*_hip_(yaw|roll)_joint"]
    falls = list(BODIES_THAT_MUST_NOT_TOUCH) if robot == "Solo8" else BASE[robot]
    cfg.terminations.base_contact.params["sensor_cfg"].body_names = falls
    for name in ("add_base_mass", "base_com", "base_external_force_torque"):
        event = getattr(cfg.events, name)
        if event is not None:
            event.params["asset_cfg"].body_names = BASE[robot]
    return cfg


def make_env(task: str, robot: str, args: argparse.Namespace) -> Any:
    """Make the environment of one of the two tasks."""
    import umc.tasks  # noqa: F401
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab_tasks.utils import load_cfg_from_registry, resolve_presets
    from umc.terrains import FLAT_GROUND_CFG

    ours: Any = load_cfg_from_registry(f"UMC-{robot}-Stage2", "env_cfg_entry_point")
    cfg: Any = ours if task == "UMC" else stock_task(robot)
    cfg.sim.physics, cfg.scene.robot, cfg.scene.terrain = ours.sim.physics, ours.scene.robot, FLAT_GROUND_CFG
    resolved: Any = resolve_presets(cfg, [args.engine, "flat"])
    resolved.scene.terrain = FLAT_GROUND_CFG
    set_solver(resolved, args)
    resolved.scene.num_envs, resolved.sim.device, resolved.seed = args.num_envs[0], args.device, 1
    return ManagerBasedRLEnv(resolved)


def serve(task: str, args: argparse.Namespace) -> None:
    """Run a block of steps for every line of standard input, and print how long it took."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    clock = clock_of(args.device)
    env = make_env(task, args.robots[0], args)
    groups = [name for name in ("policy", "joint_mask", "fault_flag") if name in env.observation_manager.group_obs_dim]

    def seen(observations: Any) -> torch.Tensor:
        return torch.cat([observations[name].float() for name in groups], dim=1)

    observations, _ = env.reset()
    sizes = (seen(observations).shape[1], *WIDTHS)
    layers: list[torch.nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ELU()]
    actions = env.action_manager.total_action_dim
    network = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], actions)).to(env.device)

    def block(steps: int) -> dict[str, float]:
        nonlocal observations
        ended = torch.zeros((), device=env.device)
        start = clock()
        for _ in range(steps):
            with torch.inference_mode():
                action = network(seen(observations))
                action += NOISE * torch.randn_like(action)
            observations, _, terminated, timed_out, _ = env.step(action.clone())
            ended += (terminated | timed_out).sum()
        return {"seconds": clock() - start, "ended": float(ended)}

    block(WARM_UP)
    print(f"{MARK}{json.dumps('ready')}", flush=True)
    for line in sys.stdin:
        print(f"{MARK}{json.dumps(block(int(line)))}", flush=True)


class Child:
    """A process that steps one task."""

    def __init__(self, task: str, flags: list[str]) -> None:
        self.task = task
        self._log: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), f"--child={task}", *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=ONE_THREAD,
        )

    def answer(self) -> Any:
        """Wait for its next answer."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(MARK):
                return json.loads(line.removeprefix(MARK))
            self._log.append(line)
        sys.exit(f"{self.task} failed with status {self._process.wait()}:\n{''.join(self._log)[-3000:]}")

    def run(self, steps: int) -> dict[str, float]:
        """Have it make env steps; return seconds and ended episodes."""
        assert self._process.stdin is not None
        print(steps, file=self._process.stdin, flush=True)
        return self.answer()

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


def run_in_turns(programs: dict[str, tuple[str, list[str]]], rounds: int, steps: int) -> dict[str, list[Any]]:
    """Let processes, each a task and flags, run blocks in turns; return their answers by name."""
    children: dict[str, Child] = {}
    answers: dict[str, list[Any]] = {name: [] for name in programs}
    try:
        for name, (task, flags) in programs.items():
            children[name] = Child(task, flags)
            children[name].answer()  # one after the other: engines that start together compile the same kernels
        for number in range(rounds):
            for name in programs if number % 2 else reversed(programs):
                answers[name].append(children[name].run(steps))
    finally:
        for child in children.values():
            child.end()
    return answers


def compare(robot: str, engine: str, num_envs: int, args: argparse.Namespace) -> tuple[str, list[float]]:
    """Measure both tasks in turns; return a row of the table and its ratios."""
    flags = [f"--robots={robot}", f"--engine={engine}", f"--num_envs={num_envs}", f"--device={args.device}"]
    flags += solver_flags(args)
    answers = run_in_turns({task: (task, flags) for task in TASKS}, args.rounds, args.steps)
    seconds = {task: [one["seconds"] for one in answers[task]] for task in TASKS}
    shares = [theirs / ours for ours, theirs in zip(seconds["UMC"], seconds["stock"], strict=True)]
    steps = num_envs * args.steps
    rates = (steps / statistics.median(seconds[task]) for task in TASKS)
    ended = (sum(one["ended"] for one in answers[task]) / (steps * args.rounds) for task in TASKS)
    cells = [robot, engine, f"{num_envs:,}", *(f"{rate:,.0f}" for rate in rates), spread(shares)]
    cells.append(", ".join(f"{1000 * share:.1f}" for share in ended))
    return "| " + " | ".join(cells) + " |", shares


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--robots", nargs="+", choices=ROBOTS, default=ROBOTS)
    add("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    add("--num_envs", nargs="+", type=positive, default=[64, 256], help="numbers of envs")
    add("--device", default="cpu", help="cpu or cuda")
    add("--rounds", type=positive, default=5, help="pairs of blocks")
    add("--steps", type=positive, default=20, help="env steps of a block")
    add_solver_flags(parser)
    add_json_flag(parser)
    add("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    add("--child", choices=TASKS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        serve(args.child, args)
        os._exit(0)  # the teardown of an engine may hang
    blocks = f"{args.rounds} pairs of blocks of {args.steps} env steps"
    print(f"{args.device}, {clock_name(args.device)}, {blocks}; target {TARGET:.2f}\n")
    print("| robot | engine | envs | stock [env-steps/s] | UMC | UMC / stock: median (min to max) | ", end="")
    print("episodes ended per 1,000 env steps: stock, UMC |\n|---|---|---:|---:|---:|---|---|", flush=True)
    saved = {}
    for robot in args.robots:
        for engine in args.engines:
            for num_envs in args.num_envs:
                row, saved[f"{robot}, {engine}, {num_envs:,} envs"] = compare(robot, engine, num_envs, args)
                print(row, flush=True)
    save(args.json, saved)


if __name__ == "__main__":
    main()
