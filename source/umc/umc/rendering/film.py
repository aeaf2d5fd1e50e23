# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Films policies from the side, side by side, as they meet the same fault from the same start."""

from __future__ import annotations

import argparse
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.evaluation.labels import labels_of
from umc.evaluation.protocol import Protocol
from umc.evaluation.session import Session
from umc.faults import JointKind, find_kind, find_scenario
from umc.rendering.gif import MOST_BYTES, write_gif
from umc.rendering.layout import (
    ALARM,
    EMPTY,
    FALLEN,
    INK,
    PAPER,
    SENSOR,
    WALKING,
    Color,
    Heading,
    Moment,
    Take,
    compose,
    storyboard,
)
from umc.rendering.shot import EVERY, HEALTHY, NAMES, Falls, Shot, Tape
from umc.rendering.writers import Frame, require_ffmpeg, write_film, write_still
from umc.rl.pretrained import results_folder
from umc.utils.errors import UmcError
from umc.utils.io import write_json

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

    from umc.evaluation.rollout import Step
    from umc.rendering.side_camera import SideCinema
    from umc.rl.policy import LoadedPolicy

PANEL = (480, 330)
"""Width and height of a robot's picture [px]."""

QUICK_PANEL = (160, 110)
"""The same of ``--quick``."""

GIF_PANEL_SHARE = 2 / 3
"""Width of a panel in a GIF, as a part of that in the MP4 [-]; two make 640 px. A panel that is alone keeps its own."""

CLIP_SUFFIXES = (".mp4", ".gif", ".png")
"""Files that a clip can be written to; the last is the storyboard."""

OTHER_SUFFIXES = (".avi", ".jpeg", ".jpg", ".mkv", ".mov", ".webm", ".webp")
"""What users may ask for that cannot be written."""

KEPT_COLORS = (INK, PAPER, ALARM, SENSOR, WALKING, EMPTY, FALLEN)
"""Colours that a GIF's palette must hold."""


def add_clip_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of clips.

    Args:
        parser: The parser.
    """
    add = parser.add_argument
    add("--side", action="store_true", help="a clip from the side with metres and time line; several policies get one")
    add("--names", nargs="+", help="what the clip calls the policies, in the order of --checkpoint")


def wants_clip(options: argparse.Namespace, several: bool, shown: bool) -> bool:
    """Whether the flags ask for a clip from the side.

    Args:
        options: The flags.
        several: Whether there are several checkpoints.
        shown: Whether a visualizer is to show them.

    Returns:
        True if they do.

    Raises:
        UmcError: If flags contradict each other, or the clip could not be written.
    """
    if shown:
        if several or options.side or options.names is not None:
            raise UmcError("--viz shows one policy; give one --checkpoint, without --side and --names")
        return False
    suffix = options.out.suffix.lower() if options.out is not None else ""
    if suffix in OTHER_SUFFIXES:
        raise UmcError(f"--out {options.out}: cannot write {suffix}; choose {', '.join(CLIP_SUFFIXES)} or a folder")
    side = several or options.side
    if not side and options.names is not None:
        raise UmcError("--names are for clips; give several --checkpoint, or --side")
    if not side and suffix in CLIP_SUFFIXES:
        raise UmcError(f"--out {options.out}: the film of one policy goes into a folder; give one, or add --side")
    if side and options.names is not None and len(options.names) != len(options.checkpoint or ()):
        count = len(options.checkpoint or ())
        raise UmcError(f"--names has {len(options.names)} names for {count} checkpoints; give one for each")
    if suffix not in (".gif", ".png"):
        require_ffmpeg()
    return side


def film_clip(session: Session, protocol: Protocol, shot: Shot) -> int:
    """Films all policies of a session and writes the clip.

    Args:
        session: Checkpoints and task.
        protocol: Faults and command, one cell.
        shot: What to film.

    Returns:
        0.
    """
    options = session.options
    if options.num_envs not in (None, 1):
        print("one env is filmed; --num_envs is for --viz")
    options.num_envs = 1
    takes, step_dt = film_takes(session, protocol, shot, QUICK_PANEL if options.quick else PANEL)
    heading = Heading(
        title=f"{robot_title(session)}, scenario {shot.scenario}: {NAMES[shot.scenario]}",
        steps=shot.steps,
        step_dt=step_dt,
        onset=None if shot.scenario == HEALTHY else shot.onset,
        mark=mark_of(shot.scenario),
    )
    name = f"{session.task}_scenario{shot.scenario}_seed{protocol.seed}"
    default = results_folder(session.checkpoint) / "videos" / session.checkpoint.stem
    for path in clip_files(options.out or default, name):
        write_clip(path, takes, heading)
        print(f"{path.suffix[1:]}: {path}", flush=True)
    if not is_file_name(options.out):
        path = (options.out or default) / f"{name}.json"
        write_json(path, describe(session, protocol, heading, takes))
        print(f"json: {path}", flush=True)
    for take in takes:
        print(in_words(take, heading))
    return 0


def robot_title(session: Session) -> str:
    """Name of a session's robot as its tasks spell it.

    Args:
        session: Checkpoints and task.

    Returns:
        Such as ``Solo8``.
    """
    return session.info.task.split("-")[1]


def is_file_name(out: Path | None) -> bool:
    """Whether ``--out`` names one file and not a folder."""
    return out is not None and out.suffix.lower() in CLIP_SUFFIXES


def clip_files(out: Path, name: str) -> list[Path]:
    """Files that are going to be written.

    Args:
        out: What the user wants: a file, or a folder for all kinds.
        name: Name of the files in a folder, without suffix.

    Returns:
        Their paths.
    """
    return [out] if is_file_name(out) else [out / f"{name}{suffix}" for suffix in CLIP_SUFFIXES]


def mark_of(scenario: int) -> Color | None:
    """Which colour a scenario gives to faulty joints.

    Args:
        scenario: Scenario of the paper's table.

    Returns:
        Red, green, blue; None if nothing breaks. A joint that has lost its sensor, too, looks like a broken one.
    """
    kinds = [find_kind(name) for name in find_scenario(scenario).kinds]
    if not kinds:
        return None
    return ALARM if any(isinstance(kind, JointKind) for kind in kinds) else SENSOR


def film_takes(
    session: Session, protocol: Protocol, shot: Shot, size: tuple[int, int], steps: Container[int] | None = None
) -> tuple[list[Take], float]:
    """Lets every policy of a session act from the same start under the same fault.

    Args:
        session: Checkpoints and task; its env cfg is changed in place.
        protocol: Faults and command, one cell.
        shot: What to film.
        size: Width and height of a frame [px].
        steps: Env steps of which there is a frame; each :data:`EVERY`-th if not given.

    Returns:
        One take for each policy, and the duration of an env step [s].
    """
    from umc.evaluation.conditions import make_calm, set_faults
    from umc.evaluation.rollout import begin, progress
    from umc.evaluation.session import running_all
    from umc.rendering.camera import CAMERA, camera_cfg
    from umc.rendering.side_camera import SideCinema

    make_calm(session.env_cfg, protocol.command, 1, protocol.steps, protocol.seed)
    set_faults(session.env_cfg, protocol)
    setattr(session.env_cfg.scene, CAMERA, camera_cfg(*size, albedo=True))
    falls = Falls(session.env_cfg)
    names = names_of(session)
    steps = range(EVERY, shot.steps + 1, EVERY) if steps is None else steps
    takes = []
    with running_all(session) as (env, policies):
        cinema: SideCinema | None = None
        with progress(len(policies) * shot.steps, "filming") as bar:
            for name, policy in zip(names, policies, strict=True):
                bar.set_description(f"filming {name}")
                obs = begin(env, protocol)
                falls.resolve(env)
                cinema = cinema or SideCinema(env)
                cinema.restart()
                takes.append(_take(env, policy, obs, shot, Take(name), cinema, falls, bar, steps))
        return takes, env.step_dt


def names_of(session: Session) -> list[str]:
    """What a clip calls the policies.

    Args:
        session: Checkpoints, and the user's choice.

    Returns:
        One name each; the same twice if the user wants it.
    """
    if session.options.names is not None:
        return list(session.options.names)
    return labels_of([(one.path, one.info) for one in session.candidates])


def _take(
    env: ManagerBasedRLEnv,
    policy: LoadedPolicy,
    obs: Any,
    shot: Shot,
    take: Take,
    cinema: SideCinema,
    falls: Falls,
    bar: Any,
    steps: Container[int],
) -> Take:
    """Lets one policy act and takes a frame now and then."""
    from umc.evaluation.rollout import drive
    from umc.mdp import fault_state

    state = fault_state(env)
    measure = Tape(env.scene["robot"].data.root_pos_w.torch[0, :2] - env.scene.env_origins[0, :2])
    for step in drive(env, policy, obs, shot.steps, None):
        bar.update()
        _notice(take, step, state, falls.now(env))
        if take.broke is None:
            if step.number == shot.onset and shot.scenario != HEALTHY:
                measure.restart(step.position[0])
                cinema.strike()
            if take.ended is None:
                measure.stretch(step.position[0])
        if step.number % EVERY == 0:
            cinema.follow()
        if step.number in steps:
            # the robot of a simulation that failed has been put back to its start
            held = take.broke is not None and bool(take.frames)
            take.frames.append(take.frames[-1] if held else cinema.shoot_side(state))
            take.moments.append(Moment(step.number, measure.greatest))
    return take


def _notice(take: Take, step: Step, state: Any, lies: bool) -> None:
    """Writes down what has happened in a step."""
    if take.onset is None and bool(state.active[0]):
        take.onset = step.number
        faulty = state.joints[0].tolist()
        take.joints = tuple(name for name, hit in zip(state.joint_names, faulty, strict=True) if hit)
    if take.broke is None and bool(step.non_finite[0]):
        take.broke = step.number
    if take.fell is None and take.broke is None and lies:
        take.fell = step.number


def write_clip(path: Path, takes: Sequence[Take], heading: Heading) -> None:
    """Writes one file of a clip, whole or not at all.

    Args:
        path: MP4, GIF or PNG; the PNG is the storyboard.
        takes: The policies.
        heading: What they have in common.

    Raises:
        UmcError: If the file cannot be written.
    """
    suffix, count = path.suffix.lower(), len(takes[0].frames)
    fps = 1.0 / (heading.step_dt * EVERY)
    width = takes[0].frames[0].shape[1]
    if suffix == ".png":
        write_still(path, storyboard(takes, heading))
    elif suffix == ".mp4":
        write_film(path, (compose(takes, heading, number, width) for number in range(count)), fps)
    else:

        def frame_at(number: int, share: float) -> Frame:
            part = GIF_PANEL_SHARE if len(takes) > 1 else 1.0
            return compose(takes, heading, number, round(width * part * share))

        write_gif(path, count, frame_at, fps, KEPT_COLORS)
        if path.stat().st_size > MOST_BYTES:
            print(f"{path} has {path.stat().st_size / 1e6:.1f} MB; fewer --steps or policies make it smaller")


def in_words(take: Take, heading: Heading) -> str:
    """What became of a policy, in a line.

    Args:
        take: The policy's part of the clip.
        heading: What all have in common.

    Returns:
        The line.
    """
    words = [f"{take.name}: {take.moments[-1].distance:.2f} m"]
    if take.onset is not None:
        words.append(f"since {', '.join(take.joints)} failed at {take.onset * heading.step_dt:.2f} s")
    if take.fell is not None:
        words.append(f"fell at {take.fell * heading.step_dt:.2f} s")
    if take.broke is not None:
        words.append(f"simulation failed at {take.broke * heading.step_dt:.2f} s")
    return ", ".join(words).replace(" m, since", " m since")


def describe(session: Session, protocol: Protocol, heading: Heading, takes: Sequence[Take]) -> dict[str, Any]:
    """What a clip shows, in plain values, so that it can be made again.

    Args:
        session: Checkpoints and task.
        protocol: Faults and command.
        heading: What all policies have in common.
        takes: The policies.

    Returns:
        Plain values.
    """
    from umc.training.task_cfg import physics_name

    return {
        "task": session.task,
        "physics": physics_name(session.env_cfg),
        "scenario": protocol.scenarios[0],
        "seed": protocol.seed,
        "command": list(protocol.command),
        "steps": heading.steps,
        "step_dt": heading.step_dt,
        "policies": [
            {
                "name": take.name,
                "checkpoint": str(one.path),
                "sha256": one.sha256,
                "iteration": one.info.iteration,
                "onset": take.onset,
                "joints": list(take.joints),
                "distance": take.moments[-1].distance,
                "fell": take.fell,
                "simulation_failed": take.broke,
            }
            for one, take in zip(session.candidates, takes, strict=True)
        ],
    }
