# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The studies behind the results page, kept beside it: one small file for each policy, ground and engine.

The page is generated from these alone, so that one policy can be evaluated anew without the others and the page
regenerated without simulation (:func:`umc.evaluation.study.load_study` reads them).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from umc.evaluation.study import PolicyResult, Study, load_study, save_study
from umc.utils.errors import UmcError

NAME_LENGTH = 12
"""Characters of a checkpoint's SHA-256 in a file's name, as many as the page prints."""

OWN = ("command_line", "git", "time", "versions", "batches", "num_envs", "ground")
"""Facts of a study that may differ between policies of a table: how they were simulated, not what; the ground, which
the folder names, is not in earlier studies."""


def kept_path(folder: Path, engine: str, checkpoint: str) -> Path:
    """Return the file of one policy on one engine."""
    return folder / engine / f"{checkpoint[:NAME_LENGTH]}.study"


def without_paths(study: Study) -> Study:
    """Return a study without the paths of the machine that simulated it."""
    about = {name: value for name, value in study.about.items() if name != "command_line"}
    policies = [
        replace(one, about={**one.about, "path": Path(str(one.about.get("path", ""))).name}) for one in study.policies
    ]
    return replace(study, about=about, policies=tuple(policies))


def keep(study: Study, folder: Path, engine: str) -> None:
    """Keep every policy of a study in a file of its own."""
    study = without_paths(study)
    for one in study.policies:
        path = kept_path(folder, engine, str(one.about["sha256"]))
        path.parent.mkdir(parents=True, exist_ok=True)
        save_study(path, replace(study, policies=(one,)))


def kept_study(folder: Path, engine: str, policies: Sequence[tuple[str, str]]) -> Study:
    """Read policies as one study."""
    first: Study | None = None
    results: list[PolicyResult] = []
    for label, checkpoint in policies:
        path = kept_path(folder, engine, checkpoint)
        if not path.is_file():
            raise UmcError(
                f"nothing of {label} on {engine} is kept in {folder}; run without --report_only to measure it"
            )
        study = load_study(path)
        first = first or study
        if not _alike(first, study):
            both = f"{path} has other faults than {first.policies[0].label}"
            raise UmcError(f"{both}; measure both again, with the same --num_envs, --device and overrides")
        (result,) = study.policies
        about = {**result.about, "simulated": (study.about.get("git") or {}).get("commit")}
        results.append(replace(result, label=label, about=about))
    assert first is not None
    return replace(first, policies=tuple(results))


def prune(folder: Path, engine: str, checkpoints: Iterable[str]) -> None:
    """Remove the policies that are no longer shown."""
    shown = {kept_path(folder, engine, one) for one in checkpoints}
    for path in (folder / engine).glob("*.study"):
        if path not in shown:
            path.unlink()


def _alike(one: Study, other: Study) -> bool:
    """Whether two studies of a policy each are of the same robots, which draw their faults by cell, member and seed."""
    facts = [
        (study.protocol, study.step_dt, study.joint_names, {k: v for k, v in study.about.items() if k not in OWN})
        for study in (one, other)
    ]
    runs = [study.policies[0].run for study in (one, other)]
    same_robots = (torch.equal(*(getattr(run, name) for run in runs)) for name in ("cell", "member", "onset"))
    return facts[0] == facts[1] and all(same_robots)
