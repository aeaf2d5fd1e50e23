# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What ``scripts/play.py`` calls: films a policy, or hands it to one of Isaac Lab's visualizers."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from umc.errors import UmcError
from umc.faults import SCENARIOS
from umc.rl.shipped import results_folder

from .protocol import Protocol, protocol_for
from .session import INTERRUPTED, USAGE_ERROR, Session, parse, prepare

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

    from umc.rl.policy import LoadedPolicy

STEPS = 500
"""Length of the film [env steps]: 10 s."""

ONSET = 100
"""Env step of the fault: the middle one of the paper's inference onsets."""

EVERY = 2
"""Env steps per frame: 25 frames per second."""

SIZE = (960, 540)
"""Width and height of a frame [px]."""

QUICK_STEPS, QUICK_ONSET, QUICK_SIZE = 32, 12, (320, 180)
"""The same of ``--quick``."""

STAGE2_SCENARIO = 2
"""Scenario without ``--scenario`` for a Stage 2 policy: a dead sensor and a smaller range of motion."""

HEALTHY = 8

NAMES = {
    1: "dead sensors",
    2: "dead sensors, smaller range of motion",
    3: "dead sensors, weak motors",
    4: "dead sensors, slow joints",
    5: "smaller range of motion",
    6: "weak motors",
    7: "slow joints",
    8: "healthy",
}
"""Scenarios of the paper's table in words."""

NOT_A_FALL = ("time_out", "non_finite_state")
"""Terminations that are no fall."""


@dataclass(frozen=True)
class Shot:
    """What is going to be filmed."""

    steps: int
    scenario: int
    onset: int
    size: tuple[int, int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of ``scripts/play.py``.

    Args:
        parser: The parser.
    """
    add = parser.add_argument
    add("--steps", type=int, help=f"length [env steps]; {STEPS} without it; with --viz: until Ctrl-C")
    add("--scenario", type=int, help="scenario of the paper's table, 1 to 8; 8 is the healthy robot")
    add("--onset", type=int, help=f"env step at which the fault sets in; {ONSET} without it")
    add("--quick", action="store_true", help="a second of small pictures: proves that everything works")


def main(argv: Sequence[str]) -> int:
    """Runs ``scripts/play.py``.

    Args:
        argv: Arguments without the script's name.

    Returns:
        Exit status: 0 done, 2 wrong use, 130 Ctrl-C.
    """
    try:
        return _run(list(argv))
    except UmcError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED


def _run(argv: list[str]) -> int:
    from umc.rl.console import quiet

    if "-h" in argv or "--help" in argv:
        parse(argv, "play.py", "Film a policy, or show it in a visualizer.", add_arguments)
    with quiet():
        options, overrides = parse(argv, "play.py", "", add_arguments)
        if len(options.checkpoint or ()) > 1:
            raise UmcError("one policy is shown; give one --checkpoint")
        shot = choose(options)
        session = prepare(options, overrides)
    if options.scenario is None and session.info.stage == 2:
        shot = replace(shot, scenario=STAGE2_SCENARIO)
    protocol = protocol_for(session.info.robot, (shot.scenario,), seed=options.seed)
    protocol = replace(protocol, settings=(replace(protocol.settings[0], onset=shot.onset),), steps=shot.steps)
    if set(options.visualizer or ()) - {"none"}:
        return show(session, protocol, endless=options.steps is None)
    return film(session, protocol, shot)


def choose(options: argparse.Namespace) -> Shot:
    """Reads the flags.

    Args:
        options: The flags.

    Returns:
        What to film; scenario 8 where none is named.

    Raises:
        UmcError: If a flag makes no sense.
    """
    steps, onset, size = (QUICK_STEPS, QUICK_ONSET, QUICK_SIZE) if options.quick else (STEPS, ONSET, SIZE)
    steps = steps if options.steps is None else options.steps
    if steps < 2:
        raise UmcError(f"--steps is {steps}; it has to be at least 2")
    onset = min(onset, steps // 2) if options.onset is None else options.onset
    if not 0 < onset < steps:
        raise UmcError(f"--onset {onset} has to lie between 1 and the last step before {steps}")
    scenario = HEALTHY if options.scenario is None else options.scenario
    if scenario not in SCENARIOS:
        raise UmcError(f"unknown scenario {scenario}; the paper's scenarios are 1 to 8")
    return Shot(steps, scenario, onset, size)


def film(session: Session, protocol: Protocol, shot: Shot) -> int:
    """Writes the film and a sheet of stills.

    Args:
        session: Checkpoint and task.
        protocol: Faults and command.
        shot: What to film.

    Returns:
        0.
    """
    from .conditions import make_calm, set_faults
    from .picture import sheet, write_film, write_still
    from .session import running
    from .stage import CAMERA, camera_cfg

    if session.options.num_envs not in (None, 1):
        print("one env is filmed; --num_envs is for --viz")
    make_calm(session.env_cfg, protocol.command, 1, protocol.steps, protocol.seed)
    set_faults(session.env_cfg, protocol)
    setattr(session.env_cfg.scene, CAMERA, camera_cfg(*shot.size))
    falls = _take_falls(session.env_cfg)
    out = session.options.out or results_folder(session.checkpoint) / "videos" / session.checkpoint.stem
    with running(session) as (env, policy):
        frames = _shoot(env, policy, protocol, shot, falls)
        fps = 1.0 / (env.step_dt * EVERY)
    name = f"{session.task}_scenario{shot.scenario}"
    write_film(out / f"{name}.mp4", frames, fps)
    write_still(out / f"{name}.png", sheet(frames))
    print(f"video: {out / name}.mp4")
    print(f"picture: {out / name}.png", flush=True)
    return 0


def _take_falls(env_cfg: Any) -> dict[str, Any]:
    """Takes the terminations that end an episode with a fall, so that the film shows what follows."""
    falls = {
        name: term
        for name, term in vars(env_cfg.terminations).items()
        if hasattr(term, "func") and name not in NOT_A_FALL
    }
    for name in falls:
        setattr(env_cfg.terminations, name, None)
    return falls


def _shoot(
    env: ManagerBasedRLEnv, policy: LoadedPolicy, protocol: Protocol, shot: Shot, falls: dict[str, Any]
) -> list[Any]:
    """Lets the policy act and takes a frame now and then."""
    from isaaclab.managers import SceneEntityCfg

    from umc.mdp import fault_state

    from .picture import write_caption
    from .rollout import begin, drive
    from .stage import Cinema

    obs = begin(env, protocol)
    for term in falls.values():
        for value in term.params.values():
            if isinstance(value, SceneEntityCfg):
                value.resolve(env.scene)
    state = fault_state(env)
    cinema = Cinema(env)
    rings: tuple[float, ...] = ()
    center = (0.0, 0.0)
    fell_at: int | None = None
    frames = []
    for step in drive(env, policy, obs, shot.steps, "filming"):
        if fell_at is None and any(bool(term.func(env, **term.params)[0]) for term in falls.values()):
            fell_at = step.number
        if step.number == shot.onset:
            center = tuple(step.position[0].tolist())
            rings = protocol.radii
        if step.number % EVERY == 0:
            frame = cinema.shoot(state, rings, center)
            lines = caption(session_title(policy), shot, step.number, env.step_dt, state, step, center, fell_at)
            frames.append(write_caption(frame, lines, alarm=bool(state.active[0]) or fell_at is not None))
    return frames


def session_title(policy: LoadedPolicy) -> str:
    """Robot, model and age of a policy.

    Args:
        policy: The policy.

    Returns:
        A few words.
    """
    info = policy.info
    return f"{info.robot.upper()}, {info.model}, stage {info.stage}, iteration {info.iteration}"


def caption(
    title: str,
    shot: Shot,
    number: int,
    step_dt: float,
    state: Any,
    step: Any,
    center: tuple[float, ...],
    fell_at: int | None,
) -> list[str]:
    """What stands in a frame.

    Args:
        title: Whose film it is.
        shot: What is filmed.
        number: Env step.
        step_dt: Duration of an env step [s].
        state: The faults.
        step: State of the robot.
        center: Where the robot was at onset [m].
        fell_at: Env step of the fall.

    Returns:
        Lines of text.
    """
    lines = [f"scenario {shot.scenario}: {NAMES[shot.scenario]}"]
    if bool(state.active[0]):
        broken = [name for name, faulty in zip(state.joint_names, state.joints[0].tolist(), strict=True) if faulty]
        lines.append(", ".join(name.removesuffix("_joint") for name in broken))
    elif shot.scenario != HEALTHY:
        lines.append(f"healthy until {shot.onset * step_dt:.1f} s")
    x, y = step.position[0].tolist()
    moved = f", {math.hypot(x - center[0], y - center[1]):.2f} m from the rings' centre" if number >= shot.onset else ""
    lines += [title, f"{number * step_dt:.1f} s, {float(step.forward_velocity[0]):+.2f} m/s{moved}"]
    if fell_at is not None:
        lines.append(f"fell at {fell_at * step_dt:.1f} s")
    return lines


def show(session: Session, protocol: Protocol, endless: bool) -> int:
    """Lets one of Isaac Lab's visualizers show the policy, in real time, until Ctrl-C or the end.

    Args:
        session: Checkpoint and task; ``--viz`` names the visualizer.
        protocol: Faults and command.
        endless: Whether to go on, episode after episode.

    Returns:
        0.
    """
    from .conditions import make_calm, set_faults
    from .rollout import begin, drive
    from .session import running

    make_calm(session.env_cfg, protocol.command, session.options.num_envs or 1, protocol.steps, protocol.seed)
    set_faults(session.env_cfg, protocol)
    with running(session) as (env, policy):
        print("press Ctrl-C to end", flush=True)
        while True:
            obs = begin(env, protocol)
            due = time.monotonic()
            for _ in drive(env, policy, obs, protocol.steps, "playing"):
                due += env.step_dt
                time.sleep(max(due - time.monotonic(), 0.0))
            if not endless:
                return 0
