# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc evaluate``, ``umc gait`` and ``umc report``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from umc.evaluation.arguments import OWN_SECTIONS, add_policy_arguments, of_env, overrides_first, parse, scenario
from umc.utils.cli import check_combinations, path
from umc.utils.config import read_overrides
from umc.utils.console import quiet, timed
from umc.utils.errors import UmcError
from umc.utils.isaaclab_flags import add_launcher_flags, asks_for_help, show_help
from umc.utils.naming import TASK_NAME

DESCRIPTION = "Evaluate policies under the paper's faults: all scenarios and settings side by side in one simulation."

EXAMPLES = (
    "--checkpoint pretrained:a1_mlp_stage2",
    "--checkpoint logs/rsl_rl/umc_a1_mlp_stage2/RUN pretrained:a1_nm_mlp_stage1 --episodes 100",
    "--checkpoint pretrained:g1_mlp_stage2 --healthy",
    "--task UMC-G1-Stage2 --policy motion.pt --trust",
)

HERE_ALONE = "--detection is for evaluations in this process; leave out --ray and --healthy"
GAIT_ALONE = "--healthy measures the gait of one policy, without faults and by itself; leave out --"
REPORT_ALONE = "umc report writes the report of a finished evaluation; leave out --"
SIMULATED = ("checkpoint", "policy", "task", "out", "protocol", "scenarios", "episodes", "num_envs", "radii", "sweep")
SIMULATED += ("seed", "detection", "healthy", "quick", "share", "ray", "robot", "agent", "device", "trust", "offline")
"""Flags that decide what is simulated, or where it is written."""

CONTRADICTIONS: tuple[tuple[set[str], str], ...] = (
    *(({"detection", flag}, HERE_ALONE) for flag in ("ray", "healthy")),
    *(
        ({"healthy", flag}, GAIT_ALONE + flag)
        for flag in ("episodes", "scenarios", "radii", "sweep", "labels", "share", "ray")
    ),
    ({"share", "ray"}, "--share is simulated by this process, --ray by workers; leave one of them out"),
    ({"ray_address", "no_ray"}, "--ray_address needs --ray WORKERS"),
    *(({"report_only", flag}, REPORT_ALONE + flag) for flag in SIMULATED),
)

ONE_SEED = "one seed for all settings, which reduces the draws of faults; without it the protocol's"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``umc evaluate``."""
    add = parser.add_argument_group("conditions").add_argument
    add(
        "--protocol",
        help="file in config/protocols, or path of one (umc_paper; any_robot for robots not in it); protocol.steps=300 "
        "changes it",
    )
    add("--scenarios", type=scenario, nargs="+", help="scenarios, 1 to 8 of the paper or by name; else the protocol's")
    add("--episodes", type=int, help="robots of each cell (scenario x setting), in batches if needed; else one batch")
    add("--num_envs", type=int, help="envs simulated at once")
    add("--radii", type=float, nargs="+", help="radii of reached@k [m]; the protocol's without it")
    add("--sweep", help="file in config/sweeps, or path of one: a grid of conditions, or the policies of an ablation")
    add(
        "--detection",
        nargs="+",
        help="what reports faults to the policies, side by side: oracle, none, detector:file=PATH, "
        "corrupted_oracle:delay=10,missed=0.1 (docs/detection.md); without it env.detection",
    )
    add("--healthy", action="store_true", help="measure the gait of the healthy robot instead, for 10 s (umc gait)")
    add("--quick", action="store_true", help="a few envs and steps: proves that everything works, no figures")
    add = parser.add_argument_group("reports").add_argument
    add("--labels", nargs="+", help="names of the policies in the report")
    add("--report_only", "--report-only", type=path, help="write the reports of an --out folder anew (umc report)")
    add("--logs", type=path, default=Path("logs"), help="folder of all runs, where sweeps find policies (logs)")
    add = parser.add_argument_group("several machines").add_argument
    add("--share", help="2/8: simulate the second eighth and write no report; the command without it collects them")
    add("--ray", type=int, metavar="WORKERS", help="simulate on so many workers of a Ray cluster")
    add("--ray_address", help="address of the cluster; without it one is started on this machine")
    add("--plan", type=Path, help=argparse.SUPPRESS)  # what a worker of a cluster simulates


STOP_MESSAGE = "stopped; finished batches are kept, the same command goes on from there"
"""Printed after Ctrl-C and SIGTERM."""


def main(argv: list[str]) -> int:
    """Run ``umc evaluate``; return its exit status."""
    if asks_for_help(argv):
        add_policies = partial(add_policy_arguments, seed=ONE_SEED)
        flags = [add_policies, add_arguments, add_launcher_flags]
        return show_help(argv, "evaluate", DESCRIPTION, EXAMPLES, flags, ("physics", "env", *OWN_SECTIONS, "parts"))
    with timed("loading packages"), quiet():
        options, overrides = parse(argv, add_arguments, OWN_SECTIONS)
        check_combinations(options, CONTRADICTIONS, ["no_ray"] if options.ray is None else [])
        _check_envs(options, overrides)
        if options.detection is not None and any(token.startswith("env.detection.") for token in overrides):
            raise UmcError("--detection and env.detection name two sources; leave one of them out")
        from umc.evaluation.evaluate import evaluate, report_again

    if options.report_only is not None:
        if overrides:
            raise UmcError(f"{overrides[0]} has no effect on the report of a simulation; leave it out")
        report_again(options.report_only, options.labels)
    else:
        evaluate(options, overrides, launcher_arguments(argv))
    return 0


def _check_envs(options: argparse.Namespace, overrides: Sequence[str]) -> None:
    """Refuse fewer envs than cells before the slow imports, where the flags alone tell the protocol."""
    task = TASK_NAME.fullmatch(options.task or "")
    other = (options.episodes, options.sweep, options.healthy, options.quick, options.report_only, options.plan)
    if task is None or options.num_envs is None or any(other):
        return
    from umc.evaluation.protocol import protocol_for

    robot, changes = task[1].lower(), read_overrides(overrides, "protocol")
    protocol = protocol_for(robot, options.scenarios, options.radii, options.seed, options.protocol, changes)
    protocol.check_envs(options.num_envs)


def launcher_arguments(argv: Sequence[str]) -> list[str]:
    """Return what of a command line is not the evaluation itself: launcher flags, presets, overrides of the task."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_arguments(parser)
    # robot and agent say which pretrained policies are meant; workers get files, whose code the user has trusted
    parser.add_argument("--trust", action="store_true")
    for name in ("--checkpoint", "--policy", "--robot", "--agent", "--seed", "--out"):
        parser.add_argument(name, nargs="*")
    _, rest = parser.parse_known_args(overrides_first(argv))
    return of_env(rest)
