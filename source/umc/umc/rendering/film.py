# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Film one or several policies, side by side, from the same start under the same fault."""

from __future__ import annotations

import inspect
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.evaluation.conditions import set_protocol
from umc.evaluation.labels import labels_of
from umc.evaluation.metrics import Step
from umc.evaluation.protocol import Protocol, ScenarioId, changed
from umc.evaluation.rollout import reset_batch, step_policy
from umc.evaluation.session import Session, open_session
from umc.evaluation.study import faulty_joints
from umc.faults import find_kind, is_scenario
from umc.faults.kinds import ImuKind
from umc.rendering.colors import color_of, rgb
from umc.rendering.film_cfg import FILM_SUFFIXES, QUICK, FilmCfg, film_files
from umc.rendering.layout import Color, Heading, Moment, Take, compose, storyboard
from umc.rendering.writers import MAX_GIF_BYTES, Frame, write_gif, write_mp4, write_png
from umc.rl.pretrained import results_folder
from umc.tasks.parts import parts_of
from umc.utils.console import progress_bar
from umc.utils.io import fingerprint, write_json
from umc.utils.naming import TASK_NAME

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

    from umc.rl.policy import Policy

KIND_WORDS = {
    "dead": "dead sensors",
    "rom": "smaller range of motion",
    "effort": "weak motors",
    "velocity": "slow joints",
}
"""Kinds of the paper's scenarios in the title of a film."""

GIF_SHARE = 2 / 3
"""Width of the GIF of several policies as a part of the MP4's [-]: 644 px for two."""


def film(session: Session, protocol: Protocol, cfg: FilmCfg) -> int:
    """Film all policies of a session, write the files that ``--out`` asks for, and return 0."""
    options = session.options
    if options.num_envs not in (None, 1):
        print("a film shows one env; --num_envs is for --viz")
    options.num_envs = 1
    takes, step_dt = film_takes(session, protocol, cfg)
    kinds = tuple(protocol.scenario(cfg.scenario).kinds)
    heading = Heading(
        title=f"{robot_title(session)}, {scenario_title(cfg.scenario, kinds, cfg.changes)}",
        steps=cfg.steps,
        step_dt=step_dt,
        onset=cfg.onset if kinds else None,
        mark=fault_color(kinds),
    )
    stem = session.checkpoints[0].stem  # several descriptions can share a network
    if len(session.checkpoints) > 1:
        stem += f"_and_others_{fingerprint([[one.sha256, one.stem] for one in session.checkpoints])[:8]}"
    out = options.out or results_folder(session.checkpoint) / "videos" / stem
    name = film_name(session.task, protocol, cfg)
    for path in film_files(out, name):
        write_film(path, takes, heading, 1.0 / (step_dt * cfg.every))
        print(f"{path.suffix[1:]}: {path}", flush=True)
    if out.suffix.lower() not in FILM_SUFFIXES:
        path = out / f"{name}.json"
        write_json(path, describe(session, protocol, heading, takes))
        print(f"json: {path}", flush=True)
    for take in takes:
        print(summary(take, heading))
    return 0


def film_name(task: str, protocol: Protocol, cfg: FilmCfg) -> str:
    """Return a name for a film's files: a fingerprint tells protocols, joints, onsets and lengths apart."""
    scenario = f"scenario{cfg.scenario}" if isinstance(cfg.scenario, int) else cfg.scenario
    name = f"{task}_{scenario}_seed{protocol.seed}"
    length = (cfg.onset, cfg.steps)
    usual = any(length == (one.onset, one.steps) for one in (FilmCfg(), QUICK))
    chosen = cfg.file is not None or cfg.changes or cfg.joints or not usual
    return f"{name}_{fingerprint(protocol.describe())[:8]}" if chosen else name


def robot_title(session: Session) -> str:
    """Return the name of a session's robot as its tasks spell it, such as ``Solo8``; the id of another's task."""
    task = session.info.task
    return task.split("-")[1] if TASK_NAME.fullmatch(task) else task


def scenario_title(scenario: ScenarioId, kinds: Sequence[str], changes: Mapping[str, Any] | None = None) -> str:
    """Return a scenario in words, with the severities among the changes of its protocol."""
    words = ", ".join(KIND_WORDS.get(kind, kind.replace("_", " ")) for kind in kinds) or "healthy"
    given = changed(changes or {}, "severity")
    if severities := [f"{key} {value}" for key, value in given.items() if key.split(".")[0] in kinds]:
        words += f" ({', '.join(severities)})"
    if isinstance(scenario, int):
        return f"scenario {scenario}: {words}"
    return words if is_scenario(scenario) else f"{scenario.replace('_', ' ')}: {words}"


def fault_color(kinds: Sequence[str]) -> Color | None:
    """Return the color of the links of joints with these faults; a fault of the IMU colors none."""
    color = color_of([kind for kind in kinds if not isinstance(find_kind(kind), ImuKind)])
    return None if color is None else rgb(color)


class FallDetector:
    """Detector of falls in place of an env cfg's terminations, which it removes, so that a film shows what follows."""

    def __init__(self, env_cfg: Any) -> None:
        no_fall = parts_of(env_cfg).non_finite
        self._terms = {
            name: term
            for name, term in vars(env_cfg.terminations).items()
            if hasattr(term, "func") and not term.time_out and name != no_fall
        }
        for name in self._terms:
            setattr(env_cfg.terminations, name, None)

    def resolve(self, env: ManagerBasedRLEnv) -> None:
        """Find the bodies that the terms look at, and make those that are classes; call it once, with the env."""
        from isaaclab.managers import SceneEntityCfg

        for term in self._terms.values():
            for value in term.params.values():
                if isinstance(value, SceneEntityCfg):
                    value.resolve(env.scene)
            if inspect.isclass(term.func):
                term.func = term.func(cfg=term, env=env)

    def fallen(self, env: ManagerBasedRLEnv) -> bool:
        """Return whether training would end the episode of env 0."""
        return any(bool(term.func(env, **term.params)[0]) for term in self._terms.values())


def film_takes(
    session: Session, protocol: Protocol, cfg: FilmCfg, steps: Container[int] | None = None
) -> tuple[list[Take], float]:
    """Film every policy from the same start under the same fault; return their takes and the env step's length [s]."""
    from umc.mdp import fault_state
    from umc.rendering.camera import CAMERA, FollowCamera, camera_cfg

    set_protocol(session.env_cfg, protocol, 1)
    setattr(session.env_cfg.scene, CAMERA, camera_cfg(*cfg.size))
    falls = FallDetector(session.env_cfg)
    has_faults = bool(protocol.scenario(cfg.scenario).kinds)
    steps = range(cfg.every, cfg.steps + 1, cfg.every) if steps is None else steps
    names = session.options.names or labels_of([(one.path, one.info) for one in session.checkpoints])
    takes: list[Take] = []
    camera: FollowCamera | None = None

    def record(name: str, policy: Policy) -> Take:
        nonlocal camera
        obs = reset_batch(env, protocol)
        state = fault_state(env)
        if camera is None:
            falls.resolve(env)
            camera = FollowCamera(env, state, cfg.view)
        camera.restart()
        take = Take(name)
        start, distance = (env.scene["robot"].data.root_pos_w.torch - env.scene.env_origins)[0, :2].clone(), 0.0
        for step in step_policy(env, policy, obs, cfg.steps, bar):
            _note_events(take, step, state, falls.fallen(env))
            if take.failed is None and step.number == cfg.onset and has_faults:
                start, distance = step.position[0].clone(), 0.0
                camera.mark_fault()
            if take.ended is None:
                distance = max(distance, float((step.position[0] - start).norm()))
            if step.number % cfg.every == 0:
                camera.follow()
            if step.number in steps:
                # the robot of a simulation that failed has been put back to its start
                held = take.failed is not None and bool(take.frames)
                take.frames.append(take.frames[-1] if held else camera.render())
                take.moments.append(Moment(step.number, distance))
        return take

    with open_session(session) as (env, policies):
        with progress_bar(len(policies) * cfg.steps, "filming") as bar:
            for name, policy in zip(names, policies, strict=True):
                bar.set_description(f"filming {name}")
                takes.append(record(name, policy))
        return takes, env.step_dt


def _note_events(take: Take, step: Step, state: Any, fallen: bool) -> None:
    """Note when the fault began, the robot fell or the simulation failed."""
    if take.failed is None and bool(step.non_finite[0]):
        take.failed = step.number
    if take.onset is None and take.failed is None and bool(state.active[0]):
        take.onset = step.number
        faulty = faulty_joints(state)[0].tolist()
        take.joints = tuple(name for name, hit in zip(state.joint_names, faulty, strict=True) if hit)
    if take.fell is None and take.failed is None and fallen:
        take.fell = step.number


def write_film(path: Path, takes: Sequence[Take], heading: Heading, fps: float) -> None:
    """Write an MP4, a GIF or, as a PNG, the storyboard; UmcError if the file cannot be written."""

    def pages() -> Iterator[Frame]:
        return (compose(takes, heading, index) for index in range(len(takes[0].frames)))

    suffix = path.suffix.lower()
    if suffix == ".png":
        write_png(path, storyboard(takes, heading))
    elif suffix == ".mp4":
        write_mp4(path, pages(), fps)
    else:
        width = next(pages()).shape[1]
        write_gif(path, pages, fps, round(GIF_SHARE * width) if len(takes) > 1 else width)
        if path.stat().st_size > MAX_GIF_BYTES:
            print(f"{path} has {path.stat().st_size / 1e6:.1f} MB; fewer --steps or policies make it smaller")


def summary(take: Take, heading: Heading) -> str:
    """Describe in one line how far a policy walked and how it ended."""
    words = f"{take.name}: {take.moments[-1].distance:.2f} m"
    if take.onset is not None:
        words += f" since {', '.join(take.joints) or 'the IMU'} failed at {take.onset * heading.step_dt:.2f} s"
    if take.fell is not None:
        words += f", fell at {take.fell * heading.step_dt:.2f} s"
    if take.failed is not None:
        words += f", simulation failed at {take.failed * heading.step_dt:.2f} s"
    return words


def describe(session: Session, protocol: Protocol, heading: Heading, takes: Sequence[Take]) -> dict[str, Any]:
    """Describe a film in plain values, so that it can be repeated."""
    from umc.tasks.task_cfg import physics_name

    return {
        "task": session.task,
        "physics": physics_name(session.env_cfg),
        "scenario": protocol.scenarios[0],
        "seed": protocol.seed,
        "command": list(protocol.command),
        "protocol": protocol.describe(),
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
                "simulation_failed": take.failed,
            }
            for one, take in zip(session.checkpoints, takes, strict=True)
        ],
    }
