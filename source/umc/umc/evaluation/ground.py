# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""On which ground policies are evaluated and filmed: the one they were trained on, unless the user names one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from umc.rl.checkpoint import TERRAIN_KEY, trained_terrain
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from umc.evaluation.session import Candidate

GROUND_PRESETS = ("flat", "perlin")
"""Presets of the tasks that choose a ground."""


def ground_override(
    candidates: Sequence[Candidate], env_cfg: Any, overrides: Sequence[str]
) -> tuple[str | None, list[str]]:
    """Put policies on the ground they were trained on, where the user names none."""
    from umc.terrains import ground_name

    here = ground_name(env_cfg.scene.terrain)
    grounds = {one.path: trained_terrain(one.path, one.info) for one in candidates}
    known = sorted({ground for ground in grounds.values() if ground})
    if names_ground(overrides):
        return None, []
    if len(known) > 1:
        which = ", ".join(f"{path}: {ground or 'unknown'}" for path, ground in grounds.items())
        raise UmcError(
            f"the policies were trained on different grounds ({which}); choose one with "
            + " or ".join(f"{TERRAIN_KEY}={ground}" for ground in known)
        )
    if not known or known[0] == here or known[0] not in GROUND_PRESETS:
        return None, []
    line = f"ground: {known[0]}, which the policy was trained on (the task's own: {TERRAIN_KEY}={here})"
    return f"{TERRAIN_KEY}={known[0]}", [line]


def names_ground(overrides: Sequence[str]) -> bool:
    """Whether an override or a preset says which ground."""
    from umc.utils.config import override_key

    chosen = [token.partition("=")[2].split(",") for token in overrides if override_key(token) == "presets"]
    return any(override_key(token).startswith(TERRAIN_KEY) for token in overrides) or any(
        name in GROUND_PRESETS for names in chosen for name in names
    )
