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
from umc.rl.record import RUN_FILE, read_record

DESCRIPTION = "Write a policy as ONNX and TorchScript, with a JSON that says how to feed it."

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
    parser = Parser(prog="export.py", description=DESCRIPTION)
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
        from umc.rl.export import export_checkpoint
        from umc.rl.resolve import resolve_cfgs

        env_cfg, _ = resolve_cfgs(task, None, trained_overrides(checkpoint))
        files = export_checkpoint(checkpoint, options.out or checkpoint.parent / "exported", env_cfg)
    print(f"policy: {files.onnx}")
    print(f"the same as TorchScript: {files.torchscript}")
    print(f"description: {files.description}")
    return 0


def trained_overrides(checkpoint: Path) -> list[str]:
    """What the run of a checkpoint changed in its task's env cfg: a scale changed there changes what the policy means.

    Args:
        checkpoint: The checkpoint; its run folder keeps the overrides, a checkpoint without one had none.

    Returns:
        The ``env.`` overrides.

    Raises:
        UmcError: If the run folder's record cannot be read.
    """
    if not (checkpoint.parent / RUN_FILE).is_file():
        return []
    return [token for token in read_record(checkpoint.parent)["overrides"] if token.startswith("env.")]
