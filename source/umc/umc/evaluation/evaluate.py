# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What ``umc evaluate`` does once its flags are read: choose conditions, simulate what is missing, write the report."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import NonNegativeInt, PositiveInt, Strict

from umc.evaluation.arguments import HEALTHY_SECONDS, MOST_EPISODES, OWN_SECTIONS, num_policies, of_env
from umc.evaluation.checkpoints import External, detector_remarks, with_detections
from umc.evaluation.evaluator import Evaluator, Part, code_fingerprint, read_share
from umc.evaluation.gait import GAIT
from umc.evaluation.grid import apply_grid, trained_policies
from umc.evaluation.labels import own_labels
from umc.evaluation.protocol import DEFAULT_PROTOCOL, Protocol, about_rate, disturbances, protocol_for
from umc.evaluation.report import gait_report, gait_table, load_table, report_study
from umc.evaluation.session import AS_EVALUATED, Session, open_session, prepare
from umc.evaluation.study import STUDY, Study, load_study, protocol_of, save_study
from umc.rl.pretrained import results_folder
from umc.training.sweep_file import SweepFile, read_sweep_file
from umc.utils.cli import MOST_WORKERS, within
from umc.utils.config import FileModel, FolderName, read_overrides, validated
from umc.utils.console import quiet, timed
from umc.utils.errors import UmcError
from umc.utils.executor import ray_executor
from umc.utils.io import fingerprint, write_json
from umc.utils.outputs import require_writable
from umc.utils.process import LOCK, lock_folder
from umc.utils.text import read_json

CPU_ENVS = 256
"""Envs without ``--num_envs`` on a CPU."""

QUICK_ENVS = 16
"""Envs of ``--quick``."""

HEALTHY_ENVS = 64
"""Envs of ``--healthy``."""


def evaluate(
    options: argparse.Namespace,
    overrides: Sequence[str],
    launcher: Sequence[str],
    folder: str = "evaluation",
    check: Callable[[Evaluator], None] = lambda _: None,
) -> tuple[Study, Path] | None:
    """Evaluate policies, or collect what other processes simulated, and write the report.

    ``launcher`` is what workers of a cluster need of the command line: launcher flags, presets, overrides of the task.
    ``folder`` is part of the default ``--out``. ``check`` gets the conditions before anything is simulated. Returns the
    study and its folder, or None if this process has made only a part of it, or measured a gait.
    """
    within(options.episodes, "--episodes", 1, MOST_EPISODES)
    within(options.ray, "--ray", 1, MOST_WORKERS)
    if options.out is not None:
        require_writable(options.out, "--out")
    changes = {section: read_overrides(overrides, section) for section in OWN_SECTIONS}
    with timed("reading policies and their task"), quiet():
        sweep = _read_sweep(options, changes["sweep"])
        if options.healthy and num_policies(options) > 1:
            raise UmcError("--healthy measures one policy; give one --checkpoint or --policy")
        session = prepare(options, of_env(overrides), stage=1 if options.healthy else 2)
        if options.detection:
            session.checkpoints = with_detections(session.checkpoints, options.detection, session.env_cfg)
    if options.plan is not None:
        simulate_plan(session, read_json(options.plan))
        return None
    protocol = choose_protocol(session, sweep, changes["protocol"])
    if options.healthy:
        protocol.check_gait(changes["protocol"])
    out = options.out or _default_folder(session, sweep.name if sweep else protocol.name, folder)
    require_writable(out, "--out")
    share = (0, 1) if options.share is None else read_share(options.share)
    # shares write different batches, on several machines or on one
    lock = LOCK if options.share is None else f"{LOCK}_{share[0] + 1}_of_{share[1]}"
    evaluator: Evaluator | None = None
    if not options.healthy:
        with timed("looking for batches that are done"), quiet():
            num_envs = options.num_envs or _default_envs(session, protocol)
            episodes = options.episodes or (sweep.episodes if sweep and not options.quick else None)
            evaluator = Evaluator(session, protocol, num_envs, episodes, out)
            check(evaluator)
    with lock_folder(out, f"evaluates into {out}", lock):
        if evaluator is None:
            measure_gait(session, protocol, out)
            return None
        _simulate_missing(evaluator, share, launcher)
        if options.share is not None:
            return None
        study = evaluator.study()
        save_study(out / STUDY, study)
        report_study(study, out)
        return study, out


def _simulate_missing(evaluator: Evaluator, share: tuple[int, int], launcher: Sequence[str]) -> None:
    """Simulate what is not done yet of a share, here or on workers."""
    session, options = evaluator.session, evaluator.session.options
    print(*evaluator.describe(), sep="\n")
    if done := len(evaluator.parts) - len(evaluator.missing()):
        print(f"{done} of {len(evaluator.parts)} batches are already done, in {evaluator.folder}", flush=True)
    missing = evaluator.missing(share)
    if missing and options.ray is not None:
        if functions := [text for text in options.policy or () if ":" in Path(text).name]:
            raise UmcError(f"--ray sends files to workers, not functions ({functions[0]}); leave --ray out")
        count = min(options.ray, len(missing))
        with ray_executor(count, options.ray_address, session.typed_device) as executor:
            print(f"{len(missing)} batches on {count} workers of Ray", flush=True)
            evaluator.simulate_on(executor, missing, worker_arguments(session, launcher))
    elif missing:
        evaluator.simulate(missing)


class SharePlan(FileModel):
    """What :meth:`Evaluator.simulate_on` asks of another process."""

    code: str
    device: str
    protocol: dict[str, Any]
    num_envs: PositiveInt
    episodes: PositiveInt
    parts: list[Annotated[tuple[NonNegativeInt, NonNegativeInt, FolderName], Strict(False)]]
    """Policy, batch and name of the result's file."""


def worker_arguments(session: Session, launcher: Sequence[str]) -> list[str]:
    """Return what a worker gets besides its checkpoints and its plan, since run folders do not travel."""
    return [*launcher, *session.repeated]


def simulate_plan(session: Session, plan: Any) -> None:
    """Simulate the parts that :meth:`Evaluator.simulate_on` planned in another process."""
    checked = validated(SharePlan, plan, "the plan of this worker")
    if checked.code != code_fingerprint():
        raise UmcError("this worker has another version of umc; install the same one on all machines")
    if checked.device != (own := session.device.split(":")[0]):
        raise UmcError(
            f"this worker simulates on {own}, and its results would count as those of {checked.device}; "
            f"give --device {own}, on a machine that has it, or --device {checked.device}"
        )
    with quiet():
        protocol = protocol_of(checked.protocol)
        evaluator = Evaluator(session, protocol, checked.num_envs, checked.episodes, session.options.out)
    # under the names by which the other process finds them
    evaluator.simulate([Part(policy, batch, evaluator.folder / name) for policy, batch, name in checked.parts])


def report_again(out: Path, labels: Sequence[str] | None = None) -> None:
    """Write the report of an evaluation anew, with other names of the policies if given."""
    with timed("reading the study"):
        study = load_study(out / STUDY)
    if labels is not None:
        names = own_labels(labels, len(study.policies))
        policies = tuple(replace(one, label=name) for one, name in zip(study.policies, names, strict=True))
        study = replace(study, policies=policies)
    require_writable(out, "--report_only")
    with lock_folder(out, f"evaluates into {out}"):
        report_study(study, out)


def measure_gait(session: Session, protocol: Protocol, out: Path) -> None:
    """Measure and report how healthy robots walk under the protocol's command."""
    from umc.evaluation.conditions import disable_training_randomization, set_healthy
    from umc.evaluation.rollout import run_healthy
    from umc.tasks.parts import required_feet
    from umc.tasks.task_cfg import physics_name

    options, cfg = session.options, session.env_cfg
    num_envs = options.num_envs or (QUICK_ENVS if options.quick else HEALTHY_ENVS)
    steps = protocol.steps if options.quick else round(HEALTHY_SECONDS / (cfg.sim.dt * cfg.decimation))
    feet = required_feet(cfg)
    disable_training_randomization(cfg, protocol.command, num_envs, steps, protocol.seed, protocol.noise)
    set_healthy(cfg)
    session.remarks += tuple(detector_remarks(session.checkpoints, cfg))
    with open_session(session) as (env, (policy,)):
        gait, loads = run_healthy(env, policy, feet, protocol, steps)
    about = {
        "task": session.task,
        "checkpoint": session.checkpoints[0].about,
        "physics": physics_name(cfg),
        "device": session.device,
        "num_envs": num_envs,
        "seed": cfg.seed,
        **AS_EVALUATED,
        **disturbances(protocol.noise, protocol.push),
    }
    print(gait_table(gait))
    print(load_table(loads, protocol.severity))
    write_json(out / GAIT, gait_report(gait, about, loads), indent=1, allow_nan=False)
    print(f"report: {out / GAIT}", flush=True)


def choose_protocol(session: Session, sweep: SweepFile | None, changes: Mapping[str, Any]) -> Protocol:
    """Return the protocol of the flags, of the sweep, or else the paper's, with the user's changes."""
    from umc.evaluation.conditions import on_tracks

    options, robot = session.options, session.info.robot
    name = options.protocol
    if name is None:
        name = sweep and sweep.protocol
    scenarios = options.scenarios or (sweep and sweep.scenarios)
    protocol = protocol_for(robot, scenarios, options.radii, options.seed, name, changes)
    if options.quick:
        protocol = protocol.quick()
    elif not options.healthy:  # which lasts as long at any rate
        step_dt = session.env_cfg.sim.dt * session.env_cfg.decimation
        session.remarks += tuple(about_rate(robot, name, changes, step_dt, typed_onsets=sweep is None))
    if not on_tracks(session.env_cfg):
        protocol = protocol.without_track()  # so that the report does not claim it
    if sweep:
        _check_grid(sweep, options.seed, changes)
        protocol = apply_grid(sweep, protocol, session.info.joint_names, options.quick)
    if not options.healthy:
        protocol.check_severities(changes)
    protocol.check_faults(session.info.joint_names)
    return protocol


def _check_grid(sweep: SweepFile, seed: int | None, changes: Mapping[str, Any]) -> None:
    """Raise UmcError for what a user sets of the settings and the sweep's grid would replace."""
    axes = ("seed", "onset", "severity")
    typed = {name: f"protocol.settings.{name}" for name in axes if f"settings.{name}" in changes}
    typed |= {} if seed is None else {"seed": "--seed"}
    for name, flag in typed.items():
        if sweep.grid is not None and getattr(sweep.grid, name):
            raise UmcError(f"{flag}: sweep {sweep.name} has its own; give sweep.grid.{name}=[...] in its place")
    for path, value in changes.items():
        several = path.startswith("settings.") and isinstance(value, list) and any(one != value[0] for one in value)
        if sweep.grid is not None and (path == "settings" or several):
            raise UmcError(
                f"protocol.{path}: a sweep with a grid repeats one setting; give --seed, one value for all settings of "
                "the protocol, or sweep.grid.seed=[...]"
            )


def _read_sweep(options: argparse.Namespace, changes: Mapping[str, Any]) -> SweepFile | None:
    """Return the sweep, if there is one, and set its policies where no checkpoint is given."""
    if options.sweep is None:
        if changes:
            raise UmcError(f"sweep.{next(iter(changes))}: there is no --sweep to change; give one, or leave it out")
        return None
    sweep = read_sweep_file(options.sweep, changes)
    if not num_policies(options) and sweep.agents:
        if options.robot is None:
            raise UmcError(f"--robot is missing; give the robot whose policies sweep {sweep.name} compares")
        options.checkpoint = trained_policies(sweep, options.robot.lower(), options.logs)
    return sweep


def _default_folder(session: Session, name: str, folder: str) -> Path:
    sources, quick = session.options.detection or (), "_quick" if session.options.quick else ""
    if len(session.checkpoints) == 1 and session.options.sweep is None and not sources:
        protocol = "" if name == DEFAULT_PROTOCOL else f"_{name}"
        own = f"{session.checkpoints[0].stem}{protocol}{quick}"
        return results_folder(session.checkpoint) / folder / own.replace(" ", "_")
    described = [one.stem for one in session.checkpoints if isinstance(one, External)]
    which = fingerprint([*(one.sha256 for one in session.checkpoints), *described, *sources])[:8]
    return session.options.logs / folder / f"{name.replace(' ', '_')}_{session.info.robot}_{which}{quick}"


def _default_envs(session: Session, protocol: Protocol) -> int:
    if session.options.quick:
        return max(QUICK_ENVS, len(protocol.cells))
    # the paper's robots of one scenario and setting at once on a GPU; --episodes asks for as many of each
    return max(CPU_ENVS if session.device == "cpu" else protocol.num_envs, len(protocol.cells))
