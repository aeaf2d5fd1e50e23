# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Tables for the screen, and the report of a healthy gait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from umc.evaluation.gait import GaitReport
from umc.evaluation.joint_load import SHARE, JointLoad
from umc.evaluation.metrics import Score, average
from umc.evaluation.protocol import Protocol

FORMAT = 1
"""Version of the layout of ``gait.json``."""

PACKAGES = ("umc", "isaaclab", "newton", "mujoco-warp", "warp-lang", "ovphysx", "torch", "rsl-rl-lib")
"""Packages whose versions stand in the report."""

DEFINITION = (
    "reached@k: moved beyond k metres (horizontally) from where it stood at onset and did not fall before the end; "
    "failed: fell after onset; both divided by the robots that stood at onset. Robots that fell before onset or whose "
    "physics became non-finite are left out and counted. The average weighs scenarios equally."
)


def versions() -> dict[str, str | None]:
    """Versions of the packages that a result depends on."""
    found: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def gait_report(report: GaitReport, run: Mapping[str, Any], loads: Sequence[JointLoad] = ()) -> dict[str, Any]:
    """Everything about a measurement of the healthy gait."""
    joints = {load.joint: {key: value for key, value in asdict(load).items() if key != "joint"} for load in loads}
    return {
        "format": FORMAT,
        "kind": "healthy",
        **run,
        "gait": asdict(report),
        "joints": joints,
        "versions": versions(),
    }


def _cell(value: float | None, scale: float, digits: int) -> str:
    return "-" if value is None else f"{value * scale:.{digits}f}"


def score_table(protocol: Protocol, scores: Sequence[Score]) -> str:
    """The table for the screen: a line per scenario and their average."""
    head = ["scenario", "judged", *(f"@{radius:g}" for radius in protocol.radii), "failed"]
    head += ["fell before", "non-finite", "v before [m/s]", "up for [s]", "height [m]"]
    named = [*zip(map(str, protocol.scenarios), scores, strict=True), ("average", average(scores))]
    rows = [head]
    for name, one in named:
        rows.append([
            name,
            str(one.judged),
            *(_cell(share, 100, 0) for share in one.reached),
            _cell(one.failed, 100, 0),
            str(one.fell_before_onset),
            str(one.non_finite),
            _cell(one.speed_before_onset, 1, 2),
            _cell(one.survival, 1, 1),
            _cell(one.height_after_onset, 1, 3),
        ])  # fmt: skip
    lines = _aligned(rows)
    radii = "@k and failed in % of the robots that stood at onset; @k: beyond k m from there, without a fall"
    return "\n".join([radii, lines[0], "-" * len(lines[0]), *lines[1:-1], "-" * len(lines[0]), lines[-1]])


def gait_table(report: GaitReport) -> str:
    """The figures of the healthy gait for the screen."""
    rows = [
        ["robots, seconds", f"{report.envs}, {report.seconds:.1f}"],
        ["forward speed / command [m/s]", f"{report.forward_speed:.3f} / {report.command:.2f}"],
        ["straight-line speed [m/s]", f"{report.net_speed:.3f}"],
        ["falls, non-finite, standing still", f"{report.falls}, {report.non_finite}, {report.standing}"],
        ["trunk height [m]", f"{report.trunk_height:.3f}"],
        ["feet on the ground", f"{report.mean_feet_in_contact:.2f} of {len(report.duty_factor)}"],
    ]
    rows += [
        [f"{foot}: time on the ground, swings", f"{duty:.0%}, {report.swings_per_second[foot]:.2f} per s"]
        for foot, duty in report.duty_factor.items()
    ]
    return "\n".join(f"{name:<34} {value}" for name, value in rows)


def load_table(loads: Sequence[JointLoad], severity: Mapping[str, Any]) -> str:
    """What each joint gives, for the screen."""
    if not loads:
        return "no robot was up long enough to measure its joints"
    columns = [
        ("joint", [load.joint for load in loads]),
        ("mean [N*m]", [_cell(load.mean_effort, 1, 1) for load in loads]),
        (f"{SHARE:.0%} below [N*m]", [_cell(load.high_effort, 1, 1) for load in loads]),
        (f"{SHARE:.0%} below [rad/s]", [_cell(load.high_velocity, 1, 1) for load in loads]),
    ]
    if loads[0].beyond_effort is not None:
        shares = [_cell(load.beyond_effort, 100, 0) + "%" for load in loads]
        columns.insert(3, (f"above {severity['effort']:g} N*m", shares))
    if loads[0].beyond_velocity is not None:
        shares = [_cell(load.beyond_velocity, 100, 0) + "%" for load in loads]
        columns.append((f"above {severity['velocity']:g} rad/s", shares))
    return "\n".join(_aligned([[head for head, _ in columns], *zip(*(cells for _, cells in columns), strict=True)]))


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
