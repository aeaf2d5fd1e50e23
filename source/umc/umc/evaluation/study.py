# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What an evaluation brings home: every robot's outcome under every policy; reports are made from this alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from umc.evaluation.fault_run import FaultRun
from umc.evaluation.metrics import Score, score
from umc.evaluation.protocol import Protocol, Scenario, Setting


@dataclass(frozen=True)
class PolicyResult:
    """One policy's robots."""

    label: str
    """What tables call the policy; unique in a study."""
    group: str
    """Policies of the same recipe with other training seeds share a group; intervals over seeds are made of it."""
    about: Mapping[str, Any]
    """Checkpoint, its hash and metadata, in plain values."""
    run: FaultRun
    """What its robots met and did."""


@dataclass(frozen=True)
class Study:
    """Policies that met the same faults: robot ``i`` of each is the same cell, member, start and fault."""

    protocol: Protocol
    step_dt: float
    """Duration of an env step [s]."""
    joint_names: tuple[str, ...]
    """Joints, in the order of ``FaultRun.joints``."""
    about: Mapping[str, Any]
    """Task, engine, device, versions, command line, in plain values."""
    policies: tuple[PolicyResult, ...]
    feet: tuple[str, ...] = ()
    """Feet, in the order of ``FaultRun.stance``."""

    def scenario_rows(self, result: PolicyResult, scenario: Scenario) -> torch.Tensor:
        """Robots that met a scenario, in any setting.

        Returns:
            True where they did. Shape is (num_robots,).
        """
        return result.run.cell % len(self.protocol.scenarios) == self.protocol.scenarios.index(scenario)

    def setting_rows(self, result: PolicyResult, setting: Setting) -> torch.Tensor:
        """Robots that met a setting, in any scenario.

        Returns:
            True where they did. Shape is (num_robots,).
        """
        return result.run.cell // len(self.protocol.scenarios) == self.protocol.settings.index(setting)

    def score(self, result: PolicyResult, select: torch.Tensor | None = None) -> Score:
        """The metrics of some of a policy's robots.

        Args:
            result: The policy.
            select: Which robots count; all without it. Shape is (num_robots,).
        """
        return score(result.run.episodes, self.protocol.radii, self.step_dt, select)

    def scenario_scores(self, result: PolicyResult) -> Iterator[tuple[Scenario, Score]]:
        """The metrics by scenario."""
        for scenario in self.protocol.scenarios:
            yield scenario, self.score(result, self.scenario_rows(result, scenario))
