# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The paper's tables about faults, read from ``data/umc_paper.yaml``."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml

from umc.utils.errors import UmcError

PAPER: dict[str, Any] = yaml.safe_load((files(__package__) / "data" / "umc_paper.yaml").read_text(encoding="utf-8"))
"""The file's content; see its comments."""


def paper_settings(robot: str, table: str) -> dict[str, Any]:
    """Return the rows of a robot's ``training``, ``inference`` or ``ablation`` table.

    Raises UmcError if there is none.
    """
    tables = PAPER["robots"].get(robot)
    if tables is None or table not in tables:
        known = ", ".join(f"{name} ({'/'.join(rows)})" for name, rows in PAPER["robots"].items())
        raise UmcError(f"the paper has no {table} table of robot '{robot}'; it has {known}")
    return dict(tables[table])


def training_faults(robot: str) -> dict[str, Any]:
    """Return the faults of the paper's training as fields of :class:`umc.faults.FaultsCfg`.

    Joints, severities, seed.
    """
    rows = paper_settings(robot, "training")
    return {
        "num_joints": tuple(rows["num_joints"]),
        "severity": {kind: rows[kind] for kind in ("rom", "effort", "velocity")},
        "seed": rows["seed"],
    }
