# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc benchmark``: ``umc evaluate`` under conditions that stay the same, and a card for each policy."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from umc.cli.evaluate import STOP_MESSAGE as STOP_MESSAGE  # for umc.cli.main
from umc.cli.evaluate import add_arguments as add_evaluation_arguments
from umc.cli.evaluate import launcher_arguments
from umc.evaluation.arguments import add_policy_arguments, parse
from umc.utils.config import override_key
from umc.utils.console import quiet, timed
from umc.utils.errors import UmcError
from umc.utils.isaaclab_flags import add_launcher_flags, asks_for_help, show_help
from umc.utils.naming import TASK_NAME, task_parts

if TYPE_CHECKING:
    from umc.evaluation.card import Conditions
    from umc.evaluation.evaluator import Evaluator

DESCRIPTION = "Evaluate policies under the conditions of UMC-Bench, and write a card of each for docs/leaderboard.md."

EXAMPLES = (
    "--checkpoint pretrained:g1_mlp_stage2 --labels 'UMC MLP'",
    "--task UMC-G1-Stage2 --policy motion.pt --trust --labels Unitree",
    "--checkpoint pretrained:a1_mlp_stage2 --quick",
)

PROTOCOL, EPISODES = "umc_bench_1", 10
"""Conditions, and robots of each scenario and setting."""

GROUND = "env.scene.terrain=flat"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``umc benchmark``."""
    add = parser.add_argument_group("cards").add_argument
    add("--num_envs", type=int, help="envs simulated at once")
    add("--labels", nargs="+", help="names of the policies on their cards")
    add("--quick", action="store_true", help="a few envs and steps: proves that everything works, no figures")


def main(argv: list[str]) -> int:
    """Run ``umc benchmark``; return its exit status."""
    if asks_for_help(argv):
        add_policies = partial(add_policy_arguments, seed=argparse.SUPPRESS)
        flags = [add_policies, add_arguments, add_launcher_flags]
        return show_help(argv, "benchmark", DESCRIPTION, EXAMPLES, flags, ["physics"])
    with timed("loading packages"), quiet():
        typed, overrides = parse(argv, add_arguments, None)
        for token in overrides:
            if override_key(token) != "physics":
                raise UmcError(f"{token} changes the conditions, which are frozen; leave it out, or use umc evaluate")
        if typed.task is not None and not (TASK_NAME.fullmatch(typed.task) and task_parts(typed.task)[1] == 2):
            raise UmcError(
                f"--task {typed.task} changes the conditions, which are those of UMC-<robot>-Stage2; give that"
            )
        if typed.seed is not None:
            raise UmcError("--seed changes the conditions, which are frozen; leave it out, or use umc evaluate")
        more = [] if typed.quick else ["--episodes", str(EPISODES)]
        frozen = [*argv, GROUND, "--protocol", PROTOCOL, *more]
        options, overrides = parse(frozen, add_evaluation_arguments)
        from umc.evaluation.card import card_of, conditions_of, write_card
        from umc.evaluation.evaluate import evaluate

    conditions: list[Conditions] = []

    def check(evaluator: Evaluator) -> None:
        conditions.append(conditions_of(evaluator.session, evaluator.labels))

    # a folder of its own: that of umc evaluate holds the report of other conditions
    made = evaluate(options, overrides, launcher_arguments(frozen), "benchmark", check)
    assert made is not None
    study, out = made
    for result in study.policies:
        files = write_card(card_of(study, result, conditions[0]), out / "cards")
        print(f"card: {', '.join(map(str, files))}", flush=True)
    return 0
