# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The file that keeps a study, so that its reports can be made again without simulation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from umc.evaluation.batches import plain_run, read_plain, run_of
from umc.evaluation.protocol import Protocol, Setting
from umc.evaluation.study import PolicyResult, Study
from umc.utils.errors import UmcError
from umc.utils.io import write_torch

STUDY = "study.pt"
"""Its name, beside the report."""

FORMAT = 1
"""Version of its layout."""


def save_study(path: Path, study: Study) -> None:
    """Write a study as tensors and plain values, whole or not at all.

    Raises:
        UmcError: If it cannot be written.
    """
    content = {
        "format": FORMAT,
        "protocol": _plain(study.protocol.describe()),
        "step_dt": study.step_dt,
        "joint_names": list(study.joint_names),
        "feet": list(study.feet),
        "about": _plain(study.about),
        "policies": [
            {"label": one.label, "group": one.group, "about": _plain(one.about), "run": plain_run(one.run)}
            for one in study.policies
        ],
    }
    write_torch(path, content)


def load_study(path: Path) -> Study:
    """Read a study.

    Raises:
        UmcError: If there is no such file, or it is no study of this version.
    """
    if not path.is_file():
        raise UmcError(f"no study at {path}; give the --out folder of a finished evaluation")
    content = read_plain(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UmcError(f"{path} is no study of this version of umc; run the evaluation again")
    return Study(
        protocol=protocol_of(content["protocol"]),
        step_dt=content["step_dt"],
        joint_names=tuple(content["joint_names"]),
        about=content["about"],
        policies=tuple(
            PolicyResult(one["label"], one["group"], one["about"], run_of(one["run"])) for one in content["policies"]
        ),
        feet=tuple(content["feet"]),
    )


def protocol_of(described: Mapping[str, Any]) -> Protocol:
    """The reverse of :meth:`Protocol.describe`."""
    values = dict(described)
    values["settings"] = tuple(
        Setting(**{**setting, "joints": None if setting["joints"] is None else tuple(setting["joints"])})
        for setting in values["settings"]
    )
    for name in ("num_joints", "scenarios", "command", "radii"):
        values[name] = tuple(values[name])
    return Protocol(**values)


def _plain(values: Any) -> Any:
    """Only what JSON has, so that no type of ours has to be known when the file is read."""
    return json.loads(json.dumps(values, default=str))
