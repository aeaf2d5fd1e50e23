# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What ``scripts/export.py`` calls."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from umc.errors import UmcError
from umc.rl.checkpoint import checkpoint_info, read_checkpoint
from umc.rl.cli import Parser, checked_checkpoint, checked_task
from umc.rl.console import quiet

USAGE_ERROR = 2
"""Exit status of a user's mistake."""


def main(argv: Sequence[str]) -> int:
    """Runs ``scripts/export.py``.

    Args:
        argv: Arguments without the script's name.

    Returns:
        Exit status: 0 done, 2 wrong use.
    """
    try:
        return _run(argv)
    except UmcError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE_ERROR


def _run(argv: Sequence[str]) -> int:
    parser = Parser(prog="export.py", description="Write a policy as ONNX, with a JSON that says how to feed it.")
    parser.add_argument("--checkpoint", help="model_<iteration>.pt, or a run folder, which stands for its last one")
    parser.add_argument("--out", type=Path, help="folder to write to; 'exported' beside the checkpoint without it")
    options = parser.parse_args(argv)
    if options.checkpoint is None:
        raise UmcError("--checkpoint is missing; give a model_<iteration>.pt or a run folder")
    checkpoint = checked_checkpoint(options.checkpoint)
    assert checkpoint is not None
    info = checkpoint_info(read_checkpoint(checkpoint), checkpoint)

    # from here on imports take seconds
    with quiet():
        task = checked_task(info.task)
        from isaaclab_tasks.utils import load_cfg_from_registry

        from umc.rl.export import export_checkpoint

        env_cfg = load_cfg_from_registry(task, "env_cfg_entry_point")
        model, sheet = export_checkpoint(checkpoint, options.out or checkpoint.parent / "exported", env_cfg)
    print(f"policy: {model}")
    print(f"description: {sheet}")
    return 0
