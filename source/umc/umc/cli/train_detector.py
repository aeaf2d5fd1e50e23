# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc train-detector``: train a fault detector beside a walking policy."""

from __future__ import annotations

import argparse

from umc.diagnosis.train import ITERATIONS, NUM_ENVS, STEPS, plan, train
from umc.evaluation.arguments import add_policy_arguments, num_policies, parse
from umc.training.train import STOP_MESSAGE as STOP_MESSAGE  # for umc.cli.main
from umc.utils.cli import check_combinations, path
from umc.utils.console import quiet, timed
from umc.utils.errors import UmcError
from umc.utils.isaaclab_flags import add_launcher_flags, asks_for_help, show_help
from umc.utils.process import lock_folder

DESCRIPTION = "Train a detector of joint and sensor faults beside a walking policy, from what a robot measures."

EXAMPLES = (
    "--checkpoint pretrained:a1_mlp_stage2 physics=ovphysx",
    "--task UMC-G1-Stage2 --policy motion.pt --trust physics=ovphysx",
    "--checkpoint pretrained:a1_mlp_stage2 --detector logs/detector/detector.pt --iterations 0 physics=newton_mjwarp",
    "--checkpoint pretrained:a1_mlp_stage2 --out logs/detector --resume physics=ovphysx",
)

CONTRADICTIONS = (
    ({"detector", "network"}, "--detector has a network; leave out --network"),
    ({"detector", "hold_out"}, "--detector keeps what was held out of its training; leave out --hold_out"),
)

MOST_ALARMS = 60.0
"""Most false alarms that can be accepted [1/min]."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``umc train-detector``."""
    add = parser.add_argument_group("training").add_argument
    add("--num_envs", type=int, help=f"robots simulated at once ({NUM_ENVS})")
    add("--iterations", type=int, default=ITERATIONS, help=f"iterations of {STEPS} env steps ({ITERATIONS})")
    add(
        "--detector",
        type=path,
        help="trained detector to start from, of another policy, engine or ground; --iterations 0 keeps its weights "
        "and chooses only temperature and thresholds",
    )
    add("--network", choices=("gru", "tcn"), help="gru (default) or tcn")
    add(
        "--false_alarms",
        type=float,
        default=0.05,
        help="accepted false alarms of a healthy robot, of sensors and of joints [1/min] (0.05); thresholds follow",
    )
    add("--no_push", action="store_true", help="do not push the robots")
    add(
        "--hold_out",
        nargs="+",
        metavar="KIND",
        help="kinds, or severities of a kind (effort:0.05,0.2), that are not learned; umc diagnose has a table of them",
    )
    add("--resume", action="store_true", help="go on with the training in the folder of --out")


def main(argv: list[str]) -> int:
    """Run ``umc train-detector``; return its exit status."""
    if asks_for_help(argv):
        flags = [add_policy_arguments, add_arguments, add_launcher_flags]
        return show_help(argv, "train-detector", DESCRIPTION, EXAMPLES, flags, ("physics", "env", "parts"))
    with timed("loading packages"), quiet():
        options, overrides = parse(argv, add_arguments)
    check_combinations(options, CONTRADICTIONS)
    if options.iterations < (least := 1 if options.detector is None else 0):
        raise UmcError(f"--iterations is {options.iterations}; it has to be at least {least}")
    if not 0.0 <= options.false_alarms <= MOST_ALARMS:
        raise UmcError(f"--false_alarms is {options.false_alarms}; it has to lie between 0 and {MOST_ALARMS:g}")
    if num_policies(options) != 1:
        raise UmcError("a detector watches one policy; give one --checkpoint, or one --policy with --task")
    if options.resume and options.out is None:
        raise UmcError("--resume needs --out, the folder of the training")
    with timed("reading the policy and its task"), quiet():
        run = plan(options, overrides)
    print(f"run folder: {run.folder}", flush=True)
    with lock_folder(run.folder, f"trains a detector into {run.folder}"):
        print(f"detector: {train(run)}", flush=True)
    return 0
