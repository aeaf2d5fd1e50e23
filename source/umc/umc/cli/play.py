# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc play``: watch a policy live in a visualizer; without ``--viz``, film it as ``umc film`` does."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from umc.cli.film import is_shown, write_films
from umc.evaluation.arguments import MOST_STEPS, add_policy_arguments, num_policies, of_env, parse
from umc.rendering.film_cfg import LONGEST_FILM, OVERRIDES, add_film_arguments, film_cfg
from umc.utils.cli import path
from umc.utils.console import progress_bar, quiet, timed
from umc.utils.errors import UmcError
from umc.utils.isaaclab_flags import add_launcher_flags, asks_for_help, show_help

if TYPE_CHECKING:
    from umc.evaluation.protocol import Protocol
    from umc.evaluation.session import Session

DESCRIPTION = "Watch a policy live in a visualizer (--viz); without --viz, film it."

EXAMPLES = (
    "--checkpoint pretrained:g1_mlp_stage2 --viz viser",
    "--checkpoint pretrained:a1_mlp_stage2 --scenario 6 --viz newton",
    "--checkpoint pretrained:a1_mlp_stage2 --scenario 6 --out film",
    "--task UMC-G1-Stage2 --policy motion.pt --trust --scenario 1 --viz viser",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``umc play``."""
    about = "With --viz one policy walks until Ctrl-C, or for --steps; --labels, --view and --out are for films."
    add_film_arguments(parser, about)
    add = parser.add_argument_group("visualizer").add_argument
    add("--num_envs", type=int, help="robots shown at once")
    add("--port", type=int, help="viser: port of the page; 8080 without it, or the next that is free")
    add("--host", help="viser: who may see the page; localhost without it, 0.0.0.0 for everybody in the network")
    add("--ledger", type=path, help="viser: file that records what breaks and heals (docs/ledger.md)")


def main(argv: list[str]) -> int:
    """Run ``umc play``; return its exit status."""
    if asks_for_help(argv):
        flags = [add_policy_arguments, add_arguments, add_launcher_flags]
        return show_help(argv, "play", DESCRIPTION, EXAMPLES, flags, OVERRIDES)
    from umc.viewer.live import is_live, play_live

    with timed("loading packages"), quiet():
        options, overrides = parse(argv, add_arguments, ("protocol",))
        cfg = film_cfg(options, overrides, MOST_STEPS if is_shown(options) else LONGEST_FILM)
        overrides = of_env(overrides)
        live = is_live(options)
    if not is_shown(options):
        return write_films(options, overrides, cfg)
    if num_policies(options) > 1 or options.names is not None:
        raise UmcError("--viz shows one policy; give one --checkpoint or --policy, without --labels")
    for name in ("out", "view"):
        if getattr(options, name) is not None:
            raise UmcError(f"--{name} is for films; leave it out, or --viz")
    if live:
        return play_live(options, overrides, cfg)
    from umc.evaluation.session import prepare

    with timed("reading policies and their task"), quiet():
        session = prepare(options, overrides, once=False)
    cfg = cfg.for_stage(session.info.stage, options.scenario, session.info.robot)
    protocol = cfg.protocol(session.info.robot, options.seed, session.info.joint_names)
    cfg.check(protocol, session.info.joint_names)
    return show(session, protocol, endless=options.steps is None)


def show(session: Session, protocol: Protocol, endless: bool) -> int:
    """Show the policy in one of Isaac Lab's visualizers, in real time, until Ctrl-C or the end; return 0."""
    from umc.evaluation.checkpoints import detector_remarks
    from umc.evaluation.conditions import set_protocol
    from umc.evaluation.rollout import reset_batch, step_policy
    from umc.evaluation.session import open_session
    from umc.viewer.live import MAX_LAG

    set_protocol(session.env_cfg, protocol, session.options.num_envs or 1)
    session.remarks += tuple(detector_remarks(session.checkpoints, session.env_cfg))
    with open_session(session) as (env, (policy,)):
        print("press Ctrl-C to end", flush=True)
        while True:
            obs = reset_batch(env, protocol)
            due = time.monotonic()
            with progress_bar(protocol.steps, "playing") as bar:
                for _ in step_policy(env, policy, obs, protocol.steps, bar):
                    due = max(due + env.step_dt, time.monotonic() - MAX_LAG)
                    time.sleep(max(due - time.monotonic(), 0.0))
            if not endless:
                return 0
