# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Refuses schedules that make no sense, before anything starts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch

from umc.errors import UmcError

from .scenarios import SUBCATEGORIES


def check_ratios(ratios: Sequence[float] | Mapping[str, float]) -> dict[str, float]:
    """Names the odds.

    Args:
        ratios: Odds of the paper's subcategories, or by name.

    Returns:
        Odds by the name of a scenario.

    Raises:
        UmcError: If they are too few or too many, negative, or all 0.
    """
    if isinstance(ratios, Mapping):
        odds = dict(ratios)
    else:
        if len(ratios) != len(SUBCATEGORIES):
            raise UmcError(f"ratios {tuple(ratios)} must have {len(SUBCATEGORIES)} numbers: {', '.join(SUBCATEGORIES)}")
        odds = dict(zip(SUBCATEGORIES, ratios, strict=True))
    shown = tuple(odds.values())
    if not all(math.isfinite(ratio) and ratio >= 0.0 for ratio in shown):
        raise UmcError(f"ratios {shown} must be finite and not negative")
    if math.fsum(shown) <= 0.0:
        raise UmcError(f"ratios {shown} sum to 0; raise one of them ({', '.join(odds)})")
    return odds


def candidate_ids(joint_names: Sequence[str], candidates: Sequence[str] | None) -> list[int]:
    """Finds the joints that can fail.

    Args:
        joint_names: All joints.
        candidates: Names of those that can fail; None for all.

    Returns:
        Their indices, in the order of ``joint_names``.

    Raises:
        UmcError: If a name is unknown.
    """
    if candidates is None:
        return list(range(len(joint_names)))
    unknown = [name for name in candidates if name not in joint_names]
    if unknown:
        raise UmcError(f"no joint is named {', '.join(unknown)}; the joints are {', '.join(joint_names)}")
    return [index for index, name in enumerate(joint_names) if name in candidates]


def check_count(name: str, count: Sequence[int], least: int, most: int, what: str) -> tuple[int, int]:
    """Checks fewest and most of something.

    Args:
        name: What the parameter is called.
        count: Fewest and most.
        least: Fewest that make sense.
        most: Most that make sense.
        what: What is counted.

    Returns:
        Fewest and most.

    Raises:
        UmcError: If they are out of order or out of range.
    """
    if len(count) != 2 or not least <= count[0] <= count[1] <= most:
        raise UmcError(f"{name} {tuple(count)} must be fewest and most, between {least} and the {most} {what}")
    return count[0], count[1]


def check_onset(
    onset: int | Sequence[int] | None,
    onset_range: Sequence[int],
    episode_length: int | None,
    device: torch.device,
) -> tuple[torch.Tensor | None, tuple[int, int]]:
    """Checks the onsets.

    Args:
        onset: Onsets to choose from [env steps], or None.
        onset_range: First and last onset [env steps].
        episode_length: Length of an episode [env steps], if known.
        device: Where the choices are kept.

    Returns:
        The choices, or None, and the range.

    Raises:
        UmcError: If there is none, or one lies before the first step or after the episode's end.
    """
    choices = [onset] if isinstance(onset, int) else onset
    name, steps = ("onset_range", tuple(onset_range)) if choices is None else ("onset", tuple(choices))
    if not steps or min(steps) < 1:
        raise UmcError(f"{name} {steps} must hold steps from 1 on (the first that an episode takes)")
    if choices is None and (len(steps) != 2 or steps[0] > steps[1]):
        raise UmcError(f"{name} {steps} must be first and last step")
    if episode_length is not None and max(steps) >= episode_length:
        raise UmcError(f"{name} {steps} must lie before the episode's end at step {episode_length}")
    return (None if choices is None else torch.tensor(choices, device=device)), (onset_range[0], onset_range[1])


def check_steps(name: str, steps: int | Sequence[int] | None) -> tuple[int, int] | None:
    """Checks a number of env steps.

    Args:
        name: What the parameter is called.
        steps: One number, least and most, or None.

    Returns:
        Least and most, or None.

    Raises:
        UmcError: If they are out of order or below 1.
    """
    if steps is None:
        return None
    least, most = (steps, steps) if isinstance(steps, int) else steps
    if not 1 <= least <= most:
        raise UmcError(f"{name} {steps} must be a number of env steps from 1 on, or the least and the most")
    return least, most


def check_duty(duty: float) -> float:
    """Checks the part of a period that a fault is on.

    Args:
        duty: The part [-].

    Returns:
        The part.

    Raises:
        UmcError: If it is not in (0, 1].
    """
    if not 0.0 < duty <= 1.0:
        raise UmcError(f"duty {duty} must be above 0 and at most 1")
    return duty
