# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Refuses schedules that make no sense, before anything starts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeGuard

import torch

from umc.faults.scenarios import SUBCATEGORIES
from umc.utils.errors import UmcError


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether a value of a config is a whole number.

    Args:
        value: The value.

    Returns:
        False for a truth value, too, which Python takes for one.
    """
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value of a config is a number.

    Args:
        value: The value.

    Returns:
        False for a truth value, too.
    """
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_list_of(fits: Callable[[Any], bool], value: Any, length: int | None = None) -> bool:
    """Whether a value of a config is a list of something.

    Args:
        fits: Whether one of its values is right.
        value: The value.
        length: How many there have to be; any number if not given.

    Returns:
        False for a text, too, which Python takes for a list of letters.
    """
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and length in (None, len(value)) and all(fits(one) for one in value)


def check_seed(seed: Any) -> int:
    """Checks a seed.

    Args:
        seed: The seed.

    Returns:
        The seed.

    Raises:
        UmcError: If it is no whole number.
    """
    if not is_whole(seed):
        raise UmcError(f"seed {seed} must be a whole number")
    return seed


def check_mapping(name: str, value: Any) -> dict[str, Any]:
    """Checks something that goes by names.

    Args:
        name: What the parameter is called.
        value: The mapping, or None.

    Returns:
        The mapping; empty for None.

    Raises:
        UmcError: If it is none.
    """
    if value is not None and not isinstance(value, Mapping):
        raise UmcError(f"{name} {value} must be a mapping, such as {{name: value}}")
    return dict(value or {})


def check_path(name: str, value: Any) -> Path:
    """Checks the name of a file.

    Args:
        name: What the parameter is called.
        value: The name.

    Returns:
        The path.

    Raises:
        UmcError: If it is none.
    """
    if not isinstance(value, str | PathLike):
        raise UmcError(f"{name} {value} must be the name of a file")
    return Path(value)


def check_scenario(scenario: Any) -> list[int | str]:
    """Checks which scenarios are dealt out.

    Args:
        scenario: One or several.

    Returns:
        All of them.

    Raises:
        UmcError: If there is none, or one is neither a number nor a name.
    """
    names = [scenario] if isinstance(scenario, int | str) else scenario
    if not is_list_of(lambda name: isinstance(name, int | str), names):
        raise UmcError(f"scenario {scenario} must be a whole number, a name, or a list of these")
    if not names:
        raise UmcError("scenario must name one or several; none is given")
    return list(names)


def check_ratios(ratios: Sequence[float] | Mapping[str, float]) -> dict[str, float]:
    """Names the odds.

    Args:
        ratios: Odds of the paper's subcategories, or by name.

    Returns:
        Odds by the name of a scenario.

    Raises:
        UmcError: If they are too few or too many, no numbers, negative, or all 0.
    """
    if isinstance(ratios, Mapping):
        odds = dict(ratios)
    else:
        if not is_list_of(lambda _: True, ratios, len(SUBCATEGORIES)):
            raise UmcError(f"ratios {ratios} must have {len(SUBCATEGORIES)} numbers: {', '.join(SUBCATEGORIES)}")
        odds = dict(zip(SUBCATEGORIES, ratios, strict=True))
    shown = tuple(odds.values())
    if not all(is_number(ratio) and math.isfinite(ratio) and ratio >= 0.0 for ratio in shown):
        raise UmcError(f"ratios {shown} must be numbers, finite and not negative")
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
        UmcError: If they are no two whole numbers, out of order or out of range.
    """
    if not is_list_of(is_whole, count, 2) or not least <= count[0] <= count[1] <= most:
        raise UmcError(
            f"{name} {count} must be fewest and most, two whole numbers between {least} and the {most} {what}"
        )
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
        UmcError: If there is none, one is no whole number, or lies before the first step or after the episode's end.
    """
    if not is_list_of(is_whole, onset_range, 2):
        raise UmcError(f"onset_range {onset_range} must be first and last step, two whole numbers")
    choices = [onset] if isinstance(onset, int) else onset
    if choices is not None and not is_list_of(is_whole, choices):
        raise UmcError(f"onset {onset} must be a whole number of env steps, or a list of them")
    name, steps = ("onset_range", tuple(onset_range)) if choices is None else ("onset", tuple(choices))
    if not steps or min(steps) < 1:
        raise UmcError(f"{name} {steps} must hold steps from 1 on (the first that an episode takes)")
    if choices is None and steps[0] > steps[1]:
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
        UmcError: If they are no whole numbers, out of order or below 1.
    """
    if steps is None:
        return None
    span: Any = (steps, steps) if is_whole(steps) else steps
    if not is_list_of(is_whole, span, 2) or not 1 <= span[0] <= span[1]:
        raise UmcError(f"{name} {steps} must be a whole number of env steps from 1 on, or the least and the most")
    return span[0], span[1]


def check_duty(duty: float) -> float:
    """Checks the part of a period that a fault is on.

    Args:
        duty: The part [-].

    Returns:
        The part.

    Raises:
        UmcError: If it is no number in (0, 1].
    """
    if not is_number(duty) or not 0.0 < duty <= 1.0:
        raise UmcError(f"duty {duty} must be a number above 0 and at most 1")
    return duty
