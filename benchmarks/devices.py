# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What ``umc smoke-test`` can tell of a GPU: how far rounding and defects move the robots that it compares; Markdown.

Its recording is repeated in one process (bit by bit the same, but for G1 on PhysX) with one thing changed. *Rounding*
stands for another correct machine: joint positions differ by 1e-7 (relative, and 1e-8 rad) at each start, or positions
and speeds by 1e-6 after each env step. *Defects* are what the comparison is for. Differences are those that 97 % of the
robots keep, in the air and on the ground; *beyond* is the share of robots beyond the tolerance, *found* the verdict.
Usage:

    ./isaaclab.sh -p benchmarks/devices.py [--robot A1] [--engine newton_mjwarp] [--num_envs 64] [--episodes 3]
    ./isaaclab.sh -p benchmarks/devices.py --robot G1 --episode 96 --episodes 1 --changes start step
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
from common import ENGINES, ROBOTS, positive, run_and_exit, stage2_cfg
from umc.evaluation import devices
from umc.utils.console import ignore_known_warnings, quiet

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

JOINT = 4
"""Joint of the defects that one joint has, and its neighbor the one that it is swapped with."""

MASKED = 1
"""Joint whose mask is set in the first episode."""

SHOWN_STEPS = (1, 6, 12, 23, 47, 95)
"""Env steps until which the table has the difference on the ground."""

FRICTION = 1.0
"""Friction of the robot's shapes [-]."""


def _stepped(
    env: ManagerBasedRLEnv,
    acts: Callable[[torch.Tensor], torch.Tensor] = lambda actions: actions,
    after: Callable[[dict[str, Any]], Any] = lambda observations: None,
) -> Any:
    """Change the actions of every env step, or what it leaves."""
    step = env.step

    def changed(actions: torch.Tensor) -> Any:
        result = step(acts(actions))
        after(result[0])
        return result

    return mock.patch.object(env, "step", changed)


def _rounded(values: torch.Tensor, size: float, generator: torch.Generator) -> torch.Tensor:
    relative, absolute = torch.randn(2, *values.shape, generator=generator)
    return values * (1.0 + size * relative) + 0.1 * size * absolute


def start(env: ManagerBasedRLEnv) -> Any:
    """Rounding, 1e-7 at each start."""
    reset, robot, generator = env._reset_idx, env.scene["robot"], torch.Generator().manual_seed(0)

    def changed(env_ids: Any) -> None:
        reset(env_ids)
        robot.write_joint_position_to_sim_index(position=_rounded(robot.data.joint_pos.torch, 1e-7, generator))

    return mock.patch.object(env, "_reset_idx", changed)


def step(env: ManagerBasedRLEnv) -> Any:
    """Rounding, 1e-6 after each env step."""
    robot, generator = env.scene["robot"], torch.Generator().manual_seed(0)

    def after(_: Any) -> None:
        data = robot.data
        robot.write_joint_position_to_sim_index(position=_rounded(data.joint_pos.torch, 1e-6, generator))
        robot.write_joint_velocity_to_sim_index(velocity=_rounded(data.joint_vel.torch, 1e-6, generator))

    return _stepped(env, after=after)


def _limits(env: ManagerBasedRLEnv, changed: Callable[[Any, Any], dict[str, torch.Tensor]]) -> Any:
    """Change the limits that are written into physics, from the faulty and the healthy ones."""
    from umc.mdp.fault_terms import fault_term

    writer = fault_term(env).writer
    write = writer.write

    def written(limits: Any, *rest: Any) -> None:
        write(dataclasses.replace(limits, **changed(limits, writer.healthy)), *rest)

    return mock.patch.object(writer, "write", written)


def _weaker(name: str) -> Callable[[Any, Any], dict[str, torch.Tensor]]:
    def changed(limits: Any, healthy: Any) -> dict[str, torch.Tensor]:
        value = getattr(limits, name)
        return {name: torch.where(value == getattr(healthy, name), value, 0.95 * value)}

    return changed


def effort(env: ManagerBasedRLEnv) -> Any:
    """Torque limits of faults 5 % too low."""
    return _limits(env, _weaker("effort"))


def velocity(env: ManagerBasedRLEnv) -> Any:
    """Speed limits of faults 5 % too low."""
    return _limits(env, _weaker("velocity"))


def joint(env: ManagerBasedRLEnv) -> Any:
    """One joint without its limits."""

    def changed(limits: Any, healthy: Any) -> dict[str, torch.Tensor]:
        other = torch.arange(limits.effort.shape[1]) != JOINT
        kept = {name: getattr(healthy, name) for name in ("lower", "upper", "effort", "velocity")}
        kept |= {name: torch.zeros_like(limits.effort) for name in ("damping", "friction")}
        return {name: torch.where(other, getattr(limits, name), value) for name, value in kept.items()}

    return _limits(env, changed)


@contextlib.contextmanager
def late(env: ManagerBasedRLEnv) -> Iterator[None]:
    """Limits one env step late."""
    from umc.mdp.fault_terms import fault_term

    writer, step, waiting = fault_term(env).writer, env.step, []
    write = writer.write

    def changed(actions: torch.Tensor) -> Any:
        due = [*waiting]
        waiting.clear()
        result = step(actions)
        for limits, envs, *rest in due:
            write(limits, envs & (env.episode_length_buf > 0), *rest)
        return result

    with (
        mock.patch.object(writer, "write", lambda *given: waiting.append(given)),
        mock.patch.object(env, "step", changed),
    ):
        yield


def order(env: ManagerBasedRLEnv) -> Any:
    """Actions of two joints swapped."""

    def acts(actions: torch.Tensor) -> torch.Tensor:
        columns = torch.arange(actions.shape[1])
        columns[[JOINT - 1, JOINT]] = columns[[JOINT, JOINT - 1]]
        return actions[:, columns]

    return _stepped(env, acts)


@contextlib.contextmanager
def gains(env: ManagerBasedRLEnv) -> Iterator[None]:
    """Stiffness 2 % too high."""
    from isaaclab.actuators.newton import read_group_parameter, write_group_parameter

    place = (env.scene["robot"].actuators, "legs", "controller", "kp")
    healthy = read_group_parameter(*place).clone()
    write_group_parameter(*place, 1.02 * healthy)
    yield
    write_group_parameter(*place, healthy)


def set_friction(env: ManagerBasedRLEnv, value: float) -> None:
    """Give all shapes of the robots one friction [-]."""
    from umc.tasks.base import friction_event

    term = friction_event(value, value)
    term.params["asset_cfg"].resolve(env.scene)
    make: Any = term.func  # a class, which Isaac Lab does not declare
    make(term, env)(env, None, **term.params)


@contextlib.contextmanager
def friction(env: ManagerBasedRLEnv) -> Iterator[None]:
    """Friction 10 % too low."""
    set_friction(env, 0.9 * FRICTION)
    yield
    set_friction(env, FRICTION)


def mask(env: ManagerBasedRLEnv) -> Any:
    """Mask of one joint never set."""
    return _stepped(env, after=lambda observations: observations["joint_mask"][:, MASKED].zero_())


def scale(env: ManagerBasedRLEnv) -> Any:
    """Joint velocities that are observed 2 % too high."""
    manager = env.observation_manager
    widths = [size[0] for size in manager.group_obs_term_dim["policy"]]
    number = manager.active_terms["policy"].index("joint_vel")
    columns = slice(sum(widths[:number]), sum(widths[: number + 1]))
    return _stepped(env, after=lambda observations: observations["policy"][:, columns].mul_(1.02))


ROUNDING = (start, step)
DEFECTS = (effort, velocity, joint, late, order, gains, friction, mask, scale)
CHANGES = {change.__name__: change for change in (*ROUNDING, *DEFECTS)}


def make_env(args: argparse.Namespace, ledger: Path) -> ManagerBasedRLEnv:
    """Make the environment of a recording."""
    from isaaclab.envs import ManagerBasedRLEnv

    cfg = stage2_cfg(args.robot, args.engine, args.num_envs)
    devices.make_repeatable(cfg, ledger)
    cfg.scene.num_envs = args.num_envs
    return ManagerBasedRLEnv(cfg)


def record(env: ManagerBasedRLEnv, ledger: Path, change: str | None = None) -> devices.Recording:
    """Record the first episodes, with a change."""
    from umc.mdp.fault_terms import fault_term

    fault_term(env).state.episode.fill_(-1)
    written, out = ledger.stat().st_size, ledger.with_suffix(".pt")
    with contextlib.nullcontext() if change is None else CHANGES[change](env):
        devices.record(env, ledger, out)
    found = devices.read_recording(out)
    header, _ = found.ledger.split("\n", 1)
    return found.model_copy(update={"ledger": f"{header}\n{ledger.read_bytes()[written:].decode()}"})


def row(sort: str, meaning: str, one: devices.Recording, other: devices.Recording) -> str:
    """Return the line of a change."""
    groups = {name: apart for name, apart in devices.distances(one, other).items() if name not in devices.EXACT}
    base = [name for name in groups if name.endswith(devices.BASE)]
    rest = [name for name in groups if name not in base]

    def until(step: int, first: int, names: list[str]) -> str:
        apart = torch.stack([groups[name] for name in names]).amax(0)
        robots = apart[:, :step, first::2].amax(1).flatten()
        return f"{torch.quantile(robots, devices.SHARE):.0e}"

    last = devices.EPISODE - 1  # the env step after it shows the next start
    found = [devices.beyond_tolerance(one, name, apart) for name, apart in groups.items()]
    beyond = torch.stack(found).any(0).double()
    cells = [sort, meaning, until(last, 1, rest), until(last, 1, base), f"{beyond[:, 1::2].mean():.0%}"]
    cells += [*(until(step, 0, [*groups]) for step in shown_steps()), f"{beyond[:, ::2].mean():.0%}"]
    cells += ["yes" if devices.compare(one, other).failures else "no"]
    return f"| {' | '.join(cells)} |"


def shown_steps() -> list[int]:
    """Return the env steps until which robots on the ground are shown."""
    return [step for step in SHOWN_STEPS if step < devices.EPISODE]


def main(argv: list[str]) -> int:
    """Print the table; return the exit status."""
    args = parse(argv)
    torch.set_num_threads(1)
    ignore_known_warnings()
    devices.EPISODE, devices.EPISODES = args.episode, args.episodes
    ledger = Path(tempfile.mkdtemp()) / "ledger.jsonl"
    with quiet():
        env = make_env(args, ledger)
    set_friction(env, FRICTION)
    print(f"{args.robot}, {args.engine}, {args.num_envs} envs, {args.episodes} episodes of {args.episode} env steps\n")
    steps = [f"ground, step {step}" for step in shown_steps()]
    head = ["", "change", "air", "air, base", "beyond", *steps, "beyond", "found"]
    print(f"| {' | '.join(head)} |\n|---|---|{'---:|' * (len(steps) + 4)}---|", flush=True)
    own = record(env, ledger)
    print(row("", "none", own, record(env, ledger)), flush=True)
    for name in args.changes:
        sort = "rounding" if CHANGES[name] in ROUNDING else "defect"
        meaning = str(CHANGES[name].__doc__).rstrip(".").removeprefix("Rounding, ")
        print(row(sort, meaning, own, record(env, ledger, name)), flush=True)
    return 0


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--robot", choices=ROBOTS, default=ROBOTS[0])
    add("--engine", choices=ENGINES, default=ENGINES[0])
    add("--num_envs", type=positive, default=devices.RECORDED_ENVS)
    add("--episode", type=int, default=devices.EPISODE, help="env steps of an episode")
    add("--episodes", type=positive, default=devices.EPISODES)
    add("--changes", nargs="+", choices=list(CHANGES), default=list(CHANGES))
    args = parser.parse_args(argv)
    if args.episode < devices.EPISODE:
        parser.error(f"--episode has to be at least {devices.EPISODE}")
    return args


if __name__ == "__main__":
    run_and_exit(main)
