# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How robots end whose joint fails and whose sensor is dead: who did not fall has not, for that, walked."""

from __future__ import annotations

from collections.abc import Sequence

from umc.evaluation.metrics import Outcome
from umc.evaluation.protocol import Scenario
from umc.evaluation.study import PolicyResult, Study

ENDS = ("failed", "sunk", "stayed", "walked")
"""What :func:`ends` tells apart."""


def ends(study: Study, result: PolicyResult, scenarios: Sequence[Scenario], low: float) -> dict[str, float] | None:
    """Shares of the robots that stood at onset, averaged over scenarios; they sum up to 1.

    Args:
        study: The study.
        result: One of its policies.
        scenarios: The scenarios.
        low: Mean height of the trunk after onset below which a robot that did not fail has sunk to the ground [m].

    Returns:
        By name: ``failed``; ``sunk``; ``stayed``, on its feet and not beyond the smallest radius; ``walked``, beyond it
        [-]. None if a scenario was not run, or nobody stood at its onset.
    """
    episodes = result.run.episodes
    up, failed = episodes.outcome == Outcome.UP, episodes.outcome == Outcome.FAILED
    sunk = up & (episodes.height_after_onset < low)
    walked = up & ~sunk & (episodes.distance > study.protocol.radii[0])
    groups = (failed, sunk, up & ~sunk & ~walked, walked)
    shares = []
    for scenario in scenarios:
        if scenario not in study.protocol.scenarios:
            return None
        rows = study.scenario_rows(result, scenario) & (up | failed)
        if not rows.any():
            return None
        shares.append([float(group[rows].double().mean()) for group in groups])
    return {name: sum(column) / len(shares) for name, column in zip(ENDS, zip(*shares, strict=True), strict=True)}
