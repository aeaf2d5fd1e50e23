# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc sim2sim``: the same evaluation in another engine; see docs/mujoco.md."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.evaluation.arguments import (
    HEALTHY,
    HEALTHY_SECONDS,
    MOST_EPISODES,
    MOST_STEPS,
    overrides_first,
    scenario,
)
from umc.utils.cli import MOST_WORKERS, Parser, check_combinations, check_seed, path, within
from umc.utils.config import override_key, read_overrides
from umc.utils.console import quiet, timed
from umc.utils.errors import UmcError, shown
from umc.utils.io import write_json
from umc.utils.isaaclab_flags import asks_for_help, show_help
from umc.utils.outputs import require_writable
from umc.utils.process import lock_folder

if TYPE_CHECKING:
    from umc.evaluation.protocol import Protocol
    from umc.evaluation.study import Study
    from umc.sim2sim.robot import SolverCfg
    from umc.sim2sim.rollout import RolloutCfg

EPISODES = 8
"""Robots of each cell without ``--episodes``."""

HEALTHY_ROBOTS = 16
"""Robots of ``--healthy`` without ``--episodes``."""

LONGEST_CONTACT_TIME = 1.0
"""Largest time constant of contacts [s]; with a longer one the ground does not carry the robot."""

MOST = {"episodes": MOST_EPISODES, "steps": MOST_STEPS, "workers": MOST_WORKERS, "substeps": 1000}
"""Greatest values of flags that take a count."""

LEDGER_READS = ("command", "radii", "noise", "push")
"""Fields of a protocol that ``--ledger`` reads."""

OWN_FAULTS = (
    "--ledger excludes --healthy, --against, --scenarios and --seed, since the ledger has the faults; leave them out"
)

CONTRADICTIONS: tuple[tuple[set[str], str], ...] = (
    *(({"ledger", flag}, OWN_FAULTS) for flag in ("healthy", "against", "scenarios", "seed")),
    *(
        ({"healthy", flag}, f"--healthy walks without faults; leave out --{flag}")
        for flag in ("against", "scenarios", "radii")
    ),
)

DESCRIPTION = "Evaluate a policy in plain MuJoCo, on flat ground, under the faults of an Isaac Lab run."

EXAMPLES = (
    "--policy exported --healthy",
    "--policy exported --against logs/pretrained/a1_mlp_stage2/evaluation/a1_mlp_stage2",
    "--task UMC-G1-Stage2 --policy walk.onnx",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``umc sim2sim``."""
    add = parser.add_argument
    add("--policy", help="folder that umc export wrote, or its .json or .onnx; with --task, an external policy")
    add("--task", help="gym id of the task whose observations an external policy reads (docs/external_policies.md)")
    add("--trust", action="store_true", help="run the code in a TorchScript file")
    add("--robot", help="robot that the policy must be for")
    add("--protocol", help="file in config/protocols, or path of one (umc_paper; any_robot for robots not in it)")
    add("--ledger", type=path, help="replay the faults of this ledger instead of a protocol's")
    add("--scenarios", type=scenario, nargs="+", help="scenarios of the protocol; all without it")
    add("--episodes", type=int, help=f"robots of each cell ({EPISODES}); episodes of each env of a ledger (all)")
    add(
        "--steps",
        type=int,
        help="length of an episode [env steps], 2 or more; the protocol's or the ledger's without it",
    )
    add("--seed", type=int, help="one seed for all settings; the protocol's without it")
    add("--radii", type=float, nargs="+", help="radii of reached@k [m]; the protocol's without it")
    add("--against", type=path, help="folder of an evaluation's report, or its study.pt: report the agreement")
    add("--healthy", action="store_true", help="measure the gait of healthy robots instead, for 10 s")
    add("--substeps", type=int, default=1, help="MuJoCo's steps in the time that a torque is held (1)")
    add("--contact_time", type=float, help="time constant of contacts [s], two of MuJoCo's steps or more (0.02)")
    add("--mjcf", type=path, help="MJCF file of a robot that UMC does not have; UMC's own without it")
    add("--clamp", action="store_true", help="clamp targets to the joint limits, as PolicyRunner does on a robot")
    add("--workers", type=int, help="processes; as many as there are cores without it")
    add("--out", type=path, help="folder to write to; 'mujoco' beside the policy without it")


def main(argv: list[str]) -> int:
    """Run ``umc sim2sim``; return its exit status."""
    if asks_for_help(argv):
        return show_help(argv, "sim2sim", DESCRIPTION, EXAMPLES, [add_arguments], ["env", "protocol"])
    parser = Parser(add_help=False)
    add_arguments(parser)
    options, typed = parser.parse_with_overrides(overrides_first(argv), ("env.", "protocol."))
    options.changes = read_overrides(typed, "protocol")
    overrides = [token for token in typed if not token.startswith("protocol.")]
    with timed("loading packages"):
        import umc.evaluation.report
        import umc.sim2sim.study  # noqa: F401  (what takes seconds of the imports below)

    if not options.policy:
        raise UmcError("--policy is missing; give a folder that umc export wrote")
    description, folder = _read_policy(options, overrides)
    robot = description["trained"]["robot"].lower()
    _check(options, robot)
    options.robot, options.command_line = robot, shlex.join(["umc", "sim2sim", *argv])
    options.out = options.out or folder
    require_writable(options.out, "--out")
    other = [*description["start"]["other_events"], *description["fall"]["other_terminations"]]
    if other:
        print(f"not reproduced in MuJoCo: {', '.join(other)} of {description['trained']['task']}")
    work = _healthy if options.healthy else _protocol if options.ledger is None else _ledger
    from umc.sim2sim.robot import SolverCfg

    with lock_folder(options.out, f"evaluates into {options.out}"):
        return work(options, description, SolverCfg(options.substeps, options.contact_time))


def _read_policy(options: argparse.Namespace, overrides: Sequence[str]) -> tuple[Mapping[str, Any], Path]:
    """Replace the name of a policy by the policy; return its description and the folder for its results."""
    if options.task is not None:
        for token in overrides:
            if override_key(token).startswith("env.events.faults"):
                raise UmcError(f"{shown(token)}: the faults here are the protocol's; leave it out")
        source = options.policy  # several descriptions can share a network
        with timed("reading policy and task"), quiet():
            from umc.sim2sim.external_task import read_external_policy

            policy = read_external_policy(options.policy, options.task, overrides, options.trust)
        options.policy = policy
        return policy.task, policy.network.parent / "mujoco" / Path(source).stem
    from umc.utils.description import description_file, read_description

    path = Path(options.policy)
    if not os.path.isdir(path) and not os.path.isfile(path.with_suffix(".json")):
        where = shown(options.policy)
        raise UmcError(
            f"{where} is no exported policy; export it with umc export, or give the --task of another policy"
        )
    if options.trust:
        raise UmcError("--trust needs --task; an exported policy runs no code")
    if overrides:
        raise UmcError(f"{overrides[0]} needs --task; an exported policy has its task inside")
    options.policy = description_file(options.policy)
    return read_description(options.policy), options.policy.parent / "mujoco"


def _check(options: argparse.Namespace, robot: str) -> None:
    """Refuse flags that contradict each other or the policy."""
    if options.robot is not None and options.robot.lower() != robot:
        raise UmcError(f"the policy was trained for robot {robot}, not {options.robot}; leave --robot out")
    for flag, high in MOST.items():
        within(getattr(options, flag), f"--{flag}", 1, high)
    check_seed(options.seed)
    contact_time = options.contact_time
    if contact_time is not None and not 0.0 < contact_time <= LONGEST_CONTACT_TIME:
        raise UmcError(f"--contact_time is {contact_time}; it has to be above 0 and at most {LONGEST_CONTACT_TIME} s")
    check_combinations(options, CONTRADICTIONS)


def _healthy(options: argparse.Namespace, description: Mapping[str, Any], solver: SolverCfg) -> int:
    from umc.evaluation.gait import GAIT
    from umc.evaluation.protocol import GAIT_READS, Setting, protocol_for
    from umc.evaluation.report import gait_report, gait_table
    from umc.sim2sim.study import about, measure_gait, protocol_rollout

    steps = options.steps or round(HEALTHY_SECONDS / description["control"]["policy_dt_s"])
    setting = Setting(seed=options.seed or 0, onset=1)  # nothing sets in: only where the figures count from
    paper = protocol_for(options.robot, [HEALTHY], name=options.protocol, overrides=options.changes)
    paper.check_gait(options.changes, [field for field in GAIT_READS if field != "severity"])  # of a table of loads
    protocol = replace(paper, steps=steps, settings=(setting,))
    cfg = protocol_rollout(protocol, options.policy, options.episodes or HEALTHY_ROBOTS, solver)
    cfg = replace(cfg, clamp=options.clamp, mjcf=options.mjcf)
    gait = measure_gait(cfg, options.workers)
    print(gait_table(gait))
    write_json(options.out / GAIT, gait_report(gait, about(cfg, options.command_line)), indent=1, allow_nan=False)
    print(f"report: {options.out / GAIT}")
    return 0


def _protocol(options: argparse.Namespace, description: Mapping[str, Any], solver: SolverCfg) -> int:
    from umc.evaluation.protocol import about_rate, protocol_for
    from umc.sim2sim.agreement import agreement, find_result, pair_up, require_same_conditions, write_agreement
    from umc.sim2sim.study import protocol_rollout

    overrides = options.changes | ({} if options.steps is None else {"steps": options.steps})
    protocol = protocol_for(
        options.robot, options.scenarios, options.radii, options.seed, name=options.protocol, overrides=overrides
    ).without_track()
    other = None if options.against is None else find_result(options.against, description)
    if other is not None:
        require_same_conditions(other[0].protocol, protocol)
    cfg = protocol_rollout(protocol, options.policy, options.episodes or EPISODES, solver)
    for line in about_rate(options.robot, options.protocol, overrides, description["control"]["policy_dt_s"]):
        print(line)
    robots = f"{len(protocol.cells)} cells x {len(cfg.env) // len(protocol.cells)} robots"
    print(f"protocol {protocol.name} of {options.robot}: {robots}, {protocol.steps} steps")
    study = _evaluate(cfg, protocol, options)
    if other is not None:
        rows = agreement(protocol, *pair_up(*other, study))
        write_agreement(rows, str(other[0].about.get("physics", "the other")), options.out)
    return 0


def _ledger(options: argparse.Namespace, _description: Mapping[str, Any], solver: SolverCfg) -> int:
    from umc.evaluation.protocol import protocol_for
    from umc.faults import read_ledger
    from umc.sim2sim.agreement import ledger_agreement, write_agreement
    from umc.sim2sim.robot import mjcf_robots
    from umc.sim2sim.study import ledger_rollout

    if ignored := [path for path in options.changes if path.split(".")[0] not in LEDGER_READS]:
        words = ", ".join(LEDGER_READS)
        raise UmcError(f"protocol.{ignored[0]}: of a protocol, --ledger reads {words} alone; leave it out")
    ledger = read_ledger(options.ledger)
    recorded = ledger.header.robot.lower()  # the name of a robot's file, which of one's own can be any
    if recorded != options.robot and recorded in mjcf_robots():
        raise UmcError(
            f"the ledger {options.ledger} is one of {recorded}, the policy is for {options.robot}; give one of that"
        )
    base = protocol_for(options.robot, radii=options.radii, name=options.protocol, overrides=options.changes)
    protocol, cfg = ledger_rollout(ledger, base, options.policy, options.steps, options.episodes, solver)
    print(f"ledger {options.ledger}: {len(cfg.env)} episodes of up to {protocol.steps} steps")
    study = _evaluate(cfg, protocol, options)
    rows = ledger_agreement(ledger, cfg, study)
    if rows:
        print("comparison with the recorded episodes (means something only if this policy recorded the ledger):")
        write_agreement(rows, "the recording", options.out)
    return 0


def _evaluate(cfg: RolloutCfg, protocol: Protocol, options: argparse.Namespace) -> Study:
    from umc.evaluation.report import report_study
    from umc.evaluation.study import STUDY, save_study
    from umc.sim2sim.study import evaluate

    cfg = replace(cfg, clamp=options.clamp, mjcf=options.mjcf)
    study = evaluate(cfg, protocol, options.command_line, options.workers)
    save_study(options.out / STUDY, study)
    report_study(study, options.out)
    return study
