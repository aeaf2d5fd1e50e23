# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc export``."""

from __future__ import annotations

import argparse

from umc.rl.checkpoint import checkpoint_info, read_checkpoint, trained_overrides
from umc.rl.pretrained import is_pretrained, results_folder
from umc.utils.cli import Parser, path
from umc.utils.config import merged_overrides
from umc.utils.console import quiet, timed, waiting
from umc.utils.errors import UmcError
from umc.utils.io import sha256
from umc.utils.isaaclab_flags import asks_for_help, show_help
from umc.utils.outputs import require_writable

DESCRIPTION = "Write a policy as ONNX and TorchScript, with a JSON that describes inputs, outputs, starts and falls."

EXAMPLES = (
    "--checkpoint pretrained:a1_mlp_stage2 --out exported",
    "--checkpoint pretrained --robot g1",
    "--checkpoint logs/rsl_rl/umc_a1_mlp_stage2/RUN",
    "--checkpoint pretrained:a1_mlp_stage2 --detector logs/a1_detector/detector.pt --out exported",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``umc export``."""
    add = parser.add_argument
    add("--checkpoint", help="model_<iteration>.pt, a run folder, which stands for its last one, or 'pretrained'")
    add("--task", help="gym id that 'pretrained' is looked up for")
    add("--robot", help="robot that 'pretrained' is looked up for")
    add("--agent", help="agent that 'pretrained' is looked up for")
    add("--detector", type=path, help="detector of umc train-detector to export with it (docs/detection.md)")
    add("--any_fault", action="store_true", help="the detector raises the flag for every joint fault")
    add("--out", type=path, help="folder to write to; 'exported' beside the checkpoint without it")


def main(argv: list[str]) -> int:
    """Run ``umc export``; return its exit status."""
    if asks_for_help(argv):
        return show_help(argv, "export", DESCRIPTION, EXAMPLES, [add_arguments], ["env"])
    from umc.tasks.registry import checked_checkpoint, checked_task, pretrained_policy

    parser = Parser(add_help=False)
    add_arguments(parser)
    options, typed = parser.parse_with_overrides(argv)
    if options.checkpoint is None:
        raise UmcError("--checkpoint is missing; give a model_<iteration>.pt or a run folder")
    line = None
    if is_pretrained(options.checkpoint):
        with timed("finding the policy"), quiet():
            checkpoint, line = pretrained_policy(options.checkpoint, options.task, options.robot, options.agent)
    else:
        for flag in ("task", "robot", "agent"):
            if getattr(options, flag) is not None:
                raise UmcError(f"--{flag} needs --checkpoint pretrained; a checkpoint has them inside")
        checkpoint = checked_checkpoint(options.checkpoint)
    if options.any_fault and options.detector is None:
        raise UmcError("--any_fault needs --detector")
    out = options.out or results_folder(checkpoint) / "exported"
    require_writable(out, "--out")
    with timed("reading the checkpoint"):
        info = checkpoint_info(read_checkpoint(checkpoint), checkpoint)
    if line is not None:
        print(line)

    # from here on imports take seconds, and the conversion to ONNX up to minutes
    with (
        waiting("exporting", "conversion to ONNX and TorchScript, each checked against the policy") as finish_phase,
        quiet(),
    ):
        task = checked_task(info.task)
        from umc.deploy.export import DETECTOR, export_checkpoint
        from umc.deploy.robot_package import RUNNER
        from umc.detection import read_detector
        from umc.tasks.task_cfg import resolve_cfgs

        detector = None if options.detector is None else read_detector(options.detector)
        env_cfg, _ = resolve_cfgs(task, None, merged_overrides(trained_overrides(checkpoint, info, typed), typed))
        finish_phase("task")
        files = export_checkpoint(checkpoint, out, env_cfg, detector, options.any_fault)
        finish_phase("conversion and checks")
    print(f"policy: {files.onnx}")
    print(f"the same as TorchScript: {files.torchscript}")
    print(f"description: {files.description}")
    print(f"runner for a robot: {files.onnx.with_name(RUNNER)}")
    if detector is not None:
        print(f"detector: {files.onnx.with_name(DETECTOR)}")
        if (remark := detector.remark(sha256(checkpoint))) is not None:
            print(remark)
    return 0
