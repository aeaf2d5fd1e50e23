# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Agreement of two engines about one policy: rates, paired differences, and robots with the same outcome."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from prettytable import PrettyTable

from umc.evaluation.metrics import Outcome, metrics_of
from umc.evaluation.protocol import Protocol
from umc.evaluation.statistics import (
    MIN_ROBOTS,
    Difference,
    Interval,
    bootstrap_mean,
    matched,
    paired_bootstrap,
    wilson,
)
from umc.evaluation.study import STUDY, EpisodeBatch, PolicyResult, Study, json_values, load_study
from umc.faults import Ledger
from umc.faults.detection import SOURCES
from umc.sim2sim.rollout import RolloutCfg
from umc.utils.errors import UmcError
from umc.utils.io import without_nan, write_json

Flags = NDArray[np.bool_]
Units = NDArray[np.int64]

AGREEMENT = "agreement.json"
"""File with the comparison, beside the report."""

TOO_FEW = "too few"
"""What stands in place of an interval of few robots."""

ALL = "all"
"""Name of the row that holds all scenarios."""

FREE_TO_DIFFER = ("num_envs", "radii")
"""Fields of a protocol that do not change a robot's episode on flat ground."""


@dataclass(frozen=True)
class Rate:
    """One rate in both engines, over the robots that both evaluated."""

    name: str
    """``reached@k`` or ``failed``; ``stood`` where only lengths of episodes are known."""
    first: float
    second: float
    difference: Difference
    """Second minus first; robots that share their faulty joints over scenarios count once."""


@dataclass(frozen=True)
class Agreement:
    """The pairs of one scenario."""

    scenario: str
    pairs: int
    """Robots that both evaluated."""
    same: Interval
    """Share of the pairs with the same outcome: up to the end in both, or fallen in both."""
    by_chance: float
    """The same share if each engine drew its outcomes with its own rate in the scenario, whatever the robot."""
    rates: tuple[Rate, ...]


def find_result(path: Path, description: Mapping[str, Any]) -> tuple[Study, PolicyResult]:
    """Read a study, given its file or its report's folder, and find the policy of a ``policy.json`` in it."""
    study = load_study(path / STUDY if os.path.isdir(path) else path)
    if study.protocol.track:
        raise UmcError(f"{path} was evaluated on tracks, MuJoCo's ground is flat; evaluate with env.scene.terrain=flat")
    for result in study.policies:
        same = result.about.get("reads") == description.get("reads")
        same &= result.about.get("detection", SOURCES[0]) == SOURCES[0]  # as MuJoCo's
        if same and result.about.get("sha256") == description["checkpoint"]["sha256"]:
            return study, result
    names = ", ".join(result.label for result in study.policies)
    file = description["checkpoint"]["file"]
    raise UmcError(
        f"{path} has no result of {file} with the oracle; it has {names}. Evaluate {file} and give that folder"
    )


def require_same_conditions(first: Protocol, second: Protocol) -> None:
    """Raise UmcError unless robots of two protocols on flat ground can be compared."""
    here, there = (one.without_track().describe() for one in (first, second))
    apart = [
        name
        for name in here | there
        if name not in FREE_TO_DIFFER and json_values(here.get(name)) != json_values(there.get(name))
    ]
    if apart:
        names = ", ".join(apart)
        raise UmcError(f"the two evaluations have different conditions ({names}); run one with those of the other")


def pair_up(first: Study, result: PolicyResult, second: Study) -> tuple[EpisodeBatch, EpisodeBatch]:
    """Return the runs of the robots that a policy's result and a study of it alone share, in the same order."""
    require_same_conditions(first.protocol, second.protocol)
    if first.joint_names != second.joint_names:
        raise UmcError("the two evaluations have different joint names; run both with the same umc")
    runs = (result.run, second.policies[0].run)
    rows = matched(*(np.stack([run.cell.numpy(), run.member.numpy()], axis=1) for run in runs))
    if not len(rows[0]):
        raise UmcError("the two evaluations share no robot; raise --episodes")
    left, right = (run.select(torch.as_tensor(row)) for run, row in zip(runs, rows, strict=True))
    if not torch.equal(left.joints, right.joints):
        raise UmcError(
            "the same robots have different faulty joints in the two evaluations; run both with the same umc"
        )
    return left, right


def agreement(protocol: Protocol, first: EpisodeBatch, second: EpisodeBatch) -> list[Agreement]:
    """Compare paired runs of :func:`pair_up`: a row per scenario, then one of all robots that both evaluated."""
    runs, scenarios = (first.episodes, second.episodes), protocol.scenarios
    valid = (runs[0].evaluated & runs[1].evaluated).numpy()
    rates = metrics_of(protocol.radii)[: len(protocol.radii) + 1]  # reached@k, then failed: the outcome
    flags = {rate.key: [rate.terms(run)[0].numpy()[valid] for run in runs] for rate in rates}
    cell, member = first.cell.numpy(), first.member.numpy()
    seeds = np.array([setting.seed for setting, _ in protocol.cells])
    robots = np.stack([seeds[cell], member], axis=1)
    unit = np.unique(robots, axis=0, return_inverse=True)[1].reshape(-1)
    return _rows(scenarios, (cell % len(scenarios))[valid], unit[valid], flags)


def ledger_agreement(ledger: Ledger, cfg: RolloutCfg, study: Study) -> list[Agreement]:
    """Compare a ledger's robots with the lengths of the recorded episodes: of engines, if the policies are the same.

    A recorded episode that is as long as the longest, or as the rollout, counts as stood, any other as a fall.
    """
    lengths = [ledger.episodes[key].length for key in zip(cfg.env.tolist(), cfg.episode.tolist(), strict=True)]
    longest = max((length for length in lengths if length is not None), default=0)
    known = np.array([length is not None for length in lengths])
    recorded = np.array([(length or 0) >= min(longest, cfg.steps) for length in lengths])
    outcome = study.policies[0].run.episodes.outcome
    stood = ((outcome == Outcome.UP) | (outcome == Outcome.NO_ONSET)).numpy()
    flags = {"stood": [recorded[known], stood[known]]}
    return _rows(study.protocol.scenarios, cfg.cell[known], np.flatnonzero(known), flags)


def _rows(names: Sequence[Any], scenario: Units, unit: Units, flags: Mapping[str, Sequence[Flags]]) -> list[Agreement]:
    """Compare pairs of flags, of which the last are the outcome, by scenario; units are the robots."""
    rows: list[Agreement] = []
    for number in (*np.unique(scenario), None) if len(unit) else ():
        chosen = slice(None) if number is None else scenario == number
        rates = tuple(_rate(name, *(flag[chosen] for flag in pair), unit[chosen]) for name, pair in flags.items())
        *_, (first, second) = flags.values()
        p, q = rates[-1].first, rates[-1].second
        chance = p * q + (1.0 - p) * (1.0 - q)
        if number is None:  # a robot's scenario is not chance
            chance = sum(row.pairs * row.by_chance for row in rows) / len(unit)
        same = _share((first == second)[chosen], unit[chosen])
        rows.append(Agreement(ALL if number is None else str(names[number]), len(unit[chosen]), same, chance, rates))
    return rows


def _share(flag: Flags, unit: Units) -> Interval:
    """Return a share of pairs: Wilson's interval where every pair is another robot, else a bootstrap over robots."""
    means = _by_unit(flag, unit)
    if len(means) < MIN_ROBOTS and len(means) < len(flag):
        return Interval(float(means.mean()), math.nan, math.nan)
    found = wilson(int(flag.sum()), len(flag)) if len(means) == len(flag) else bootstrap_mean(means)
    assert found is not None  # there are pairs
    return found


def _rate(name: str, first: Flags, second: Flags, unit: Units) -> Rate:
    found = paired_bootstrap(_by_unit(first, unit), _by_unit(second, unit))
    if len(np.unique(unit)) < MIN_ROBOTS:
        found = replace(found, low=math.nan, high=math.nan, p=math.nan)
    return Rate(name, float(first.mean()), float(second.mean()), found)


def _by_unit(flag: Flags, unit: Units) -> NDArray[np.float64]:
    """Return the mean over the pairs of each robot."""
    _, place = np.unique(unit, return_inverse=True)
    return np.bincount(place, weights=flag.astype(float)) / np.bincount(place)


def agreement_table(rows: Sequence[Agreement], names: tuple[str, str]) -> str:
    """Format the rows of :func:`agreement` as text; names are those of the two engines."""
    if not rows:
        return "no robot was evaluated in both"
    shown = [rate.name for rate in rows[0].rates]
    # the middle radius and falls; the file has all
    chosen = [shown[(len(shown) - 1) // 2], shown[-1]] if len(shown) > 1 else shown
    table = PrettyTable(["scenario", "pairs", "same outcome [%]", "by chance", *(f"{name} [%]" for name in chosen)])
    table.border, table.align, table.padding_width = False, "r", 1
    for row in rows:
        same = f"{100 * row.same.value:.0f} ({_span(row.same)})"
        cells = [row.scenario, row.pairs, same, f"{100 * row.by_chance:.0f}"]
        for rate in (rate for rate in row.rates if rate.name in chosen):
            cells.append(f"{100 * rate.first:.0f} / {100 * rate.second:.0f}  ({_span(rate.difference, '+')})")
        table.add_row(cells)
    few = any(math.isnan(rate.difference.low) for row in rows for rate in row.rates)
    why = f"\n{TOO_FEW}: fewer than {MIN_ROBOTS} robots, from which a bootstrap gives no interval" if few else ""
    return f"rates: {names[0]} / {names[1]} (95 % interval of the difference)\n{table.get_string()}{why}"


def _span(found: Interval | Difference, sign: str = "") -> str:
    """Print an interval in percent."""
    return TOO_FEW if math.isnan(found.low) else f"{100 * found.low:{sign}.0f} to {100 * found.high:{sign}.0f}"


def write_agreement(rows: Sequence[Agreement], engine: str, out: Path) -> None:
    """Print the rows beside the name of the first engine, and write them to a folder."""
    print(agreement_table(rows, (engine, "MuJoCo")))
    content = {"first": engine, "second": "mujoco", "scenarios": [without_nan(asdict(row)) for row in rows]}
    write_json(out / AGREEMENT, content, indent=1, allow_nan=False)
    print(f"agreement: {out / AGREEMENT}", flush=True)
