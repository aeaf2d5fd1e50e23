# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc film``: film policies, side by side under the same fault."""

from __future__ import annotations

import argparse

from umc.evaluation.arguments import add_policy_arguments, num_policies, of_env, parse
from umc.rendering.film_cfg import OVERRIDES, FilmCfg, add_film_arguments, check_output, film_cfg
from umc.utils.console import quiet, timed
from umc.utils.errors import UmcError
from umc.utils.isaaclab_flags import asks_for_help, show_help

DESCRIPTION = """\
Film policies, side by side under the same fault: an MP4, a GIF and a storyboard (PNG) in the folder --out.
--out FILE.mp4, .gif or .png writes that file alone."""

EXAMPLES = (
    "--checkpoint pretrained:a1_mlp_stage2 --scenario 6",
    "--checkpoint pretrained:a1_mlp_stage2 pretrained:a1_nm_mlp_stage1 --labels UMC baseline --scenario 2",
    "--checkpoint pretrained:g1_mlp_stage2 --scenario 8 --view front --out g1.gif",
    "--task UMC-G1-Stage2 --policy motion.pt --trust --scenario 1",
)


def main(argv: list[str]) -> int:
    """Run ``umc film``; return its exit status."""
    if asks_for_help(argv):
        flags = [add_policy_arguments, add_film_arguments]
        return show_help(argv, "film", DESCRIPTION, EXAMPLES, flags, OVERRIDES)
    with timed("loading packages"), quiet():
        options, overrides = parse(argv, add_film_arguments, ("protocol",))
    if options.recording is not None:
        from umc.rendering.recording import film_recording

        return film_recording(options, overrides)
    with quiet():
        if is_shown(options):
            raise UmcError("--viz: umc film writes files; umc play --viz shows a policy")
    return write_films(options, of_env(overrides), film_cfg(options, overrides))


def is_shown(options: argparse.Namespace) -> bool:
    """Return whether ``--viz`` names a visualizer."""
    return bool(set(options.visualizer or ()) - {"none"})


def write_films(options: argparse.Namespace, overrides: list[str], cfg: FilmCfg) -> int:
    """Film the policies that the flags name, and return 0."""
    from umc.evaluation.checkpoints import detector_remarks
    from umc.evaluation.conditions import on_tracks
    from umc.evaluation.session import prepare
    from umc.rendering.film import film

    with timed("reading policies and their task"), quiet():
        check_output(options)
        several = num_policies(options) > 1
        session = prepare(options, overrides, stage=2 if several else None, once=False)
    cfg = cfg.for_stage(2 if several else session.info.stage, options.scenario, session.info.robot)
    protocol = cfg.protocol(session.info.robot, options.seed, session.info.joint_names)
    cfg.check(protocol, session.info.joint_names)
    if not on_tracks(session.env_cfg):
        protocol = protocol.without_track()  # so that the film's JSON does not claim it
    session.remarks += tuple(detector_remarks(session.checkpoints, session.env_cfg))
    return film(session, protocol, cfg)
