# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What can fail together: named sets of kinds; and the paper's tables about faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml

from umc.faults.kinds import KINDS, find_kind, is_detected
from umc.utils.errors import UmcError

PAPER: dict[str, Any] = yaml.safe_load((files(__package__) / "data" / "umc_paper.yaml").read_text(encoding="utf-8"))
"""The paper's tables; see the file's comments."""

Description = Sequence[str] | Mapping[str, object]
"""How configs describe a scenario: names of kinds, or ``{"kinds": [...], "detected": true}``."""


@dataclass(frozen=True)
class Scenario:
    """A set of kinds that every faulty joint gets at once."""

    name: str
    kinds: tuple[str, ...] = ()
    detected: bool = False
    """Whether the policy gets the fault flag."""

    @classmethod
    def of(cls, name: str, description: Description) -> Scenario:
        """Make a scenario; without ``detected``, :func:`umc.faults.kinds.is_detected` decides. Raises UmcError."""
        detected = None
        kinds = description
        if isinstance(description, Mapping):
            unknown = set(description) - {"kinds", "detected"}
            if "kinds" not in description:
                raise UmcError(f"scenario '{name}' must list its kinds, such as kinds: [dead, rom]")
            if unknown:
                raise UmcError(f"scenario '{name}' may have 'kinds' and 'detected', not {sorted(map(str, unknown))}")
            kinds, detected = description["kinds"], description.get("detected")
            if not isinstance(detected, bool | None):
                raise UmcError(f"scenario '{name}': detected {detected} must be true or false")
        if not isinstance(kinds, Sequence) or isinstance(kinds, str) or {type(kind) for kind in kinds} - {str}:
            raise UmcError(f"scenario '{name}' must list its kinds, such as [dead, rom]")
        if len(set(kinds)) != len(kinds):
            raise UmcError(f"scenario '{name}' names a kind twice: {', '.join(kinds)}")
        found = [find_kind(kind) for kind in kinds]
        return cls(name, tuple(kinds), is_detected(found) if detected is None else detected)


SCENARIOS: dict[int, Scenario] = {
    int(number): Scenario.of(f"scenario_{number}", kinds) for number, kinds in PAPER["scenarios"].items()
}
"""Paper, table "Eight Damage Scenarios for Legged Robots"."""

SUBCATEGORIES: dict[str, Scenario] = {name: Scenario.of(name, kinds) for name, kinds in PAPER["subcategories"].items()}
"""Paper, "Details of the Stage II Training Environment"; ratios are in this order."""


def find_scenario(name: int | str, own: Mapping[str, Description] | None = None) -> Scenario:
    """Return a scenario by the paper's number, a subcategory, an own name, or kinds joined by a plus (``dead+locked``).

    Raises UmcError if there is none.
    """
    if isinstance(name, int) and not isinstance(name, bool):
        if name not in SCENARIOS:
            raise UmcError(
                f"unknown scenario {name}; the paper's scenarios are 1 to {max(SCENARIOS)}; choose one of them"
            )
        return SCENARIOS[name]
    if own and str(name) in own:
        return Scenario.of(str(name), own[str(name)])
    if name in SUBCATEGORIES:
        return SUBCATEGORIES[str(name)]
    by_name = {scenario.name: scenario for scenario in SCENARIOS.values()}
    if name in by_name:
        return by_name[str(name)]
    kinds = [part.strip() for part in str(name).split("+")]
    if all(kind in KINDS for kind in kinds):
        return Scenario.of(str(name), kinds)
    choices = [*map(str, own or ()), *SUBCATEGORIES, *sorted(KINDS)]
    raise UmcError(
        f"unknown scenario '{name}'; choose 1 to {max(SCENARIOS)}, or from {', '.join(choices)}, joined by +"
    )


def is_scenario(name: int | str) -> bool:
    """Return whether :func:`find_scenario` finds one without own names."""
    try:
        find_scenario(name)
    except UmcError:
        return False
    return True


def paper_settings(robot: str, table: str) -> dict[str, Any]:
    """Return a robot's ``training`` table, or A1's ``inference`` one; raises UmcError if there is none."""
    tables = PAPER["robots"].get(robot)
    if tables is None or table not in tables:
        known = ", ".join(f"{name} ({'/'.join(rows)})" for name, rows in PAPER["robots"].items())
        raise UmcError(
            f"umc holds no {table} table of the paper for robot '{robot}', only {known}; give set_robot the robot's own"
            " faults"
        )
    return dict(tables[table])


def training_faults(robot: str) -> dict[str, Any]:
    """Return joints, severities and seed of the paper's training as fields of :class:`umc.faults.FaultsCfg`."""
    rows = paper_settings(robot, "training")
    return {
        "num_joints": tuple(rows["num_joints"]),
        "severity": {kind: rows[kind] for kind in ("rom", "effort", "velocity")},
        "seed": rows["seed"],
    }
