# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc play``: film policies, or show one in a visualizer."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from umc.rendering.film_cfg import STAGE2_SCENARIO, add_film_arguments, check_output, film_cfg
from umc.training.command_line import add_policy_arguments, asks_for_help, parse, show_help
from umc.utils.cli import run_main
from umc.utils.console import quiet
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from umc.evaluation.protocol import Protocol
    from umc.evaluation.session import Session

DESCRIPTION = "Film policies, or show one in a visualizer."

EXAMPLES = (
    "--checkpoint pretrained:a1_mlp_stage2 --scenario 6",
    "--checkpoint pretrained:a1_mlp_stage2 pretrained:a1_nm_mlp_stage1 --names UMC baseline --scenario 2",
    "--checkpoint pretrained:g1_mlp_stage2 --viz viser",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``umc play``."""
    add_film_arguments(parser.add_argument_group("film"))
    add = parser.add_argument_group("page in the browser, with --viz viser").add_argument
    add("--port", type=int, help="port of the page; 8080 without it, or the next that is free")
    add("--host", help="who may see it; localhost without it, 0.0.0.0 for everybody in the network")
    add("--ledger", type=Path, help="file that records what breaks and heals (docs/ledger.md)")


def main(argv: Sequence[str]) -> int:
    """Run ``umc play``; return its exit status."""
    return run_main(_run, argv)


def _run(argv: list[str]) -> int:
    if asks_for_help(argv):
        return show_help(argv, "play", DESCRIPTION, EXAMPLES, [add_policy_arguments, add_arguments])
    from umc.evaluation.session import prepare
    from umc.viewer.live import is_live, play_live

    with quiet():
        options, overrides = parse(argv, add_arguments)
        cfg = film_cfg(options)
        several = len(options.checkpoint or ()) > 1
        shown = bool(set(options.visualizer or ()) - {"none"})
        if not shown:
            check_output(options)
        elif several or options.names is not None:
            raise UmcError("--viz shows one policy; give one --checkpoint, without --names")
        live = is_live(options)
        session = None if live else prepare(options, overrides, stage=2 if several else None, once=False)
    if session is None:
        return play_live(options, overrides, cfg)
    if options.scenario is None and (several or session.info.stage == 2):
        cfg = replace(cfg, scenario=STAGE2_SCENARIO)
    protocol = cfg.protocol(session.info.robot, options.seed)
    if shown:
        return show(session, protocol, endless=options.steps is None)
    from umc.rendering.film import film

    return film(session, protocol, cfg)


def show(session: Session, protocol: Protocol, endless: bool) -> int:
    """Show the policy in one of Isaac Lab's visualizers, in real time, until Ctrl-C or the end; return 0."""
    from umc.evaluation.conditions import disable_training_randomization, set_faults
    from umc.evaluation.rollout import reset_batch, step_policy
    from umc.evaluation.session import running

    disable_training_randomization(
        session.env_cfg, protocol.command, session.options.num_envs or 1, protocol.steps, protocol.seed
    )
    set_faults(session.env_cfg, protocol)
    with running(session) as (env, (policy,)):
        print("press Ctrl-C to end", flush=True)
        while True:
            obs = reset_batch(env, protocol)
            due = time.monotonic()
            for _ in step_policy(env, policy, obs, protocol.steps, "playing"):
                due += env.step_dt
                time.sleep(max(due - time.monotonic(), 0.0))
            if not endless:
                return 0
