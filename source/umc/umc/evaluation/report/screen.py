# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Tables for the terminal, and the report of a healthy gait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from prettytable import HRuleStyle, PrettyTable, VRuleStyle

from umc.evaluation.estimates import RobotTable
from umc.evaluation.gait import SHARE, GaitReport, JointLoad
from umc.evaluation.metrics import Outcome, metrics_of, reached_key
from umc.evaluation.report.renderers import figure
from umc.evaluation.study import PolicyResult, Study
from umc.utils.provenance import versions

FORMAT = 2
"""Version of the layout of ``gait.json``."""

MANY_FALLS = 0.2
"""Share of robots that fall without a fault above which a policy may be fed something else than in its training [-]."""

MEANS = {"speed_before_onset": "v before [m/s]", "survival": "up for [s]", "height_after_onset": "height [m]"}
"""Metrics beside the rates, and the heads of their columns."""


def gait_report(report: GaitReport, run: Mapping[str, Any], loads: Sequence[JointLoad] = ()) -> dict[str, Any]:
    """Collect what ``gait.json`` holds of a measurement of the healthy gait."""
    joints = {load.joint: {key: value for key, value in asdict(load).items() if key != "joint"} for load in loads}
    return {
        "format": FORMAT,
        "kind": "healthy",
        **run,
        "gait": asdict(report),
        "joints": joints,
        "versions": versions(),
    }


def score_table(study: Study, result: PolicyResult) -> str:
    """Tabulate a policy's score in each scenario of the protocol, and their average."""
    protocol = study.protocol
    scores = [study.score(result, study.scenario_rows(result, scenario)) for scenario in protocol.scenarios]
    radii = [f"@{radius:g}" for radius in protocol.radii]
    metrics = {metric.key: metric for metric in metrics_of(protocol.radii)}
    rates = [*map(reached_key, protocol.radii), "failed"]
    table = _table(["scenario", "evaluated", *radii, "failed", "fell before", "non-finite", *MEANS.values()])
    named = [*zip(map(str, protocol.scenarios), scores, strict=True), ("average", RobotTable(study, result).score())]
    for number, (name, one) in enumerate(named, 1):
        shown = {key: figure(metrics[key], one[key]) for key in (*rates, *MEANS)}
        counts = (one.counts["fell_before_onset"], one.counts["non_finite"])
        row = [name, one.evaluated, *(shown[key] for key in rates), *counts, *(shown[key] for key in MEANS)]
        table.add_row(row, divider=number == len(scores))
    words = "@k and failed in % of the robots that stood at onset; @k: beyond k m from there, without a fall"
    return f"{words}\n{table}"


def healthy_falls(study: Study) -> list[str]:
    """Name the policies that fall without a fault, and what may be wrong."""
    found = []
    healthy = [scenario for scenario in study.protocol.scenarios if not study.protocol.scenario(scenario).kinds]
    for result in study.policies if healthy else ():
        rows = torch.stack([study.scenario_rows(result, scenario) for scenario in healthy]).any(dim=0)
        outcome = result.run.episodes.outcome[rows]
        fell = ((outcome == Outcome.FAILED) | (outcome == Outcome.FELL_BEFORE_ONSET)).float().mean().item()
        if fell > MANY_FALLS:
            found.append(
                f"{result.label} falls in {fell:.0%} of the cases without a fault. If it walks elsewhere, compare what "
                "it reads, its joint order, action scale and gains (docs/external_policies.md)."
            )
    return found


def gait_table(report: GaitReport) -> str:
    """Tabulate the figures of the healthy gait."""
    table = _table(["healthy gait", ""])
    means = (report.forward_speed, report.sideward_speed, report.turning_rate)
    names, units = ("forward speed", "speed to the left", "turning rate"), ("m/s", "m/s", "rad/s")
    velocity = zip(names, means, units, report.command, strict=True)
    table.add_rows([
        ["robots, seconds", f"{report.envs}, {report.seconds:.1f}"],
        *([f"{what} / command [{unit}]", f"{mean:.3f} / {asked:.2f}"] for what, mean, unit, asked in velocity),
        ["straight-line speed [m/s]", f"{report.net_speed:.3f}"],
        ["falls, non-finite, standing still", f"{report.falls}, {report.non_finite}, {report.standing}"],
        ["trunk height [m]", f"{report.trunk_height:.3f}"],
        ["feet on the ground", f"{report.mean_feet_in_contact:.2f} of {len(report.duty_factor)}"],
    ])  # fmt: skip
    for foot, duty in report.duty_factor.items():
        table.add_row([
            f"{foot}: time on the ground, swings", f"{duty:.0%}, {report.swings_per_second[foot]:.2f} per s"
        ])  # fmt: skip
    return str(table)


def load_table(loads: Sequence[JointLoad], severity: Mapping[str, Any]) -> str:
    """Tabulate the load of each joint beside the severities by kind of fault that it was measured against."""
    if not loads:
        return "no robot was up long enough to measure its joints"
    columns = [
        ("joint", [load.joint for load in loads]),
        ("mean [N*m]", [f"{load.mean_effort:.1f}" for load in loads]),
        (f"{SHARE:.0%} below [N*m]", [f"{load.high_effort:.1f}" for load in loads]),
        (f"{SHARE:.0%} below [rad/s]", [f"{load.high_velocity:.1f}" for load in loads]),
    ]
    if loads[0].beyond_effort is not None:
        shares = [f"{load.beyond_effort:.0%}" for load in loads]
        columns.insert(3, (f"above {severity['effort']:g} N*m", shares))
    if loads[0].beyond_velocity is not None:
        shares = [f"{load.beyond_velocity:.0%}" for load in loads]
        columns.append((f"above {severity['velocity']:g} rad/s", shares))
    table = _table([head for head, _ in columns])
    table.add_rows([list(row) for row in zip(*(cells for _, cells in columns), strict=True)])
    return str(table)


def _table(heads: Sequence[str]) -> PrettyTable:
    table = PrettyTable(
        heads, align="r", hrules=HRuleStyle.HEADER, vrules=VRuleStyle.NONE, junction_char="-",
        left_padding_width=0, right_padding_width=2,
    )  # fmt: skip
    table.align[heads[0]] = "l"
    return table
