# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Exports of policies that have learnt nothing."""

from pathlib import Path

from fresh_policy import write_fresh
from isaaclab_tasks.utils import load_cfg_from_registry
from umc.deploy.export import Exported, export_checkpoint
from umc.utils.naming import load_tasks


def env_cfg_of(task="UMC-A1-Stage2"):
    load_tasks()
    return load_cfg_from_registry(task, "env_cfg_entry_point")


def export_fresh(folder: Path, task="UMC-A1-Stage2", detector=None, **fresh) -> tuple[Path, Exported]:
    """Write a checkpoint to a folder, and its export beside it; return both."""
    checkpoint = write_fresh(folder, task=task, **fresh)
    return checkpoint, export_checkpoint(checkpoint, folder, env_cfg_of(task), detector)
