# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a checkpoint was trained with beside its network: what an evaluation, a film or an export has to repeat."""

from __future__ import annotations

from pathlib import Path

from umc.rl.checkpoint import CheckpointInfo
from umc.utils.provenance import RUN_FILE, read_record

TERRAIN_KEY = "env.scene.terrain"
"""Override that chooses the ground of a task that has several."""


def trained_overrides(checkpoint: Path, info: CheckpointInfo) -> list[str]:
    """What the run of a checkpoint changed in its task's env cfg: a scale changed there changes what the policy means.

    Args:
        checkpoint: The checkpoint.
        info: What it says about itself; files of UMC 0.1 do not say it, but the record of their run folder does.

    Returns:
        The ``env.`` overrides; none where neither says any.

    Raises:
        UmcError: If the run folder's record cannot be read.
    """
    if info.env_overrides is not None:
        return list(info.env_overrides)
    if not (checkpoint.parent / RUN_FILE).is_file():
        return []
    return env_overrides(read_record(checkpoint.parent)["overrides"])


def env_overrides(tokens: list[str]) -> list[str]:
    """Those of a run's overrides that change its env cfg."""
    return [token for token in tokens if token.startswith("env.")]


def trained_terrain(checkpoint: Path, info: CheckpointInfo) -> str:
    """The ground a checkpoint was trained on.

    Args:
        checkpoint: The checkpoint.
        info: What it says about itself.

    Returns:
        Name of the ground, as :func:`umc.terrains.ground_name` gives it; empty where nobody knows.

    Raises:
        UmcError: If the run folder's record cannot be read.
    """
    if info.terrain:
        return info.terrain
    chosen = [token for token in trained_overrides(checkpoint, info) if token.split("=", 1)[0] == TERRAIN_KEY]
    return chosen[-1].split("=", 1)[1] if chosen else ""
