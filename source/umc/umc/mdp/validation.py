# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Tries the parameters of faults out before there is a robot, so that mistakes show where they are made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from umc.faults import FaultCases, FaultKind, FaultSchedule, JointLimits, read_ledger
from umc.faults.checks import check_mapping, check_path
from umc.faults.replay import ledger_kinds
from umc.faults.severity import FRACTION, SHAPES
from umc.utils.errors import UmcError

MADE_UP_JOINTS = 256
"""Joints of the robot that parameters are tried on; more than any robot has, so that no number of faulty joints fails
that a real one could pass."""


def rehearse(env_cfg: Any, schedule: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[FaultKind, ...]:
    """Makes a schedule for a robot of made-up joints and draws from it.

    Args:
        env_cfg: The task's cfg, for the length of an episode.
        schedule: Parameters of the fault term.
        known: All parameters that there are.

    Returns:
        The kinds of faults that are planned.

    Raises:
        UmcError: If a parameter is unknown, or makes no sense on any robot.
    """
    unknown = [name for name in schedule if name not in known or name in ("self", "env", "env_ids", "asset_cfg")]
    if unknown:
        raise UmcError(f"faults have no parameter '{unknown[0]}'; see umc.faults.FaultSchedule for those they have")
    if schedule.get("replay") is not None:
        return ledger_kinds(read_ledger(schedule["replay"]))
    if schedule.get("ledger") is not None:
        check_path("ledger", schedule["ledger"])
    names = [f"joint_{number}" for number in range(MADE_UP_JOINTS)]
    one = torch.ones(MADE_UP_JOINTS)
    common = {name: value for name, value in schedule.items() if name not in ("severity", "cases", "ledger", "replay")}
    common |= {"episode_length": _episode_length(env_cfg), "nominal": JointLimits(-one, one, one, one)}
    cases = schedule.get("cases")
    kinds: tuple[FaultKind, ...] = ()
    for severity in _without_patterns(check_mapping("severity", schedule.get("severity"))):
        common["severity"] = severity
        try:
            source = FaultSchedule(names, **common) if cases is None else FaultCases(names, cases, 1, **common)
            source.draw(torch.zeros(1, dtype=torch.long), torch.zeros(1, dtype=torch.long))
        except TypeError as error:  # a text where a number belongs, and the like
            raise UmcError(f"faults cannot be drawn with these parameters: {error}") from error
        kinds = source.kinds
    return kinds


def _without_patterns(severity: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Severities for joints of any name: each value of a pattern in turn, the first of all others."""
    values = {
        kind: list(value.values()) if isinstance(value, Mapping) and set(value) - {*SHAPES, FRACTION} else [value]
        for kind, value in severity.items()
    }
    first = {kind: listed[0] for kind, listed in values.items()}
    return [first, *({**first, kind: value} for kind, listed in values.items() for value in listed[1:])]


def _episode_length(env_cfg: Any) -> int | None:
    """Length of an episode [env steps], as far as it stands in the cfg."""
    seconds, step, decimation = env_cfg.episode_length_s, getattr(env_cfg.sim, "dt", None), env_cfg.decimation
    if not all(isinstance(value, int | float) for value in (seconds, step, decimation)):
        return None  # not said yet, or a preset; the environment checks again
    return math.ceil(seconds / (step * decimation))
