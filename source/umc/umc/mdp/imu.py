# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Turns observations of the base into terms whose inertial sensor can fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from isaaclab.managers import ObservationTermCfg
from isaaclab.utils.string import string_to_callable

from umc.faults.kinds import FaultKind, ImuKind
from umc.mdp.observations import IMU_QUANTITIES, entries, imu_sensor
from umc.mdp.sensor_cfg import as_sensor, default_asset, variants, wrap_terms
from umc.utils.errors import UmcError


def add_imu_sensors(env_cfg: Any, asset_name: str = "robot", groups: Sequence[str] = ("policy",)) -> None:
    """Replace base_ang_vel and projected_gravity of some observation groups by terms that can fail, in place.

    :func:`umc.mdp.add_faults` does so if IMU faults are planned; a task that has fault terms already needs this call.
    Terms keep their place, noise, scale, clip and history. Raises UmcError if no group has such a term, or one has
    modifiers or a noise model with a state.
    """
    if isinstance(groups, str):
        raise UmcError(f"groups must list observation groups, such as ['policy'], not {groups!r}")
    present = [entries(holder[name]) for holder, name in variants(env_cfg, "observations")]
    known = {name for some in present for name, cfg in some.items() if cfg is not None}
    if missing := [group for group in groups if group not in known]:
        raise UmcError(f"the task has no observation group '{missing[0]}'; it has {', '.join(sorted(known))}")
    edits = _edits(env_cfg, asset_name, groups)
    if not edits and not has_imu_sensor(env_cfg):
        known = ", ".join(func.__name__ for func in IMU_QUANTITIES)
        raise UmcError(
            f"observation groups {', '.join(groups)} show no {known} of '{asset_name}'; leave IMU faults out"
        )
    for holder, key, value in edits:
        holder[key] = value


def has_plain_imu_terms(env_cfg: Any) -> bool:
    """Return whether the policy's observations have base_ang_vel or projected_gravity that cannot fail yet."""
    return bool(_edits(env_cfg, "robot", ["policy"]))


def _edits(env_cfg: Any, asset_name: str, groups: Sequence[str]) -> list[tuple[dict[str, Any], str, Any]]:
    """Copies of groups, which others may share, with terms that can fail: holder, key and new value."""
    edits: list[tuple[dict[str, Any], str, Any]] = []
    for holder, name in variants(env_cfg, "observations"):
        present = entries(holder[name])
        for group in (group for group in groups if present.get(group) is not None):
            for inside, key in variants(present, group):
                if (changed := wrap_terms(inside[key], group, partial(_wrap, asset_name))) is not None:
                    edits.append((inside, key, changed))
    return edits


def _wrap(asset_name: str, term: Any, where: str) -> ObservationTermCfg | None:
    """Return a new term whose sensor can fail; None for a term that shows no inertial sensor."""
    if not isinstance(term, ObservationTermCfg):
        return None
    func: Any = string_to_callable(term.func) if isinstance(term.func, str) else term.func
    if func not in IMU_QUANTITIES:
        return None
    selection = term.params.get("asset_cfg") or default_asset(func)
    if selection is not None and selection.name != asset_name:
        return None
    return as_sensor(term, imu_sensor, func, IMU_QUANTITIES[func], term.params, where)


def has_imu_sensor(env_cfg: Any) -> bool:
    """Return whether any observation shows an inertial sensor that can fail."""
    groups = entries(env_cfg.observations).values()
    groups = [entries(group) for group in groups if isinstance(group, dict) or hasattr(group, "__dict__")]
    functions = [getattr(term, "func", None) for terms in groups for term in terms.values()]
    # a running env has instances in its cfg, and one that went through Hydra names
    return any(
        func is imu_sensor or isinstance(func, imu_sensor) or str(func).endswith(":imu_sensor") for func in functions
    )


def check_imu_sensors(env_cfg: Any, kinds: Iterable[FaultKind]) -> None:
    """Raise UmcError if IMU faults are planned and no observation shows them."""
    broken = [kind.name for kind in kinds if isinstance(kind, ImuKind)]
    if broken and not has_imu_sensor(env_cfg):
        raise UmcError(
            f"the IMU can fail ({', '.join(broken)}), but no observation shows that; call"
            " umc.mdp.add_imu_sensors(env_cfg) before the environment is made"
        )
