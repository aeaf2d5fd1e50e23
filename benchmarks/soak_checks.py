# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Compare what a soak measured with its ledger; pure torch."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace

import torch
from umc.faults import JointRange, Ledger, LedgerEpisode

TORQUE_TOLERANCE = 1.0e-3
"""Measured torque over the recorded cap, relative [-] (issue "The fault layer", part 4)."""

OVERSHOOT = {"newton_mjwarp": 0.005, "ovphysx": 0.05}
"""How far a joint may get out of its window [rad]; Newton measured: 0.0003, PhysX: 99.8 % of them within 0.05."""

BLOW, BLOW_SHARE = 0.2, 0.01
"""How far a blow of the ground may knock a falling robot's joint out of it [rad] (PhysX measured: 0.13), and the
largest share of windows that are left by more than :data:`OVERSHOOT` [-]."""

SPEEDING, SPEEDING_SHARE = 1.1, 0.01
"""Speed over the recorded cap that counts as too fast [-], and the largest share of too fast samples [-]."""

GRACE = 4
"""Physics steps after a switch in which a joint may still be as fast as it was."""

ROUNDING = 1.0e-6
"""Difference that is none: [N*m], and relative for limits [-]."""


@dataclass
class Segment:
    """What one env did between two switches, joint by joint; tensors' shape is (J,)."""

    env: int
    episode: int
    step: int
    """Env step of the switch that began it; 0 for the start of the episode."""
    samples: int
    """Physics steps."""
    torque: torch.Tensor
    """Largest torque [N*m]."""
    lowest: torch.Tensor
    """Lowest position [rad]."""
    highest: torch.Tensor
    """Highest position [rad]."""
    fastest: torch.Tensor
    """Largest speed after the grace [rad/s]."""
    too_fast: torch.Tensor
    """Physics steps after the grace above :data:`SPEEDING` times the cap."""
    start: torch.Tensor
    """Position at the switch [rad]."""
    engine: dict[str, torch.Tensor]
    """The engine's limits since the switch."""


@dataclass
class Findings:
    """What was found."""

    overshoot: float
    """How far a joint may leave its window but for blows [rad]."""
    violations: list[str] = field(default_factory=list)
    """One line each."""
    counts: Counter[str] = field(default_factory=Counter)
    """How much was looked at, and how often things happened."""
    worst: dict[str, float] = field(default_factory=dict)
    """Largest of everything that has a bound."""

    def note(self, name: str, value: float, least: float = 0.0) -> None:
        """Keep the largest of some values, ``least`` or more."""
        self.worst[name] = max(self.worst.get(name, least), value)

    def bound(self, name: str, value: float, limit: float, where: str) -> None:
        """Compare a measured value with its bound."""
        self.note(name, value, -math.inf)
        if not value <= limit:
            self.violations.append(f"{where}: {name} is {value:.6g}, more than {limit:.6g}")


def compare(ledger: Ledger, segments: list[Segment], findings: Findings) -> None:
    """Compare what was measured with the ledger; the first segment is one of a healthy robot."""
    healthy = segments[0].engine
    seen: dict[tuple[int, int], list[int]] = {}
    for segment in segments:
        key = (segment.env, segment.episode)
        if key not in ledger.episodes:
            findings.violations.append(f"env {key[0]}, episode {key[1]} is not in the ledger")
            continue
        seen.setdefault(key, []).extend([segment.step] if segment.step > 0 else [])
        limits, heated = ledger.episodes[key].limits_at(segment.step), _heated(ledger.episodes[key], segment.step)
        for joint, name in enumerate(ledger.header.joint_names):
            where = f"env {key[0]}, episode {key[1]}, from step {segment.step} on, {name}"
            healthy_range = JointRange(
                *(float(healthy[part][joint]) for part in ("lower", "upper", "effort", "velocity"))
            )
            findings.counts["joints held to limits"] += name in limits
            own = limits.get(name, healthy_range)
            if name in heated:  # its torque limit has moved since
                own = replace(own, effort=min(float(segment.engine["effort"][joint]), healthy_range.effort))
            cap = healthy_range.effort if name in heated else own.effort
            torque = float(segment.torque[joint]) - cap * (1.0 + TORQUE_TOLERANCE)
            findings.bound("torque above the cap [N*m]", torque, ROUNDING, where)
            _compare_joint(own, healthy_range, segment, joint, where, findings)
    for key, episode in ledger.episodes.items():
        _count(episode, findings.counts)
        switches = [switch.step for switch in episode.switches]
        measured = seen.get(key, [])
        if measured != switches[: len(measured)] or len(switches) > len(measured) + (episode.length is None):
            findings.violations.append(f"env {key[0]}, episode {key[1]}: switches {switches}, physics {measured}")
    counts = findings.counts
    too_fast = counts["samples too fast"] / max(counts["samples of capped speed"], 1)
    findings.bound(f"share of speeds above {SPEEDING} x the cap", too_fast, SPEEDING_SHARE, "all envs")
    left = counts["windows left"] / max(counts["windows"], 1)
    findings.bound(f"share of windows left by {findings.overshoot} rad", left, BLOW_SHARE, "all envs")


def _compare_joint(
    limits: JointRange,
    healthy_range: JointRange,
    segment: Segment,
    joint: int,
    where: str,
    findings: Findings,
) -> None:
    """Compare one joint between two switches, but for its torque."""
    outside = max(limits.lower - float(segment.lowest[joint]), float(segment.highest[joint]) - limits.upper)
    if (limits.lower, limits.upper) == (healthy_range.lower, healthy_range.upper):
        findings.note("healthy joint beyond its limits [rad]", outside)
    else:  # a joint that a fall had pressed beyond its limits starts there
        start = float(segment.start[joint])
        outside -= max(limits.lower - start, start - limits.upper, 0.0)
        findings.counts["windows"] += 1
        findings.counts["windows left"] += outside > findings.overshoot
        findings.bound("joint outside its window [rad]", outside, BLOW, where)
    expected = {name: getattr(limits, name) for name in ("lower", "upper", "effort")}
    capped = limits.velocity < healthy_range.velocity
    if capped or "row_speed" not in segment.engine:
        expected["row_speed" if "row_speed" in segment.engine else "velocity"] = limits.velocity
    for name, value in expected.items():
        error = float((segment.engine[name][joint] - value).abs())
        findings.bound("limit in the engine beside the ledger", error, ROUNDING * max(abs(value), 1.0), where)
    if capped and segment.samples > GRACE:
        findings.counts["samples of capped speed"] += segment.samples - GRACE
        findings.counts["samples too fast"] += int(segment.too_fast[joint])
        findings.note("speed over the cap [-]", float(segment.fastest[joint]) / limits.velocity)


def _heated(episode: LedgerEpisode, step: int) -> set[str]:
    """Return the joints whose torque limit moves with their motor's heat; the ledger has the limit of one moment."""
    past = [switch for switch in episode.switches if switch.step <= step]
    numbers = past[-1].on if past else ()
    return {joint for number in numbers for joint in episode.faults[number].severity.get("derating", ())}


def _count(episode: LedgerEpisode, counts: Counter[str]) -> None:
    on = {number for switch in episode.switches for number in switch.on}
    counts["switches"] += len(episode.switches)
    counts["episodes with a fault that set in"] += bool(on)
    for number in on:
        for kind in episode.faults[number].severity:
            counts[f"faults that set in: {kind}"] += 1
