# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What can fail together: the paper's eight scenarios and its four training subcategories."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Subcategory(IntEnum):
    """The paper's four training subcategories; the ratios of a task are in this order."""

    NORMAL = 0
    """Nothing fails."""
    SENSOR_ONLY = 1
    """The joint works, its sensor is dead."""
    DETECTABLE = 2
    """All three joint faults at once, and a dead sensor."""
    UNDETECTABLE = 3
    """Less effort and less speed at once; the sensors work, so nobody knows."""


@dataclass(frozen=True)
class Scenario:
    """What happens to every faulty joint of an env."""

    sensor: bool = False
    """The joint's position, velocity and last action read 0."""
    rom: bool = False
    """The joint's range of motion shrinks."""
    effort: bool = False
    """The motor loses torque."""
    velocity: bool = False
    """The joint loses speed."""

    @property
    def detected(self) -> bool:
        """Whether the policy is told: a joint fault whose sensor is dead, too."""
        return self.sensor and (self.rom or self.effort or self.velocity)

    @property
    def subcategory(self) -> Subcategory:
        """The training subcategory that a scenario belongs to."""
        if self.detected:
            return Subcategory.DETECTABLE
        if self.sensor:
            return Subcategory.SENSOR_ONLY
        return Subcategory.UNDETECTABLE if self.rom or self.effort or self.velocity else Subcategory.NORMAL


SCENARIOS: dict[int, Scenario] = {
    1: Scenario(sensor=True),
    2: Scenario(sensor=True, rom=True),
    3: Scenario(sensor=True, effort=True),
    4: Scenario(sensor=True, velocity=True),
    5: Scenario(rom=True),
    6: Scenario(effort=True),
    7: Scenario(velocity=True),
    8: Scenario(),
}
"""Paper, table "Eight Damage Scenarios for Legged Robots"."""

SUBCATEGORY_FAULTS: dict[Subcategory, Scenario] = {
    Subcategory.NORMAL: Scenario(),
    Subcategory.SENSOR_ONLY: Scenario(sensor=True),
    Subcategory.DETECTABLE: Scenario(sensor=True, rom=True, effort=True, velocity=True),
    Subcategory.UNDETECTABLE: Scenario(effort=True, velocity=True),
}
"""Paper, "Details of the Stage II Training Environment"."""
