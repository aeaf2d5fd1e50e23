# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What an env step costs beyond its physics, and which parts cost it; Markdown.

One environment of a Stage 2 task, with all faults, runs blocks of two sorts in turns, from starts of their own with the
same actions: whole env steps, and *bare* ones, which write the action once and then step the simulation as often as an
env step does. In the whole steps the simulation is timed, too: *inside* is the ratio of an env step to its own physics.
On a CPU the processor time of all threads counts, on CUDA the wall time.
Usage:

    ./isaaclab.sh -p benchmarks/step.py [--robots A1 G1] [--engines ovphysx] [--num_envs 256 1024] [--terms]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections import defaultdict
from typing import Any

from common import ENGINES, ROBOTS, Timers, clock_of, positive, run_apart, stage2_cfg
from ratios import add_json_flag, save, spread

TARGET = 1.25
"""Highest ratio that UMC allows itself [-]."""

WARM_UP = 10
"""Steps of a block that are not timed: robots land, and the first faults set in."""

SCALE = 0.3
"""Standard deviation of the actions [-]."""

PARTS = {
    "action": ("action_manager", ("process_action", "apply_action")),
    "write to the engine": ("scene", ("write_data_to_sim",)),
    "physics": ("sim", ("step",)),
    "update of the scene": ("scene", ("update",)),
    "terminations": ("termination_manager", ("compute",)),
    "rewards": ("reward_manager", ("compute",)),
    "resets": ("", ("_reset_idx",)),
    "commands": ("command_manager", ("compute",)),
    "events": ("event_manager", ("apply",)),
    "observations": ("observation_manager", ("compute",)),
    "recorders": ("recorder_manager", ("record_pre_step", "record_post_physics_decimation_step", "record_post_step")),
}
"""The methods that an env step consists of; an inner one's time is not the outer one's."""


def time_parts(env: Any, timers: Timers) -> None:
    """Time the parts of an env step."""
    for part, (owner, names) in PARTS.items():
        found = getattr(env, owner) if owner else env
        for name in names:
            setattr(found, name, timers.timed(part, getattr(found, name)))


def time_terms(env: Any, timers: Timers) -> None:
    """Time every term; most managers have no public way to all of their terms."""
    from umc.mdp.observations import group_terms

    sorts = {
        "reward": env.reward_manager._term_cfgs,
        "termination": env.termination_manager._term_cfgs,
        **{f"{mode} event": cfgs for mode, cfgs in env.event_manager._mode_term_cfgs.items()},
        **{group: group_terms(env, group).values() for group in env.observation_manager.active_terms},
    }
    for sort, cfgs in sorts.items():
        for cfg in cfgs:
            inner = cfg.params.get("func")
            name = getattr(cfg.func, "__name__", type(cfg.func).__name__)
            cfg.func = timers.timed(f"{sort}: {name}{f' of {inner.__name__}' if inner else ''}", cfg.func)


class Blocks:
    """Blocks of steps of one environment."""

    def __init__(self, args: argparse.Namespace) -> None:
        from isaaclab.envs import ManagerBasedRLEnv

        cfg = stage2_cfg(args.robots[0], args.engine, args.num_envs[0], args.device)
        self._env: Any = ManagerBasedRLEnv(cfg)
        self._env.reset()
        self._steps, self._now = args.steps, clock_of(args.device)
        self.timers = Timers(args.device)
        time_parts(self._env, self.timers)
        if args.terms:
            time_terms(self._env, self.timers)

    def _bare(self, action: Any) -> None:
        self._env.action_manager.process_action(action)
        self._env.action_manager.apply_action()
        self._env.scene.write_data_to_sim()
        # as in an env step: some engines take all physics steps in one call
        for _ in range(1 if self._env._physics_handles_decimation else self._env.cfg.decimation):
            self._env.sim.step(render=False)

    def run(self, sort: str, seed: int) -> float:
        """Return the time of an env step [s], ``whole`` or ``bare``; the steps before are whole ones in both."""
        import torch

        env, start = self._env, 0.0
        step = self._bare if sort == "bare" else env.step
        env.reset(seed=seed)
        generator = torch.Generator().manual_seed(seed)
        for number in range(WARM_UP + self._steps):
            if number == WARM_UP:
                self.timers.seconds.clear()
                start = self._now()
            action = torch.randn(env.num_envs, env.action_manager.total_action_dim, generator=generator)
            (env.step if number < WARM_UP else step)(SCALE * action.to(env.device))
        return (self._now() - start) / self._steps


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Measure one robot, engine and number of envs: ratios, and seconds of an env step by part."""
    import torch

    torch.set_num_threads(1)
    blocks = Blocks(args)
    found: dict[str, Any] = {"bare": [], "whole": [], "inside": [], "parts": defaultdict(float)}
    for number in range(args.rounds + 1):
        for sort in ("bare", "whole") if number % 2 else ("whole", "bare"):
            seconds = blocks.run(sort, number)
            if number > 0:
                found[sort].append(seconds)
            if number > 0 and sort == "whole":
                found["inside"].append(seconds * args.steps / blocks.timers.seconds["physics"])
                for part, value in blocks.timers.seconds.items():
                    found["parts"][part] += value / args.steps / args.rounds
    return found


def measure_apart(robot: str, engine: str, num_envs: int, args: argparse.Namespace) -> dict[str, Any]:
    """Run :func:`measure` in a process of its own."""
    flags = [f"--robots={robot}", f"--num_envs={num_envs}", f"--engine={engine}"]
    flags += [f"--{name}={getattr(args, name)}" for name in ("device", "rounds", "steps")]
    flags += ["--terms"] if args.terms else []
    return json.loads(run_apart(f"{robot} on {engine}", __file__, flags))


def main() -> None:
    """Print a table of ratios, and one of the parts for each of its rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--robots", nargs="+", choices=ROBOTS, default=("A1", "G1"))
    add("--engines", nargs="+", choices=ENGINES, default=("ovphysx",))
    add("--num_envs", nargs="+", type=positive, default=[256, 1024], help="numbers of envs")
    add("--device", default="cpu", help="cpu or cuda")
    add("--rounds", type=positive, default=5, help="pairs of blocks that count")
    add("--steps", type=positive, default=10, help="timed env steps of a block")
    add("--terms", action="store_true", help="time every term of the managers; the timers cost a little, too")
    add("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    add_json_flag(parser)
    args = parser.parse_args()
    if args.engine:
        print("\n" + json.dumps(measure(args)), flush=True)
        os._exit(0)  # the teardown of an engine may hang
    print("| robot | engine | envs | bare [ms] | env step [ms] | env step / bare: median (min to max) | inside |")
    print("|---|---|---:|---:|---:|---|---|")
    tables, saved = [], {}
    for robot in args.robots:
        for engine in args.engines:
            for num_envs in args.num_envs:
                found = measure_apart(robot, engine, num_envs, args)
                ratios = [whole / bare for whole, bare in zip(found["whole"], found["bare"], strict=True)]
                saved[f"{robot}, {engine}, {num_envs:,} envs"] = ratios
                cells = [robot, engine, f"{num_envs:,}"]
                cells += [f"{1e3 * statistics.median(found[sort]):.1f}" for sort in ("bare", "whole")]
                cells += [spread(ratios, 3), spread(found["inside"], 3)]
                print("| " + " | ".join(cells) + " |", flush=True)
                physics = found["parts"]["physics"]
                rows = sorted(found["parts"].items(), key=lambda item: -item[1])
                lines = [f"| {part} | {1e3 * value:.2f} | {value / physics:.3f} |" for part, value in rows]
                head = [f"\n{robot}, {engine}, {num_envs:,} envs\n", "| part | [ms] | over physics |"]
                tables.append("\n".join([*head, "|---|---:|---:|", *lines]))
    print("\n".join(tables))
    save(args.json, saved)


if __name__ == "__main__":
    main()
