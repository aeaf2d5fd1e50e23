# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Draws what breaks: a plan for each env and episode, from (seed, env, episode) and nothing else."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import torch

from umc.errors import UmcError

from .random import integers, philox, uniform
from .scenarios import SCENARIOS, SUBCATEGORY_FAULTS, Scenario, Subcategory

NEVER = 2**62
"""A step that no episode reaches."""

TRAINING_MIX = 0
"""Scenario number of an env that draws its subcategory."""

ONSET_RANGE = (1, 250)
"""First and last training onset [env steps]. The paper prints none; this holds its inference onsets (75, 100, 125) and
lets a policy meet faults both while it starts to walk and within the first 5 s of walking."""


class _Stream(IntEnum):
    """The third word of the counter: every quantity has random numbers of its own. Append only: plans depend on it."""

    SUBCATEGORY = 0
    NUM_JOINTS = 1
    JOINTS = 2
    ONSET = 3
    PLACEMENT = 4


@dataclass(frozen=True)
class FaultPlan:
    """What is going to happen in one episode of each of N envs with J joints."""

    subcategory: torch.Tensor
    """:class:`Subcategory`, dtype int64. Shape is (N,)."""
    scenario: torch.Tensor
    """Forced scenario 1 to 8, or 0 for the training mix, dtype int64. Shape is (N,)."""
    joints: torch.Tensor
    """Faulty joints, dtype bool. Shape is (N, J)."""
    onset: torch.Tensor
    """First env step whose observation shows the fault, dtype int64; :data:`NEVER` in healthy envs. Shape is (N,)."""
    end: torch.Tensor
    """First env step that is healthy again, dtype int64; :data:`NEVER` for now. Shape is (N,)."""
    sensor: torch.Tensor
    """Joints whose sensor dies, dtype bool. Shape is (N, J)."""
    rom: torch.Tensor
    """Joints whose range of motion shrinks, dtype bool. Shape is (N, J)."""
    effort: torch.Tensor
    """Joints that lose torque, dtype bool. Shape is (N, J)."""
    velocity: torch.Tensor
    """Joints that lose speed, dtype bool. Shape is (N, J)."""
    placement: torch.Tensor
    """Where the range-of-motion window lies between its two extreme positions, in [0, 1). Shape is (N, J)."""
    rom_fraction: torch.Tensor
    """Part of the range of motion that is left [-]. Shape is (N, J)."""
    effort_limit: torch.Tensor
    """Torque that is left [N*m]. Shape is (N, J)."""
    velocity_limit: torch.Tensor
    """Speed that is left [rad/s]. Shape is (N, J)."""


def resolve_severity(
    name: str, value: float | Mapping[str, float], joint_names: Sequence[str], largest: float = math.inf
) -> list[float]:
    """Gives every joint that can fail its severity.

    Args:
        name: What the value is called, for the error.
        value: One number for all joints, or numbers by joint-name pattern (full match, the first that matches wins).
        joint_names: The joints.
        largest: Largest value that makes sense.

    Returns:
        One positive value per joint.

    Raises:
        UmcError: If a pattern matches no joint, a joint has no value, or a value is not in (0, largest].
    """
    patterns = value if isinstance(value, Mapping) else {".*": value}
    for pattern in patterns:
        if not any(re.fullmatch(pattern, joint) for joint in joint_names):
            raise UmcError(f"{name}: pattern '{pattern}' matches no joint; the joints are {', '.join(joint_names)}")
    values = []
    for joint in joint_names:
        matched = [number for pattern, number in patterns.items() if re.fullmatch(pattern, joint)]
        if not matched:
            raise UmcError(f"{name}: joint '{joint}' matches no pattern; add one to {list(patterns)}")
        if not 0.0 < matched[0] <= largest:
            bound = "above 0" if math.isinf(largest) else f"above 0 and at most {largest:g}"
            raise UmcError(f"{name}: {matched[0]} of joint '{joint}' must be {bound}")
        values.append(float(matched[0]))
    return values


class FaultSchedule:
    """Draws a :class:`FaultPlan` for any env and episode.

    The draw is a function of (seed, env, episode): env 17's fifth episode breaks the same way among 64 or 4,096 envs,
    on a CPU or a GPU, in any order of resets.

    Args:
        joint_names: All joints, in the order of observations.
        candidates: Names of the joints that can fail; all joints if not given.
        seed: Seed of every draw.
        ratios: How often each :class:`Subcategory` is drawn, in its order; they need not sum to 1.
        num_joints: Fewest and most faulty joints of an env.
        rom_fraction: Part of the range of motion that is left [-], in (0, 1]; one number or numbers by joint pattern.
        effort_limit: Torque that is left [N*m]; likewise.
        velocity_limit: Speed that is left [rad/s]; likewise.
        onset_range: First and last onset, drawn uniformly [env steps].
        onset: Onsets to choose from instead [env steps]; one number or several.
        scenario: Scenario 1 to 8 for all envs, or several that envs get in turn (env ``i`` the ``i % n``-th), instead
            of the ratios.
        episode_length: Length of an episode, to check the onsets against [env steps].
        device: Where plans are made.

    Raises:
        UmcError: If an argument makes no sense.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        *,
        candidates: Sequence[str] | None = None,
        seed: int = 0,
        ratios: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
        num_joints: tuple[int, int] = (2, 4),
        rom_fraction: float | Mapping[str, float] = 0.3,
        effort_limit: float | Mapping[str, float],
        velocity_limit: float | Mapping[str, float],
        onset_range: tuple[int, int] = ONSET_RANGE,
        onset: int | Sequence[int] | None = None,
        scenario: int | Sequence[int] | None = None,
        episode_length: int | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        self.joint_names = tuple(joint_names)
        self.seed = seed
        self.device = torch.device(device)
        ids = _candidate_ids(self.joint_names, candidates)
        names = [self.joint_names[index] for index in ids]
        self._candidates = torch.zeros(len(self.joint_names), dtype=torch.bool, device=self.device)
        self._candidates[ids] = True
        self._num_joints = _check_num_joints(num_joints, names)
        self._cumulative = _cumulative_ratios(ratios).to(self.device)
        self._onsets, self._onset_range = _check_onset(onset, onset_range, episode_length, self.device)
        self._scenarios = _check_scenario(scenario, self.device)
        severities = (
            resolve_severity("rom_fraction", rom_fraction, names, largest=1.0),
            resolve_severity("effort_limit", effort_limit, names),
            resolve_severity("velocity_limit", velocity_limit, names),
        )
        self._severities = torch.ones(len(severities), len(self.joint_names), device=self.device)
        self._severities[:, ids] = torch.tensor(severities, device=self.device)
        rows = [SUBCATEGORY_FAULTS[subcategory] for subcategory in Subcategory]
        self._kinds_of_subcategory = _kinds(rows).to(self.device)
        self._kinds_of_scenario = _kinds([Scenario(), *SCENARIOS.values()]).to(self.device)
        members = [Subcategory.NORMAL, *(scenario.subcategory for scenario in SCENARIOS.values())]
        self._subcategory_of_scenario = torch.tensor([int(member) for member in members], device=self.device)

    @property
    def breaks(self) -> bool:
        """Whether any env can ever get a fault; False for a healthy stage."""
        if self._scenarios is not None:
            return bool(self._kinds_of_scenario[self._scenarios].any())
        return bool(self._cumulative[Subcategory.NORMAL] < 1.0)

    def draw(self, env_ids: torch.Tensor, episode: torch.Tensor) -> FaultPlan:
        """Draws the plans of some envs.

        Args:
            env_ids: The envs, dtype int64. Shape is (N,).
            episode: Which episode of each env, counted from 0, dtype int64. Shape is (N,).

        Returns:
            The plans.
        """
        joint = torch.arange(len(self.joint_names), device=self.device)

        def words(stream: _Stream) -> torch.Tensor:
            return philox(self.seed, (env_ids, episode, int(stream), 0))

        def words_per_joint(stream: _Stream) -> torch.Tensor:
            return philox(self.seed, (env_ids[:, None], episode[:, None], int(stream), joint))

        if self._scenarios is None:
            scenario = torch.full_like(env_ids, TRAINING_MIX)
            share = uniform(words(_Stream.SUBCATEGORY)).double()
            subcategory = torch.bucketize(share, self._cumulative[:-1], right=True)
            kinds = self._kinds_of_subcategory[subcategory]
        else:
            scenario = self._scenarios[env_ids % len(self._scenarios)]
            subcategory = self._subcategory_of_scenario[scenario]
            kinds = self._kinds_of_scenario[scenario]
        breaks = kinds.any(dim=1)

        count = integers(words(_Stream.NUM_JOINTS), *self._num_joints)
        # distinct keys, so that a rank is the same whatever the sorting algorithm; joints that cannot fail come last
        keys = words_per_joint(_Stream.JOINTS) * len(self.joint_names) + joint
        keys = torch.where(self._candidates, keys, keys + NEVER)
        rank = keys.argsort(dim=1).argsort(dim=1)
        joints = (rank < count[:, None]) & breaks[:, None]

        if self._onsets is None:
            onset = integers(words(_Stream.ONSET), *self._onset_range)
        else:
            onset = self._onsets[integers(words(_Stream.ONSET), 0, len(self._onsets) - 1)]
        rom_fraction, effort_limit, velocity_limit = (row.expand(len(env_ids), -1) for row in self._severities)
        sensor, rom, effort, velocity = (joints & kinds[:, kind, None] for kind in range(kinds.shape[1]))
        return FaultPlan(
            subcategory=subcategory,
            scenario=scenario,
            joints=joints,
            onset=torch.where(breaks, onset, NEVER),
            end=torch.full_like(onset, NEVER),
            sensor=sensor,
            rom=rom,
            effort=effort,
            velocity=velocity,
            placement=uniform(words_per_joint(_Stream.PLACEMENT)),
            rom_fraction=rom_fraction,
            effort_limit=effort_limit,
            velocity_limit=velocity_limit,
        )


def _kinds(rows: Sequence[Scenario]) -> torch.Tensor:
    """Table of (sensor, rom, effort, velocity). Shape is (len(rows), 4)."""
    return torch.tensor([(row.sensor, row.rom, row.effort, row.velocity) for row in rows], dtype=torch.bool)


def _cumulative_ratios(ratios: Sequence[float]) -> torch.Tensor:
    """Checks the ratios and sums them up to 1."""
    if len(ratios) != len(Subcategory):
        raise UmcError(f"ratios {tuple(ratios)} must have {len(Subcategory)} numbers: {_order()}")
    if not all(math.isfinite(ratio) and ratio >= 0.0 for ratio in ratios):
        raise UmcError(f"ratios {tuple(ratios)} must be finite and not negative")
    total = math.fsum(ratios)
    if total <= 0.0:
        raise UmcError(f"ratios {tuple(ratios)} sum to 0; raise one of them ({_order()})")
    return torch.tensor(ratios, dtype=torch.float64).cumsum(0) / total


def _order() -> str:
    return ", ".join(subcategory.name.lower() for subcategory in Subcategory)


def _candidate_ids(joint_names: Sequence[str], candidates: Sequence[str] | None) -> list[int]:
    if candidates is None:
        return list(range(len(joint_names)))
    unknown = [name for name in candidates if name not in joint_names]
    if unknown:
        raise UmcError(f"no joint is named {', '.join(unknown)}; the joints are {', '.join(joint_names)}")
    return [index for index, name in enumerate(joint_names) if name in candidates]


def _check_num_joints(num_joints: tuple[int, int], joint_names: Sequence[str]) -> tuple[int, int]:
    low, high = num_joints
    if not 1 <= low <= high <= len(joint_names):
        raise UmcError(
            f"num_joints ({low}, {high}) must be fewest and most faulty joints, between 1 and the {len(joint_names)}"
            " joints that can fail"
        )
    return low, high


def _check_onset(
    onset: int | Sequence[int] | None, onset_range: tuple[int, int], episode_length: int | None, device: torch.device
) -> tuple[torch.Tensor | None, tuple[int, int]]:
    """Checks the onsets; returns the choices (or None) and the range."""
    choices = [onset] if isinstance(onset, int) else onset
    name, steps = ("onset_range", onset_range) if choices is None else ("onset", tuple(choices))
    if not steps or min(steps) < 1:
        raise UmcError(f"{name} {steps} must hold steps from 1 on (the first that an episode takes)")
    if choices is None and steps[0] > steps[1]:
        raise UmcError(f"{name} {steps} must be first and last step")
    if episode_length is not None and max(steps) >= episode_length:
        raise UmcError(f"{name} {steps} must lie before the episode's end at step {episode_length}")
    return (None if choices is None else torch.tensor(choices, device=device)), onset_range


def _check_scenario(scenario: int | Sequence[int] | None, device: torch.device) -> torch.Tensor | None:
    if scenario is None:
        return None
    numbers = [scenario] if isinstance(scenario, int) else list(scenario)
    unknown = [number for number in numbers if number not in SCENARIOS]
    if unknown or not numbers:
        raise UmcError(f"scenario {scenario} must be one or several of {', '.join(map(str, SCENARIOS))}")
    return torch.tensor(numbers, device=device)
