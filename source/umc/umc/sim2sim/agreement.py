# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Agreement of two engines about one policy: rates, paired differences, and robots with the same outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from prettytable import PrettyTable

from umc.evaluation.metrics import Outcome
from umc.evaluation.statistics import Difference, Interval, bootstrap_mean, matched, paired_bootstrap, wilson
from umc.evaluation.study import EpisodeBatch, PolicyResult, Study
from umc.faults import Ledger
from umc.utils.errors import UmcError

EVERYTHING = "all"
"""Name of the row that holds all scenarios."""

FREE_TO_DIFFER = ("num_envs", "track", "radii")
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


def pair_up(
    first: Study, result: PolicyResult, second: Study, other: PolicyResult
) -> tuple[EpisodeBatch, EpisodeBatch]:
    """Return the runs of the robots that two studies share, in the same order."""
    here, there = first.protocol.describe(), second.protocol.describe()
    apart = [name for name in here if name not in FREE_TO_DIFFER and _plain(here[name]) != _plain(there[name])]
    if apart or first.joint_names != second.joint_names:
        names = ", ".join(apart) or "joint names"
        raise UmcError(f"the two evaluations have different conditions ({names}); run one with those of the other")
    runs = (result.run, other.run)
    keys = [np.stack([run.cell.numpy(), run.member.numpy()], axis=1) for run in runs]
    rows = matched(*keys)
    if not len(rows[0]):
        raise UmcError("the two evaluations share no robot; raise --episodes")
    left, right = (run.select(torch.as_tensor(row)) for run, row in zip(runs, rows, strict=True))
    if not torch.equal(left.joints, right.joints):
        raise UmcError(
            "the same robots have different faulty joints in the two evaluations; run both with the same umc"
        )
    return left, right


def agreement(study: Study, first: EpisodeBatch, second: EpisodeBatch) -> list[Agreement]:
    """Compare paired runs of :func:`pair_up`: a row per scenario, then one of all robots that both evaluated."""
    fine = [np.isin(run.episodes.outcome.numpy(), (Outcome.UP, Outcome.FAILED)) for run in (first, second)]
    valid = fine[0] & fine[1]
    up = [run.episodes.outcome.numpy() == Outcome.UP for run in (first, second)]
    flags = {
        f"reached@{radius:g}": [
            alive & (run.episodes.distance.numpy() > radius) for alive, run in zip(up, (first, second), strict=True)
        ]
        for radius in study.protocol.radii
    } | {"failed": [~alive for alive in up]}
    scenarios = study.protocol.scenarios
    cell, member = first.cell.numpy(), first.member.numpy()
    of = np.array([str(scenario) for scenario in scenarios])[cell % len(scenarios)]
    unit = np.unique(np.stack([cell // len(scenarios), member], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    return _rows([str(scenario) for scenario in scenarios], of, valid, unit, flags, "failed")


def ledger_agreement(
    ledger: Ledger, scenario: Sequence[str], run: EpisodeBatch, keys: NDArray[np.int64]
) -> list[Agreement]:
    """Compare a run with the lengths of the recorded episodes: of engines, if the policies are the same.

    A recorded episode that is as long as the longest counts as stood, any other as a fall. ``scenario`` is that of
    every robot, ``keys`` its env and episode, shape (R, 2).
    """
    lengths = [ledger.episodes[env, episode].length for env, episode in keys.tolist()]
    longest = max((length for length in lengths if length is not None), default=0)
    known = np.array([length is not None for length in lengths])
    recorded = np.array([(length or 0) >= longest for length in lengths])
    stood = (run.episodes.outcome == Outcome.UP).numpy()
    return _rows(
        list(dict.fromkeys(scenario)),
        np.array(scenario),
        known,
        np.arange(len(keys)),
        {"stood": [recorded, stood]},
        "stood",
    )


def _rows(
    scenarios: Sequence[str],
    of: NDArray[np.str_],
    valid: NDArray[np.bool_],
    unit: NDArray[np.int64],
    flags: dict[str, list[NDArray[np.bool_]]],
    outcome: str,
) -> list[Agreement]:
    rows: list[Agreement] = []
    for name in (*scenarios, EVERYTHING):
        chosen = valid & ((of == name) | (name == EVERYTHING))
        count = int(chosen.sum())
        if not count:
            continue
        first, second = (flag[chosen] for flag in flags[outcome])
        rates = tuple(_rate(key, left[chosen], right[chosen], unit[chosen]) for key, (left, right) in flags.items())
        p, q = float(first.mean()), float(second.mean())
        chance = p * q + (1.0 - p) * (1.0 - q)
        if name == EVERYTHING:  # a robot's scenario is not chance
            chance = sum(row.pairs * row.by_chance for row in rows) / count
        rows.append(Agreement(name, count, _share(first == second, unit[chosen]), chance, rates))
    return rows


def _share(flag: NDArray[np.bool_], unit: NDArray[np.int64]) -> Interval:
    """A share of pairs: Wilson's interval where every pair is another robot, else a bootstrap over robots."""
    means = _by_unit(flag, unit)
    found = wilson(int(flag.sum()), len(flag)) if len(means) == len(flag) else bootstrap_mean(means)
    assert found is not None  # there are pairs
    return found


def _rate(name: str, first: NDArray[np.bool_], second: NDArray[np.bool_], unit: NDArray[np.int64]) -> Rate:
    found = paired_bootstrap(_by_unit(first, unit), _by_unit(second, unit))
    assert found is not None  # there are pairs
    return Rate(name, float(first.mean()), float(second.mean()), found)


def _by_unit(flag: NDArray[np.bool_], unit: NDArray[np.int64]) -> NDArray[np.float64]:
    """Mean over the pairs of each robot."""
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
        same = f"{100 * row.same.value:.0f} ({100 * row.same.low:.0f} to {100 * row.same.high:.0f})"
        cells = [row.scenario, row.pairs, same, f"{100 * row.by_chance:.0f}"]
        for rate in (rate for rate in row.rates if rate.name in chosen):
            span = f"{100 * rate.difference.low:+.0f} to {100 * rate.difference.high:+.0f}"
            cells.append(f"{100 * rate.first:.0f} / {100 * rate.second:.0f}  ({span})")
        table.add_row(cells)
    return f"rates: {names[0]} / {names[1]} (95 % interval of the difference)\n{table.get_string()}"


def _plain(value: object) -> object:
    """Tuples as lists, as files store them."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
