# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a policy reached under frozen conditions, as a file that others can check and compare (docs/leaderboard.md)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field, PositiveInt

from umc.evaluation.estimates import RobotTable
from umc.evaluation.metrics import main_rates
from umc.evaluation.study import PolicyResult, Study
from umc.faults import find_scenario
from umc.utils.config import FileModel, validated
from umc.utils.errors import UmcError
from umc.utils.io import read_json

FORMAT = 1
"""Version of the layout."""

EFFORT = "effort"
"""Kind of fault that two readings of the paper differ in: a torque limit has an effect, or it has none."""

READINGS = ("with torque limits", "without torque limits")
"""Names of the readings."""

Rate = Annotated[list[Annotated[float, Field(ge=0.0, le=1.0)]], Field(min_length=3, max_length=3)]
"""A share of robots with the ends of its interval."""

Rates = dict[str, Rate]


class Reading(FileModel):
    """Results under one reading."""

    average: Rates
    scenarios: dict[str, Rates]


class Card(FileModel):
    """The file ``card.json``."""

    format: int
    benchmark: str
    """Name and version of the protocol."""
    name: Annotated[str, Field(min_length=1, max_length=100)]
    policy: dict[str, Any]
    """File, SHA-256, and what is known about it."""
    robot: str
    task: str
    physics: str
    robots: PositiveInt
    complete: bool
    """Whether these are the full conditions, rather than those of ``--quick``."""
    protocol_sha256: str
    faults_sha256: str
    """Of who has which faulty joints from when on."""
    main: Annotated[list[str], Field(min_length=2, max_length=2)]
    """Keys of the two rates that the leaderboard shows."""
    readings: dict[str, Reading]
    versions: dict[str, str | None]
    code: dict[str, Any] | None
    """Commit of UMC."""
    time: str
    digest: str
    """SHA-256 of everything else."""


def card_of(study: Study, result: PolicyResult) -> Card:
    """Return the card of one of a study's policies."""
    protocol, about = study.protocol, study.about
    policy = {key: value for key, value in result.about.items() if key != "path"}
    fields = {
        "format": FORMAT,
        "benchmark": protocol.name,
        "name": result.label,
        "policy": {"file": Path(str(result.about["path"])).name, **policy},
        "robot": protocol.robot,
        "task": about["task"],
        "physics": about["physics"],
        "robots": len(result.run.cell),
        "complete": not about["quick"],
        "protocol_sha256": digest_of(protocol.describe()),
        "faults_sha256": _faults_digest(result),
        "main": [metric.key for metric in main_rates(protocol.radii)],
        "readings": _readings(study, result),
        "versions": about["versions"],
        "code": about["git"],
        "time": about["time"],
    }
    return _checked({**fields, "digest": digest_of(fields)}, result.label)


def _readings(study: Study, result: PolicyResult) -> dict[str, Any]:
    """Return the rates of both readings; scenarios without a torque limit are the same in both, and use all robots."""
    protocol, table = study.protocol, RobotTable(study, result)
    differs = [name for name in protocol.scenarios if EFFORT in find_scenario(name).kinds]
    scenario = result.run.cell % len(protocol.scenarios)
    inert = torch.tensor([EFFORT in setting.severity for setting, _ in protocol.cells])[result.run.cell]
    limited = torch.zeros_like(inert)
    for name in differs:
        limited |= scenario == protocol.scenarios.index(name)
    found = {}
    for reading, other in zip(READINGS, (inert, ~inert), strict=True):
        rows = ~(limited & other)
        if not rows[limited].any():
            continue  # --quick has one setting
        each = {str(name): table.rates(rows, [name]) for name in protocol.scenarios}
        rates = {"average": table.rates(rows), "scenarios": each}
        found[reading] = _plain(rates)
    return found


def _plain(rates: Any) -> Any:
    if isinstance(rates, dict):
        return {key: _plain(value) for key, value in rates.items() if value is not None}
    return [round(number, 6) for number in (rates.value, rates.low, rates.high)]


def _faults_digest(result: PolicyResult) -> str:
    run = result.run
    order = torch.argsort(run.member * (int(run.cell.max()) + 1) + run.cell)
    digest = hashlib.sha256()
    for tensor in (run.cell, run.member, run.onset, run.joints.long()):
        digest.update(tensor[order].numpy().astype("<i8").tobytes())
    return digest.hexdigest()


def digest_of(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of plain values, which does not depend on the order of keys."""
    plain = {key: value for key, value in content.items() if key != "digest"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def write_card(card: Card, folder: Path) -> Path:
    """Write a card as JSON, as Markdown and with its picture; return the Markdown file."""
    from umc.evaluation.report import plots
    from umc.evaluation.report.renderers import render
    from umc.evaluation.report.write import write_all

    stem = f"{card.robot}_{re.sub(r'[^a-z0-9]+', '_', card.name.lower()).strip('_') or 'policy'}"
    page = render("card.md", card=card, picture=f"{stem}.svg", scenario=_scenario_title)
    content = card.model_dump()
    picture = plots.image(plots.card_bars(content["readings"], card.main), "svg")
    text = json.dumps(content, indent=1, allow_nan=False)
    files = {"json": f"{text}\n".encode(), "md": page.encode(), "svg": picture}
    write_all(folder, {f"{stem}.{suffix}": data for suffix, data in files.items()})
    return folder / f"{stem}.md"


def _scenario_title(name: str) -> str:
    from umc.evaluation.breakdown import scenario_name

    return scenario_name(int(name) if name.isdigit() else name)


def read_card(path: Path) -> Card:
    """Read a card; raise UmcError if it is invalid or has been changed."""
    fix = "make it again with umc benchmark"
    content = read_json(path, fix)
    card = _checked(content, f"{path} is no card ({fix})")
    if card.format != FORMAT:
        raise UmcError(f"{path} has format {card.format} instead of {FORMAT}; {fix}")
    if digest_of(content) != card.digest:
        raise UmcError(f"{path} has been changed: its digest is another; {fix}")
    return card


def _checked(content: Any, where: str) -> Card:
    return validated(Card, content, where)
