# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What ``scripts/play.py`` calls: films a policy, or hands it to one of Isaac Lab's visualizers."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from umc.evaluation.protocol import Protocol
from umc.evaluation.session import INTERRUPTED, USAGE_ERROR, Session, parse, prepare
from umc.rendering.film import add_clip_arguments, film_clip, wants_clip
from umc.rendering.shot import (
    EVERY,
    HEALTHY,
    NAMES,
    STAGE2_SCENARIO,
    Falls,
    Shot,
    add_shot_arguments,
    choose,
    shot_protocol,
)
from umc.rl.pretrained import results_folder
from umc.utils.errors import UmcError
from umc.viewer.live import add_live_arguments, is_live, play_live

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

    from umc.rl.policy import LoadedPolicy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of ``scripts/play.py``.

    Args:
        parser: The parser.
    """
    add_shot_arguments(parser)
    add_clip_arguments(parser)
    add_live_arguments(parser)


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
    from umc.utils.console import quiet

    if "-h" in argv or "--help" in argv:
        parse(argv, "play.py", "Film a policy, or show it in a visualizer.", add_arguments)
    with quiet():
        options, overrides = parse(argv, "play.py", "", add_arguments)
        shot = choose(options)
        several = len(options.checkpoint or ()) > 1
        shown = bool(set(options.visualizer or ()) - {"none"})
        side = wants_clip(options, several, shown)
        live = is_live(options)
        session = None if live else prepare(options, overrides, stage=2 if several else None, once=not several)
    if session is None:
        return play_live(options, overrides, shot)
    if options.scenario is None and (several or session.info.stage == 2):
        shot = replace(shot, scenario=STAGE2_SCENARIO)
    protocol = shot_protocol(session.info.robot, shot, options.seed)
    if shown:
        return show(session, protocol, endless=options.steps is None)
    if side:
        return film_clip(session, protocol, shot)
    return film(session, protocol, shot)


def film(session: Session, protocol: Protocol, shot: Shot) -> int:
    """Writes the film and a sheet of stills.

    Args:
        session: Checkpoint and task.
        protocol: Faults and command.
        shot: What to film.

    Returns:
        0.
    """
    from umc.evaluation.conditions import make_calm, set_faults
    from umc.evaluation.session import running
    from umc.rendering.camera import CAMERA, camera_cfg
    from umc.rendering.writers import sheet, write_film, write_still

    if session.options.num_envs not in (None, 1):
        print("one env is filmed; --num_envs is for --viz")
    make_calm(session.env_cfg, protocol.command, 1, protocol.steps, protocol.seed)
    set_faults(session.env_cfg, protocol)
    setattr(session.env_cfg.scene, CAMERA, camera_cfg(*shot.size))
    falls = Falls(session.env_cfg)
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


def _shoot(env: ManagerBasedRLEnv, policy: LoadedPolicy, protocol: Protocol, shot: Shot, falls: Falls) -> list[Any]:
    """Lets the policy act and takes a frame now and then."""
    from umc.evaluation.rollout import begin, drive
    from umc.mdp import fault_state
    from umc.rendering.camera import Cinema
    from umc.rendering.writers import write_caption

    obs = begin(env, protocol)
    falls.resolve(env)
    state = fault_state(env)
    cinema = Cinema(env)
    rings: tuple[float, ...] = ()
    center = (0.0, 0.0)
    fell_at: int | None = None
    frames = []
    for step in drive(env, policy, obs, shot.steps, "filming"):
        if fell_at is None and falls.now(env):
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
    from umc.evaluation.conditions import make_calm, set_faults
    from umc.evaluation.rollout import begin, drive
    from umc.evaluation.session import running

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
