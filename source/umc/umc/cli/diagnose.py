# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc diagnose``: measure a fault detector as a diagnosis system is measured, while a policy walks."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from umc.diagnosis.train import NUM_ENVS, prepare_rollout
from umc.evaluation.arguments import add_policy_arguments, num_policies, parse
from umc.utils.cli import MOST_WORKERS, check_combinations, path, within
from umc.utils.console import progress_bar, quiet, timed
from umc.utils.errors import UmcError
from umc.utils.isaaclab_flags import add_launcher_flags, asks_for_help, show_help
from umc.utils.outputs import require_writable
from umc.utils.process import lock_folder

if TYPE_CHECKING:
    from umc.diagnosis.faults import KindRange, RandomFaults
    from umc.diagnosis.recording import Recording

DESCRIPTION = "Measure a fault detector: what it finds, how late, on which joint, and its false alarms."

EXAMPLES = (
    "--detector logs/detector/detector.pt --checkpoint pretrained:a1_mlp_stage2 physics=ovphysx",
    "--detector logs/detector/detector.pt --checkpoint pretrained:a1_mlp_stage2 --kinds braking friction:0.05,0.2",
    "--detector logs/detector/detector.pt --task UMC-G1-Stage2 --policy motion.pt --trust --minutes 600",
    "--exported exported",
)

MINUTES = 120.0
"""Robot-minutes: about 1,000 faults, and an hour of healthy walking."""

MOST_MINUTES = 100_000.0

SEED = 1000
"""Seed of faults and starts unless one is given; trainings use 0."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``umc diagnose``."""
    add = parser.add_argument_group("diagnosis").add_argument
    add("--detector", type=path, help="file that umc train-detector has written")
    add("--exported", type=path, help="folder of umc export --detector: walk in plain MuJoCo")
    add("--mjcf", type=path, help="MJCF file of the --exported policy's robot, if UMC does not have it")
    add("--minutes", type=float, default=MINUTES, help=f"robot-minutes to walk ({MINUTES:g})")
    add("--num_envs", type=int, help=f"robots simulated at once ({NUM_ENVS})")
    add("--no_push", action="store_true", help="do not push the robots")
    add(
        "--kinds",
        nargs="+",
        metavar="KIND",
        help="faults that happen, of any kind of joints, sensors and commands, with severities (friction:0.05,0.2); "
        "without it those that detectors learn",
    )
    add("--workers", type=int, help="processes of --exported; as many as there are cores without it")
    add("--oracle", action="store_true", help="let the simulator tell the policy what is broken, not the detector")


IN_EXPORT = ("detector", "checkpoint", "policy", "trust", "task", "offline", "robot", "agent", "device", "num_envs")

CONTRADICTIONS: tuple[tuple[set[str], str], ...] = (
    *(
        ({"exported", flag}, f"--exported has policy, detector and task, and needs no GPU; leave out --{flag}")
        for flag in IN_EXPORT
    ),
    ({"workers", "detector"}, "--workers are those of --exported; leave it out"),
    ({"mjcf", "detector"}, "--mjcf is the model of --exported; leave it out"),
)


def main(argv: list[str]) -> int:
    """Run ``umc diagnose``; return its exit status."""
    if asks_for_help(argv):
        flags = [add_policy_arguments, add_arguments, add_launcher_flags]
        return show_help(argv, "diagnose", DESCRIPTION, EXAMPLES, flags, ("physics", "env", "parts"))
    with timed("loading packages"), quiet():
        options, overrides = parse(argv, add_arguments)
        from umc.detection import read_detector
        from umc.diagnosis.faults import LEARNED, KindRange, only
    if not 0.0 < options.minutes <= MOST_MINUTES:
        raise UmcError(f"--minutes is {options.minutes}; it has to be above 0 and at most {MOST_MINUTES:g}")
    check_combinations(options, CONTRADICTIONS)
    within(options.workers, "--workers", 1, MOST_WORKERS)
    options.seed = SEED if options.seed is None else options.seed
    faults = LEARNED if options.kinds is None else only([KindRange.read(text) for text in options.kinds])
    if options.exported is not None:
        return _in_mujoco(options, overrides, faults)
    if options.detector is None:
        raise UmcError("--detector is missing; give a file of umc train-detector, or an --exported policy")
    if num_policies(options) != 1:
        raise UmcError("a detector watches one policy; give one --checkpoint, or one --policy with --task")
    file = read_detector(options.detector)
    held_out = [KindRange.read(text) for text in file.held_out]
    with timed("reading the policy and its task"), quiet():
        session = prepare_rollout(options, overrides, faults)
    if (remark := file.remark(session.checkpoints[0].sha256)) is not None:
        print(remark, flush=True)
    from umc.diagnosis.recording import record
    from umc.diagnosis.rollout import Rollout
    from umc.evaluation.session import open_session
    from umc.mdp.observations import joint_layout
    from umc.tasks.task_cfg import physics_name

    out: Path = options.out or options.detector.parent / "diagnosis"
    require_writable(out, "--out")
    with lock_folder(out, f"diagnoses into {out}"):
        with open_session(session) as (env, (policy,)):
            file.require(session.info.robot, env.scene["robot"].joint_names)
            file.require_layout(joint_layout(env))
            steps = max(round(60.0 * options.minutes / (env.num_envs * env.step_dt)), 1)
            rollout = Rollout(env, policy, file.detector.to(env.device))
            rollout.detected_envs |= not options.oracle
            with progress_bar(steps, "walking") as bar:
                recording = record(rollout, steps, bar.update)
        about = {
            "detector": f"{options.detector.name}, {file.sha256[:12]}",
            "policy": f"{session.checkpoints[0].path.name}, {session.checkpoints[0].sha256[:12]}",
            "task": session.task,
            "engine": physics_name(session.env_cfg),
        }
        return _report(options, recording, about, out, held_out)


def _in_mujoco(options: argparse.Namespace, overrides: Sequence[str], faults: RandomFaults) -> int:
    """Measure an exported policy and its detector."""
    if overrides:
        raise UmcError(f"{overrides[0]} has no effect on an exported policy; leave it out")
    with timed("loading MuJoCo"):
        import mujoco

        from umc.diagnosis.faults import KindRange
        from umc.sim2sim.diagnosis import diagnosis_rollout, record
        from umc.utils.description import description_file

    cfg = diagnosis_rollout(description_file(options.exported), options.minutes, faults, options.seed)
    cfg = replace(cfg, oracle=options.oracle, push=not options.no_push, mjcf=options.mjcf)
    out: Path = options.out or cfg.policy.parent / "diagnosis"
    require_writable(out, "--out")
    detector, known = cfg.runner().detector, cfg.description
    assert detector is not None
    about = {
        "detector": f"{known['detector']['file']}, {known['detector']['sha256'][:12]}",
        "policy": f"{known['checkpoint']['file']}, {known['checkpoint']['sha256'][:12]}",
        "task": f"{known['trained']['task']}, flat ground, command {cfg.command}",
        "engine": f"mujoco {mujoco.__version__}",
    }
    held_out = [KindRange.read(text) for text in detector.held_out]
    with lock_folder(out, f"diagnoses into {out}"):
        return _report(options, record(cfg, options.workers), about, out, held_out)


def _report(
    options: argparse.Namespace,
    recording: Recording,
    about: Mapping[str, str],
    out: Path,
    held_out: Sequence[KindRange],
) -> int:
    from umc.diagnosis.report import write_report

    more = {
        "mask and flag from": "the simulator" if options.oracle else "the detector",
        "pushes": "no" if options.no_push else "yes",
        "seed": options.seed,
    }
    if held_out:
        more["held out of the training"] = ", ".join(map(str, held_out))
    print(f"report: {write_report(recording, {**about, **more}, out, held_out)}", flush=True)
    return 0
