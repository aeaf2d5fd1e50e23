# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What can fail together: named sets of kinds, the paper's among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from umc.faults.kinds import KINDS, JointKind, SensorKind, find_kind
from umc.faults.paper import PAPER
from umc.utils.errors import UmcError

Description = Sequence[str] | Mapping[str, object]
"""How configs describe a scenario: names of kinds, or ``{"kinds": [...], "detected": true}``."""


@dataclass(frozen=True)
class Scenario:
    """What happens to every faulty joint."""

    name: str
    """What ledgers and reports call it."""
    kinds: tuple[str, ...] = ()
    """Kinds of faults, all at once."""
    detected: bool = False
    """Whether the policy gets the fault flag."""

    @classmethod
    def of(cls, name: str, description: Description) -> Scenario:
        """Read the kinds of a scenario, or a mapping with ``kinds`` and ``detected``.

        Raises UmcError if it makes no sense. Without ``detected``, a joint fault whose sensor is dead is detected (the
        paper's rule).
        """
        detected = None
        kinds = description
        if isinstance(description, Mapping):
            unknown = set(description) - {"kinds", "detected"}
            if unknown or "kinds" not in description:
                raise UmcError(f"scenario '{name}' must have 'kinds' and may have 'detected', not {sorted(unknown)}")
            kinds, detected = description["kinds"], description.get("detected")
        if (
            isinstance(kinds, str)
            or not isinstance(kinds, Sequence)
            or not all(isinstance(kind, str) for kind in kinds)
        ):
            raise UmcError(f"scenario '{name}' must list its kinds, such as [dead, rom]")
        if len(set(kinds)) != len(kinds):
            raise UmcError(f"scenario '{name}' names a kind twice: {', '.join(kinds)}")
        found = [find_kind(kind) for kind in kinds]
        if detected is None:
            blind = any(isinstance(kind, SensorKind) and kind.blinds for kind in found)
            detected = blind and any(isinstance(kind, JointKind) for kind in found)
        return cls(name, tuple(kinds), bool(detected))


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
            raise UmcError(f"unknown scenario {name}; the paper's scenarios are 1 to {max(SCENARIOS)}")
        return SCENARIOS[name]
    if own and name in own:
        return Scenario.of(str(name), own[str(name)])
    if name in SUBCATEGORIES:
        return SUBCATEGORIES[str(name)]
    by_name = {scenario.name: scenario for scenario in SCENARIOS.values()}
    if name in by_name:
        return by_name[str(name)]
    kinds = [part.strip() for part in str(name).split("+")]
    if all(kind in KINDS for kind in kinds):
        return Scenario.of(str(name), kinds)
    choices = [*(own or ()), *SUBCATEGORIES, *sorted(KINDS)]
    raise UmcError(
        f"unknown scenario '{name}'; choose 1 to {max(SCENARIOS)}, or from {', '.join(choices)}, joined by +"
    )
