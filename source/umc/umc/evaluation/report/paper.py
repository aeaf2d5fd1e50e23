# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The paper's own figures, from ``config/paper_results.yaml``, and what differs in our conditions."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from importlib.resources import files
from typing import Any

import yaml

from umc.evaluation.protocol import DEFAULT_PROTOCOL, Protocol, protocol_for
from umc.evaluation.report.renderers import display_value
from umc.evaluation.study import Study


@dataclass(frozen=True)
class PaperTable:
    """One result table of the paper."""

    name: str
    label: str
    """Its label in the paper's source."""
    robot: str
    protocol: str
    """Name of the protocol that describes its conditions."""
    caption: str
    rows_are: str
    """Head of its first column."""
    radii: tuple[float, ...]
    """Radii of its columns [m]; ``failed`` comes last."""
    rows: dict[str, tuple[float, ...]]
    """Its figures as printed [%]."""
    note: str = ""
    """Where it cannot be right."""


def read_paper() -> dict[str, Any]:
    """Read ``config/paper_results.yaml``."""
    return yaml.safe_load((files("umc") / "config" / "paper_results.yaml").read_text(encoding="utf-8"))


def paper_tables(protocol: Protocol | None = None) -> list[PaperTable]:
    """Return the paper's tables."""
    found = []
    for name, entry in read_paper()["tables"].items():
        rows = {row: tuple(values) for row, values in entry["rows"].items()}
        table = PaperTable(name, **{**entry, "radii": tuple(entry["radii"]), "rows": rows})
        theirs = (table.protocol, table.robot, table.radii)
        if protocol is None or theirs == (protocol.name, protocol.robot, protocol.radii):
            found.append(table)
    return found


def departures(study: Study) -> list[str]:
    """Return what of a study's conditions is not the paper's; empty for a robot that the paper does not have."""
    protocol = study.protocol
    known = {table.protocol for table in paper_tables() if table.robot == protocol.robot}
    if not known:
        return []
    original = protocol_for(protocol.robot, name=protocol.name if protocol.name in known else DEFAULT_PROTOCOL)
    if not protocol.track:  # other ground is a departure, its lack of terrain seeds is no further one
        protocol = protocol.without_track()
        original = replace(original, settings=original.without_track().settings)
    found = []
    for field in fields(Protocol):
        ours, theirs = getattr(protocol, field.name), getattr(original, field.name)
        if ours != theirs and field.name not in ("name", "robot", "num_envs", "draws"):
            if field.name == "settings":
                ours, theirs = ("; ".join(setting.name for setting in some) for some in (ours, theirs))
            found.append(f"{field.name.replace('_', ' ')}: {display_value(ours)} instead of {display_value(theirs)}")
    robots = max((len(result.run.cell) / len(protocol.cells) for result in study.policies), default=0.0)
    if robots < original.num_envs:
        found.append(f"robots of each scenario and setting: {robots:g} instead of {original.num_envs}")
    found.append(f"simulator: {study.about.get('physics', 'unknown')} instead of Isaac Gym")
    return found
